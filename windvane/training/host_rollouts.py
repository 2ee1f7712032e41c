"""The host driver of rollouts: many copies of a Gymnasium environment, and no replay buffer."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from windvane.agents.pqn import Rollout, RolloutStep
from windvane.envs.host import HostEnvs, HostStep
from windvane.learning.rollout_learner import RolloutLearner, RolloutLearnerState
from windvane.training.host_loop import AskedWeights, HostLoop, WeightSource


class HostRolloutState(eqx.Module):
    """All of a run but its environments, which cannot be saved: resuming begins new episodes, and
    collects the rollout that was begun anew.
    """

    learner: RolloutLearnerState
    episodes: Int[Array, ""]
    env_episodes: Int[Array, " envs"]
    weights: Float[Array, "envs objectives"]
    schedule: PyTree[Array]


@dataclass(frozen=True)
class HostRolloutDriver:
    """A learner of rollouts in `num_envs` copies of an environment per run."""

    learner: RolloutLearner
    schedule: WeightSource
    num_envs: int
    rollout: int

    @cached_property
    def weights(self) -> AskedWeights:
        """The source of weights, to be asked."""
        return AskedWeights(self.schedule, self.learner.spec.num_objectives)

    def init(
        self, seed: int, schedule: PyTree[Array] = None, network: PyTree | None = None
    ) -> HostRolloutState:
        """A run before its first step; `network` is one to start with."""
        arrays = self.weights.arrays if schedule is None else schedule
        key, number = jax.random.key(seed), self.num_envs
        first = np.stack([self.weights(arrays, key, 0, 0, env) for env in range(number)])
        learner = eqx.filter_jit(self.learner.init)(key, network)
        none = jnp.zeros(number, int)
        return HostRolloutState(learner, jnp.zeros((), int), none, jnp.asarray(first), arrays)

    def begin(
        self, state: HostRolloutState, envs: HostEnvs, seed: int, step: int
    ) -> "HostRolloutRun":
        """A run that continues from a state."""
        return HostRolloutRun(self, state, envs, seed, step)

    @cached_property
    def act(self) -> Any:
        """Actions and Q-vectors of the best ones, compiled."""
        return eqx.filter_jit(self.learner.act)

    @cached_property
    def values(self) -> Any:
        """Q-vectors of the best actions, compiled."""
        return eqx.filter_jit(self.learner.values)

    @cached_property
    def learn(self) -> Any:
        """Learning from a rollout, compiled."""
        return eqx.filter_jit(self.learner.learn)


class HostRolloutRun(HostLoop):
    """A run that learns from rollouts."""

    def __init__(
        self, driver: HostRolloutDriver, state: HostRolloutState, envs: HostEnvs, seed: int,
        step: int,
    ):  # fmt: skip
        """Begin an episode in every environment."""
        self.driver, self.schedule, self._learner = driver, state.schedule, state.learner
        self._env_episodes = np.asarray(state.env_episodes).copy()
        weights = np.asarray(state.weights, np.float32).copy()
        h = driver.learner.hyperparameters
        super().__init__(envs, weights, h, seed, step, int(state.episodes))
        self._steps: list[tuple[np.ndarray, ...]] = []
        self._choose()

    @property
    def state(self) -> HostRolloutState:
        """All that can be saved."""
        return HostRolloutState(
            self._learner, jnp.asarray(self.episodes), jnp.asarray(self._env_episodes),
            jnp.asarray(self._weights), self.schedule,
        )  # fmt: skip

    def _loss(self) -> np.float32:
        return np.float32(self._learner.loss)

    def _choose(self) -> None:
        actions, values = self.driver.act(
            self._learner, self._seen, self._weights, jnp.asarray(self.step)
        )
        self._actions, self._values = np.asarray(actions), np.asarray(values)
        self._asked = self._weights

    def _observe(self, outcome: HostStep, ended: np.ndarray, changed: bool) -> None:
        """Keep the step; at the end of a rollout, learn from all of it."""
        del ended, changed
        reached = np.zeros_like(self._values)
        if outcome.truncated.any():
            reached = np.asarray(
                self.driver.values(self._learner.online, outcome.reached, self._asked)
            )
        self._steps.append(
            (self._seen, self._actions, outcome.rewards, outcome.terminated, outcome.truncated,
             self._asked, self._values, reached)
        )  # fmt: skip
        if len(self._steps) == self.driver.rollout:
            self._learn(outcome.observations)

    def _learn(self, observations: np.ndarray) -> None:
        columns = (jnp.asarray(np.stack(parts)) for parts in zip(*self._steps, strict=True))
        last = self.driver.values(self._learner.online, observations, self._weights)
        rollout = Rollout.of(RolloutStep(*columns), last)
        self._learner = self.driver.learn(self._learner, rollout, jnp.asarray(self.step))
        self._steps = []

    def _next_weights(self, ended: np.ndarray) -> bool:
        weights, ask = self._weights.copy(), self.driver.weights
        if ask.immediately:
            weights[:] = self.driver.schedule.current()  # type: ignore[union-attr]
        for index in np.flatnonzero(ended).tolist():
            self.episodes += 1
            self._env_episodes[index] += 1
            weights[index] = ask(
                self.schedule, self._learner.key, int(self._env_episodes[index]), self.step, index
            )
        self._weights = weights
        return False
