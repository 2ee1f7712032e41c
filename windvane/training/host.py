"""The host driver: a Python loop around the same compiled learner, for any Gymnasium environment.

Each run has its own copies of the environment. Acting is one small compiled call per step. What
happened is kept on the host and observed once per cycle, in one larger call that also learns.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from windvane.agents.core import Iteration
from windvane.envs.host import HostEnvs, HostStep
from windvane.learning.learner import Learner, LearnerState
from windvane.schedules import with_chosen
from windvane.training.host_loop import AskedWeights, HostLoop, WeightSource
from windvane.training.host_programs import STAGED, HostDraws, HostPrograms, Rows


class HostRunState(eqx.Module):
    """All of a run but its environment, which cannot be saved: resuming begins new episodes."""

    learner: LearnerState
    episodes: Int[Array, ""]
    schedule: PyTree[Array]


@dataclass(frozen=True)
class HostDriver:
    """A learner, environments and a source of weights; `num_envs` environments per run."""

    learner: Learner
    schedule: WeightSource
    num_envs: int
    learning_starts: int
    """The first step whose cycle ends with a gradient step."""

    @property
    def cycle(self) -> int:
        """Steps of one cycle."""
        return max(self.learner.hyperparameters.update_interval, self.num_envs)

    @property
    def updates(self) -> int:
        """Gradient steps at the end of a cycle."""
        return self.cycle // self.learner.hyperparameters.update_interval

    @cached_property
    def weights(self) -> AskedWeights:
        """The source of weights, to be asked."""
        return AskedWeights(self.schedule, self.learner.spec.num_objectives)

    def init(
        self, seed: int, schedule: PyTree[Array] = None, network: PyTree | None = None
    ) -> HostRunState:
        """A run before its first step; `network` is one to start with."""
        arrays = self.weights.arrays if schedule is None else schedule
        key = jax.random.key(seed)
        first = np.asarray(self.weights(arrays, key, 0, 0), np.float32)
        weights = jnp.broadcast_to(jnp.asarray(first), (self.num_envs, first.size))
        learner = eqx.filter_jit(self.learner.init)(key, weights, network)
        return HostRunState(learner, jnp.zeros((), int), arrays)

    def begin(self, state: HostRunState, envs: HostEnvs, seed: int, step: int) -> "HostRun":
        """A run that continues from a state."""
        return HostRun(self, state, envs, seed, step)

    def programs(self, like: LearnerState) -> HostPrograms:
        """The compiled functions that all runs share."""
        if "_programs" not in self.__dict__:
            self.__dict__["_programs"] = HostPrograms(self.learner, like, self.num_envs)
        return self.__dict__["_programs"]


class HostRun(HostLoop):
    """A run with a replay buffer; its learner's arrays are on the device."""

    def __init__(
        self, driver: HostDriver, state: HostRunState, envs: HostEnvs, seed: int, step: int
    ):
        """Begin an episode in every environment."""
        self.driver, self.schedule = driver, state.schedule
        learner, number = driver.learner, driver.num_envs
        weights = np.asarray(state.learner.active_weights, np.float32).copy()
        super().__init__(envs, weights, learner.hyperparameters, seed, step, int(state.episodes))
        if step:
            state = eqx.tree_at(
                lambda s: s.learner, state, eqx.filter_jit(learner.abandon_episode)(state.learner)
            )
        self._key = state.learner.key
        self._programs = driver.programs(state.learner)
        self._leaves = self._programs.close(state.learner)
        self._acting = self._programs.acting(self._leaves)
        self._staged: list[list[tuple[Any, ...]]] = [[] for _ in range(number)]
        self._staging = learner.replay.whole_trajectories and number > 1
        self._cycle, self._updates = driver.cycle, driver.updates
        self._immediately = driver.weights.immediately
        self._draws = self._programs.draws(self._key, step)
        self._drawn_from = step
        self._rows = Rows(driver.cycle, self.start, learner.spec.num_objectives)
        self._choose()

    @property
    def state(self) -> HostRunState:
        """All that can be saved."""
        self._flush()
        learner = self._programs.open(self._leaves)
        return HostRunState(learner, jnp.asarray(self.episodes), self.schedule)

    def adopt(self, iteration: Iteration) -> None:
        """Continue with what the agent made of itself; its weights hold from the next episode."""
        state = eqx.tree_at(lambda s: s.agent_state, self.state.learner, iteration.agent_state)
        self._leaves = self._programs.close(state)
        self._acting = self._programs.acting(self._leaves)
        self.schedule = with_chosen(self.schedule, iteration.weights)

    def _loss(self) -> np.float32:
        return self._programs.loss(self._leaves)

    def _observe(self, outcome: HostStep, ended: np.ndarray, changed: bool) -> None:
        if self._staging:
            self._stage(outcome, ended)
        draws = self._draws_at(self.step - self._number)
        self._rows.add(self._seen, self._actions, outcome, self._weights, draws)
        if self.step % self._cycle == 0:
            learning = self.step - self._cycle >= self.driver.learning_starts
            self._flush(self._updates if learning else 0)
        elif changed:  # an agent may answer with another network
            self._flush()

    def _flush(self, updates: int = 0) -> None:
        """Let the learner observe what happened since the last time, and learn `updates` times."""
        if self._rows.count or updates:
            self._leaves = self._programs.observe(
                self._leaves, self._rows, np.int32(self.step), updates, self._staging
            )
            self._acting = self._programs.acting(self._leaves)
            self._rows = self._rows.emptied()

    def _choose(self) -> None:
        """The actions of the next step: random ones, or the best."""
        draws = self._draws_at(self.step)
        exploring = draws.epsilon_draw < self._epsilon()
        if exploring.all():
            self._actions = draws.random_action
            return
        greedy = self._programs.greedy(self._acting, self._seen, self._weights)
        self._actions = np.where(exploring, draws.random_action, np.asarray(greedy))

    def _draws_at(self, step: int) -> HostDraws:
        """The random draws of a step of all environments; they are drawn for many at once."""
        first = step - self._drawn_from
        if first < 0 or first + self._number > len(self._draws.random_action):
            self._draws, self._drawn_from, first = self._programs.draws(self._key, step), step, 0
        last = first + self._number
        return HostDraws(*(column[first:last] for column in self._draws))

    def _next_weights(self, ended: np.ndarray) -> bool:
        if not (self._immediately or ended.any()):
            return False
        weights = self._weights.copy()
        if self._immediately:
            weights[:] = self.driver.schedule.current()  # type: ignore[union-attr]
        for index in np.flatnonzero(ended):
            self.episodes += 1
            weights[index] = self.driver.weights(self.schedule, self._key, self.episodes, self.step)
        changed = not np.array_equal(weights, self._weights)
        self._weights = weights
        return changed

    def _stage(self, outcome: HostStep, ended: np.ndarray) -> None:
        """Keep transitions until their trajectory is whole, and then add it at once."""
        parts = (self._seen, self._actions, outcome.rewards, outcome.reached,
                 outcome.terminated, outcome.truncated)  # fmt: skip
        for index, rows in enumerate(self._staged):
            rows.append(tuple(part[index] for part in parts))
            if ended[index]:
                for first in range(0, len(rows), STAGED):
                    self._leaves = self._programs.add(self._leaves, rows[first : first + STAGED])
                rows.clear()
                # The arrays before were donated.
                self._acting = self._programs.acting(self._leaves)
