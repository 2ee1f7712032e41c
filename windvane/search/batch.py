"""Training configurations together, and what they are worth: greedy episodes over a grid of
weights, at some steps and in the end.

What may not live here: what is trained, and who goes on (see `tune` and `confirm`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from windvane.evaluation import evaluate, known_values
from windvane.policy import Policy
from windvane.runs.iterations import iterate_agent
from windvane.runs.runner import chunks
from windvane.runs.starting import start_network
from windvane.search.study import HALVING, RUNGS
from windvane.training.build import Training, build
from windvane.training.config import PARTS, TrainConfig
from windvane.training.fused_session import FusedSession
from windvane.training.session import Session
from windvane.training.sweep import can_sweep, open_sweep, program_of

Values = dict[int, dict[int, float]]
"""By the index of a configuration: the value of each seed."""


@dataclass(frozen=True)
class Judge:
    """Says what a policy is worth: the mean greedy regret over weights where the optimum is known,
    else minus the mean utility; less is better. All are judged by one gamma and one reward scale.
    """

    config: TrainConfig
    episodes: int
    optimal: Any
    """A coverage set, or None."""

    @staticmethod
    def of(config: TrainConfig, episodes: int, progress: Any) -> "Judge":
        """One for all that are trained in an environment."""
        world = build(config, trusted=PARTS).world
        values = known_values(world, config.gamma, progress) if config.oracle else None
        return Judge(config, episodes, values)

    @property
    def measure(self) -> str:
        """What the numbers are."""
        return "greedy regret" if self.optimal is not None else "minus greedy utility"

    def value(self, training: Training, config: TrainConfig, network: Any, step: int) -> float:
        """Of the network of one run after so many steps."""
        learner = training.learner
        judged = replace(config, gamma=self.config.gamma, reward_scale=self.config.reward_scale)
        policy = Policy(
            learner.spec, learner.agent, network, judged, config.seed_numbers[0],
            step=step, world=training.world,
        )  # fmt: skip
        found = evaluate(policy, episodes=self.episodes, optimal=self.optimal, oracle=False)
        known = self.optimal is not None
        return float(found.regret.mean() if known else -found.utility.mean())


class Pace(ABC):
    """What goes on beside training: progress, limits and interruptions."""

    @abstractmethod
    def check(self) -> None:
        """Raise where training should stop."""

    @abstractmethod
    def chunk(self, kind: Hashable) -> AbstractContextManager[None]:
        """Around a compiled program; the first of a kind is compiled."""


def build_trial(config: TrainConfig) -> Training:
    """The parts of a trial. Whoever searches has named them, so they are trusted."""
    return build(config, trusted=PARTS)


def by_program(configs: Sequence[TrainConfig]) -> Iterator[list[int]]:
    """The indices of configurations that are trained together."""
    groups: dict[TrainConfig, list[int]] = {}
    for index, config in enumerate(configs):
        groups.setdefault(program_of(config), []).append(index)
    for indices in groups.values():
        if can_sweep(build_trial(configs[indices[0]])):
            yield indices
        else:
            yield from ([index] for index in indices)


def ladder(most: int) -> list[int]:
    """Sizes of programs, rising to `most`: each is compiled anew, so there are few."""
    sizes = [most]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    return sizes[::-1]


def rungs(config: TrainConfig) -> list[int]:
    """The steps at which trials are evaluated: where a chunk ends, next to 1/9 and 1/3 of all; and
    the end.
    """
    ends = [chunk.stop for chunk in chunks(config) if chunk.stop]
    wanted = [max(config.steps // HALVING**power, 1) for power in range(RUNGS, 0, -1)]
    found = {min(end for end in ends if end >= step) for step in wanted}
    return sorted({*found, config.steps})


def train_together(
    configs: Sequence[TrainConfig],
    judge: Judge,
    stops: Sequence[int],
    most: int,
    decide: Callable[[int, Values], Sequence[int]],
    pace: Pace,
) -> None:
    """Train configurations of one program, in programs of at most `most` of them.

    At every step of `stops`, `decide` is called with the values of those that are left, and returns
    which of them go on. `pace` may raise between two chunks.
    """
    training = build_trial(configs[0])
    if can_sweep(training):
        # Of what stands for all numbers, so that the next batch finds the program compiled.
        training = build_trial(program_of(configs[0]))
    runs = len(training.config.runs)
    network, program = start_network(training, None), program_of(configs[0])
    alive = list(range(len(configs)))
    session = _open(training, [configs[index] for index in _padded(alive, most)])
    try:
        session.begin(None, 0, network)
        for chunk in chunks(training.config):
            if chunk.stop <= chunk.start:
                continue
            pace.check()
            length = chunk.stop - chunk.start
            with pace.chunk((program, len(session.episodes), length, chunk.learning)):
                session.advance(chunk.start, chunk.stop, chunk.learning, lambda: False)
            iterate_agent(training, session, chunk.start, chunk.stop)
            if chunk.stop not in stops:
                continue
            values: Values = {}
            for lane, index in enumerate(alive):
                found = _values(training, session, lane, configs[index], judge, chunk.stop)
                values[index] = found
                pace.check()
            chosen = set(decide(chunk.stop, values))
            going = [index for index in alive if index in chosen]
            if not going:
                return
            if isinstance(session, FusedSession) and going != alive:
                lanes = [alive.index(index) for index in _padded(going, most)]
                session.keep([lane * runs + run for lane in lanes for run in range(runs)])
            alive = going
    finally:
        session.close()


def _open(training: Training, configs: Sequence[TrainConfig]) -> Session:
    if can_sweep(training):
        return open_sweep(training, configs)
    return training.session()


def _padded(indices: Sequence[int], most: int) -> list[int]:
    """The same, with the last one repeated up to the next size of a program."""
    size = next(size for size in ladder(max(most, len(indices))) if size >= len(indices))
    return [*indices, *([indices[-1]] * (size - len(indices)))]


def _values(
    training: Training, session: Session, lane: int, config: TrainConfig, judge: Judge, step: int
) -> dict[int, float]:
    """The value of each seed of the configuration in a lane: the mean over its schedules."""
    by_seed: dict[int, list[float]] = {}
    runs = config.runs
    for number, run in enumerate(runs):
        network = session.policy_network(lane * len(runs) + number)
        value = judge.value(training, run, network, step)
        by_seed.setdefault(run.seed_numbers[0], []).append(value)
    return {seed: float(np.mean(found)) for seed, found in by_seed.items()}


def default_size() -> int:
    """Configurations that share a program: an accelerator has room for many."""
    return 8 if jax.default_backend() == "cpu" else 32
