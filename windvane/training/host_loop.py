"""The loop around Gymnasium environments: episodes, their weights, and what is recorded of them.

What may not live here: how an agent acts or learns; a run says that (see `host` and
`host_rollouts`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Key, PyTree

from windvane.envs.host import HostEnvs, HostStep
from windvane.errors import InputError
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.learner import weights_key
from windvane.live import LiveWeights
from windvane.schedules import WeightSchedule
from windvane.training.fused import StepInfo
from windvane.weights import check_weights

WeightSource = WeightSchedule | LiveWeights | Callable[[int, int], Any]
"""Where weights come from; a function is called with the episode and the step that begin."""


class EnvironmentFailedError(InputError):
    """An environment did what it must not do; `infos` tells of the steps before."""

    def __init__(self, message: str, infos: StepInfo):
        """The sentence, and what was recorded."""
        super().__init__(message)
        self.infos = infos


class AskedWeights:
    """A source of weights as the host asks it: one compiled function for all runs."""

    def __init__(self, source: WeightSource, num_objectives: int):
        """`num_objectives` is what a function's answer is checked against."""
        self.source, self._number = source, num_objectives

    @property
    def arrays(self) -> PyTree[Array]:
        """What may differ between runs."""
        own = self.source if isinstance(self.source, WeightSchedule) else None
        return eqx.filter(own, eqx.is_array)

    @property
    def immediately(self) -> bool:
        """Whether weights may change within an episode."""
        return isinstance(self.source, LiveWeights) and self.source.immediately

    def __call__(
        self, arrays: PyTree[Array], key: Key[Array, ""], episode: int, step: int,
        env: int | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The weights of an episode that begins now; with `env`, those of one environment of many
        that each have their own.
        """
        source = self.source
        if isinstance(source, LiveWeights):
            return source.current()
        if isinstance(source, WeightSchedule):
            return np.asarray(self._program(arrays, key, episode, step, env), np.float32)
        return check_weights(source(episode, step), self._number).astype(np.float32)

    @cached_property
    def _program(self) -> Any:
        def weights(arrays: Any, key: Any, episode: Any, step: Any, env: Any) -> Array:
            own = weights_key(key)
            if env is not None:
                own = jax.random.fold_in(own, env)
            return eqx.combine(arrays, self.source).weights(own, episode, step)

        return jax.jit(weights)


class HostLoop(ABC):
    """A run on its way: its environments, and the episodes that are open in them."""

    start: np.ndarray
    """The first observations of the run."""

    def __init__(
        self,
        envs: HostEnvs,
        weights: np.ndarray,
        h: Hyperparameters,
        seed: int,
        step: int,
        episodes: int,
    ):
        """Begin an episode in every environment, with `weights`, one row each."""
        self.envs, self.step, self.episodes = envs, step, episodes
        number = envs.num_envs
        children = np.random.SeedSequence([seed, step]).spawn(number)
        self.start = envs.reset([int(child.generate_state(1)[0]) for child in children])
        self._seen, self._weights, self._number = self.start, weights, number
        self._returns = np.zeros((number, envs.spec.num_objectives), np.float32)
        self._lengths = np.zeros(number, int)
        self._actions = np.zeros(number, int)
        # Plain numbers: reading them from modules at every step would cost as much as the step.
        self._gamma, self._scale = np.float32(h.gamma), np.float32(h.reward_scale)
        exploration = (h.epsilon_start, h.epsilon_end, h.epsilon_steps)
        self._exploration = tuple(np.float32(value) for value in exploration)

    @property
    @abstractmethod
    def state(self) -> Any:
        """All that can be saved."""

    @abstractmethod
    def _choose(self) -> None:
        """Set the actions of the next step."""

    @abstractmethod
    def _next_weights(self, ended: np.ndarray) -> bool:
        """Set the weights of what follows, and count episodes that ended; whether they differ."""

    @abstractmethod
    def _observe(self, outcome: HostStep, ended: np.ndarray, changed: bool) -> None:
        """Learn from a step that was taken in the state `_seen`."""

    @abstractmethod
    def _loss(self) -> np.float32:
        """The loss of the latest gradient step."""

    def advance(self, stop: int, interrupted: Callable[[], bool]) -> StepInfo:
        """Take steps up to `stop`, or fewer if interrupted; axes are steps and environments.

        An environment that fails ends this early with an `EnvironmentFailedError`, which holds
        what was recorded before.
        """
        rows: list[tuple[Any, ...]] = []
        try:
            while self.step < stop and not (interrupted() and rows):
                rows.append(self._one_step())
        except InputError as error:
            raise EnvironmentFailedError(str(error), self._infos(rows)) from error
        return self._infos(rows)

    def _one_step(self) -> tuple[Any, ...]:
        """One step of all environments; the fields of its `StepInfo`, plain for speed."""
        outcome = self.envs.step(self._actions)
        ended = outcome.terminated | outcome.truncated
        any_ended = bool(ended.any())
        discount = np.power(self._gamma, self._lengths, dtype=np.float32)[:, None]
        self._returns = self._returns + discount * (outcome.rewards * self._scale)
        self._lengths = self._lengths + 1
        loss = self._loss() if any_ended else np.float32(0)
        info = (ended, self._lengths, self._weights, self._returns, self._epsilon(), loss)
        self.step += self._number
        changed = self._next_weights(ended)
        self._observe(outcome, ended, changed)
        self._seen = outcome.observations
        if any_ended:
            self._returns = np.where(ended[:, None], np.float32(0), self._returns)
            self._lengths = np.where(ended, 0, self._lengths)
        self._choose()
        return info

    def _infos(self, rows: list[tuple[Any, ...]]) -> StepInfo:
        """Step infos with a leading axis of steps: environment by environment within a step."""
        number, objectives = self._number, self._returns.shape[1]
        if not rows:
            none, wide = np.zeros(0, np.float32), np.zeros((0, objectives), np.float32)
            return StepInfo(none.astype(bool), none.astype(int), wide, wide, none, none)
        ended, lengths, weights, returns, epsilons, losses = zip(*rows, strict=True)
        return StepInfo(
            np.concatenate(ended), np.concatenate(lengths), np.concatenate(weights),
            np.concatenate(returns), np.repeat(np.asarray(epsilons, np.float32), number),
            np.repeat(np.asarray(losses, np.float32), number),
        )  # fmt: skip

    def _epsilon(self) -> np.float32:
        """Exploration at the step to come."""
        start, end, steps = self._exploration
        share = np.minimum(np.float32(self.step) / steps, np.float32(1))
        return start + share * (end - start)
