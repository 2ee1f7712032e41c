"""The fused driver of rollouts: many native environments per run, in one compiled chunk.

Each environment has its own episode and its own weights. Runs are vmapped on an accelerator and
take turns on a CPU, where one run uses all cores.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from windvane.agents.pqn import Rollout, RolloutStep
from windvane.batching import cond_any
from windvane.envs.environment import Environment
from windvane.envs.episodes import EpisodeState, reset_episode, step_autoreset
from windvane.learning.learner import reset_key, step_key, weights_key
from windvane.learning.rollout_learner import RolloutLearner, RolloutLearnerState
from windvane.schedules import WeightSchedule
from windvane.training.fused import ChunkSpec, StepInfo

RECORDED = 64
"""Environments of a run whose episodes are recorded: a fair sample of all."""


class ParallelState(eqx.Module):
    """Everything that one run is: its learner and its environments."""

    learner: RolloutLearnerState
    episode: EpisodeState[Any]
    env_episodes: Int[Array, " envs"]
    episodes: Int[Array, ""]
    """Episodes that ended, of those that are recorded."""
    schedule: PyTree[Array]
    weights: Float[Array, "envs objectives"]
    returns: Float[Array, "envs objectives"]


class ParallelDriver(eqx.Module):
    """A learner of rollouts in many copies of a native environment."""

    learner: RolloutLearner
    env: Environment[Any]
    schedule: WeightSchedule
    num_envs: int = eqx.field(static=True)
    rollout: int = eqx.field(static=True)

    @property
    def recorded(self) -> int:
        """Environments whose episodes are recorded."""
        return min(self.num_envs, RECORDED)

    def init(
        self, seed: Int[Array, ""], schedule: PyTree[Array] = None, network: PyTree | None = None
    ) -> ParallelState:
        """A run before its first step; `schedule` and `network` are as in `FusedDriver.init`."""
        key, number = jax.random.key(seed), self.num_envs
        schedule = eqx.filter(self.schedule, eqx.is_array) if schedule is None else schedule
        none = jnp.zeros(number, int)
        keys = jax.random.split(reset_key(key), number)
        return ParallelState(
            learner=self.learner.init(key, network),
            episode=jax.vmap(partial(reset_episode, self.env))(keys),
            env_episodes=none,
            episodes=jnp.zeros((), int),
            schedule=schedule,
            weights=self.weights(schedule, key, none, jnp.zeros((), int)),
            returns=jnp.zeros((number, self.env.num_objectives)),
        )

    def weights(
        self,
        arrays: PyTree[Array],
        key: Key[Array, ""],
        episodes: Int[Array, " envs"],
        step: Int[Array, ""],
    ) -> Float[Array, "envs objectives"]:
        """The weights of episodes that begin now, one in each environment."""
        schedule = eqx.combine(arrays, self.schedule)

        def one(env: Int[Array, ""], episode: Int[Array, ""]) -> Float[Array, " objectives"]:
            return schedule.weights(jax.random.fold_in(weights_key(key), env), episode, step)

        return jax.vmap(one)(jnp.arange(self.num_envs), episodes)

    def step(
        self, run: ParallelState, step: Int[Array, ""]
    ) -> tuple[ParallelState, tuple[RolloutStep, StepInfo]]:
        """One step of every environment."""
        learner, h, state = self.learner, self.learner.hyperparameters, run.learner
        observations = jax.vmap(self.env.observe)(run.episode.state)
        actions, values = learner.act(state, observations, run.weights, step)
        keys = jax.random.split(step_key(state.key, 2, step), self.num_envs)
        episode, transition = jax.vmap(partial(step_autoreset, self.env))(
            run.episode, actions, keys
        )
        ended, time = transition.ended, run.episode.time
        discount = h.gamma ** time.astype(jnp.float32)
        returns = run.returns + discount[:, None] * transition.reward * h.reward_scale
        shown = slice(self.recorded)
        info = StepInfo(
            ended[shown], (time + 1)[shown], run.weights[shown], returns[shown],
            jnp.broadcast_to(learner.epsilon(step), (self.recorded,)),
            jnp.broadcast_to(state.loss, (self.recorded,)),
            envs=self.num_envs, recorded=self.recorded,
        )  # fmt: skip
        env_episodes = run.env_episodes + ended.astype(int)
        following = self.weights(run.schedule, state.key, env_episodes, step + self.num_envs)
        new = ended[:, None] | self.schedule.changes_within_episodes
        taken = RolloutStep(
            observations, actions, transition.reward, transition.terminated, transition.truncated,
            run.weights, values, self._reached(state.online, transition, run.weights),
        )  # fmt: skip
        run = ParallelState(
            learner=state,
            episode=episode,
            env_episodes=env_episodes,
            episodes=run.episodes + ended[shown].sum(),
            schedule=run.schedule,
            weights=jnp.where(new, following, run.weights),
            returns=jnp.where(ended[:, None], 0.0, returns),
        )
        return run, (taken, info)

    def _reached(self, network: Any, transition: Any, weights: Array) -> Array:
        """Values of the states in which episodes were truncated; they are few, so mostly none."""
        # A conditional of a batch must not close over arrays, not even an environment's own.
        arrays, static = eqx.partition((self, network), eqx.is_array)

        def evaluate(_: Array, arrays: Any, states: Any, weights: Array) -> Array:
            driver, network = eqx.combine(arrays, static)
            return driver.learner.values(network, jax.vmap(driver.env.observe)(states), weights)

        none, needed = jnp.zeros_like(weights), transition.truncated.any()
        return cond_any(needed, evaluate, none, arrays, transition.next_state, weights)

    def cycle(self, run: ParallelState, start: Int[Array, ""]) -> tuple[ParallelState, StepInfo]:
        """A rollout, and what is learned from it."""
        steps = start + self.num_envs * jnp.arange(self.rollout)
        run, (taken, infos) = jax.lax.scan(lambda *given: self.step(*given), run, steps)
        observations = jax.vmap(self.env.observe)(run.episode.state)
        last = self.learner.values(run.learner.online, observations, run.weights)
        end = start + self.num_envs * self.rollout
        learner = self.learner.learn(run.learner, Rollout.of(taken, last), end)
        return eqx.tree_at(lambda r: r.learner, run, learner), infos

    def advance(
        self, runs: ParallelState, start: int, stop: int, learning: bool
    ) -> tuple[ParallelState, StepInfo]:
        """Take all runs from step `start` to `stop`; the runs are donated."""
        del learning
        cycles = (stop - start) // (self.num_envs * self.rollout)
        return run_rollouts((self, ChunkSpec(jnp.asarray(start), cycles, True)), runs)


@eqx.filter_jit(donate="all-except-first")
def run_rollouts(
    program: tuple[ParallelDriver, ChunkSpec], runs: ParallelState
) -> tuple[ParallelState, StepInfo]:
    """Take all runs some cycles further; the runs are donated.

    The step infos have a leading axis of steps, environment by environment, then one of runs.
    """
    driver, chunk = program
    length = driver.num_envs * driver.rollout

    def one(run: ParallelState) -> tuple[ParallelState, StepInfo]:
        starts = chunk.start + length * jnp.arange(chunk.cycles)
        return jax.lax.scan(lambda *given: driver.cycle(*given), run, starts)

    every = partial(jax.lax.map, one) if jax.default_backend() == "cpu" else jax.vmap(one)
    runs, infos = every(runs)

    def flat(leaf: Array) -> Array:
        leaf = jnp.moveaxis(leaf, 0, 3)  # cycles, steps, environments, runs
        return leaf.reshape(-1, *leaf.shape[3:])

    return runs, jax.tree.map(flat, infos)
