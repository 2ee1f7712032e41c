"""The fused driver: a learner, a native environment and a schedule in one compiled chunk, vmapped
over runs. Nothing crosses to the host inside a chunk.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.envs.environment import Environment
from windvane.envs.episodes import EpisodeState, reset_episode, step_autoreset
from windvane.learning.learner import (
    Learner,
    LearnerState,
    StepDraws,
    reset_key,
    weights_key,
)
from windvane.schedules import WeightSchedule

AnyArray = Array | np.ndarray


class StepInfo(eqx.Module):
    """What the host learns about one step: all that an episode's record needs when it `ended`.

    Arrays are JAX's in the fused driver and NumPy's in the host driver.
    """

    ended: Bool[AnyArray, "*batch"]
    length: Int[AnyArray, "*batch"]
    weights: Float[AnyArray, "*batch objectives"]
    returns: Float[AnyArray, "*batch objectives"]
    epsilon: Float[AnyArray, "*batch"]
    loss: Float[AnyArray, "*batch"]
    envs: int = eqx.field(static=True, default=1)
    """Environments that take a step each before the next row of any of them."""
    recorded: int = eqx.field(static=True, default=1)
    """How many of these have rows here, one after another."""

    @property
    def steps(self) -> int:
        """Steps that the rows tell of."""
        return len(np.asarray(self.ended)) // self.recorded * self.envs

    def step_numbers(self, rows: Int[np.ndarray, " n"], start: int) -> Int[np.ndarray, " n"]:
        """The number of steps taken after each of these rows, from `start` before the first."""
        return start + rows // self.recorded * self.envs + rows % self.recorded + 1


class RunState(eqx.Module):
    """Everything that one run is: its learner and its world."""

    learner: LearnerState
    episode: EpisodeState[Any]
    episodes: Int[Array, ""]
    schedule: PyTree[Array]
    returns: Float[Array, " objectives"]
    numbers: dict[str, Array] | None = None
    """Settings that are this run's own (see `Learner.with_numbers`)."""


class FusedDriver(eqx.Module):
    """A learner in a native environment."""

    learner: Learner
    env: Environment[Any]
    schedule: WeightSchedule

    def init(
        self,
        seed: Int[Array, ""],
        schedule: PyTree[Array] = None,
        network: PyTree | None = None,
        numbers: dict[str, Array] | None = None,
    ) -> RunState:
        """A run before its first step. `schedule` are arrays to use instead of the schedule's own,
        for runs whose weights change in another way than those beside them, and `numbers` likewise
        are settings to use instead of the learner's own; `network` is one to start with.
        """
        key = jax.random.key(seed)
        zero = jnp.zeros((), int)
        schedule = eqx.filter(self.schedule, eqx.is_array) if schedule is None else schedule
        weights = self.weights(schedule, key, zero, zero)
        return RunState(
            learner=self.learner.with_numbers(numbers).init(key, weights[None], network),
            episode=reset_episode(self.env, reset_key(key)),
            episodes=zero,
            schedule=schedule,
            returns=jnp.zeros(self.env.num_objectives),
            numbers=numbers,
        )

    def step(
        self, run: RunState, step: Int[Array, ""], draws: StepDraws
    ) -> tuple[RunState, StepInfo]:
        """Act once, and observe what comes of it."""
        # A replay buffer that transitions are added to must be static: it is part of conditionals.
        parts, learner = self.learner.with_numbers(run.numbers, replay=False), run.learner
        h = parts.hyperparameters
        with jax.named_scope("act"):
            action = parts.act(learner, run.episode.state, step, draws)
        with jax.named_scope("environment"):
            episode, transition = step_autoreset(self.env, run.episode, action, draws.env_key)
        ended, time, weights = transition.ended, run.episode.time, learner.active_weights[0]
        reward = transition.reward * h.reward_scale
        returns = run.returns + h.gamma ** time.astype(jnp.float32) * reward
        info = StepInfo(ended, time + 1, weights, returns, parts.epsilon(step), learner.loss)
        episodes = run.episodes + ended.astype(int)
        following = self.weights(run.schedule, learner.key, episodes, step + 1)
        following = jnp.where(ended | self.schedule.changes_within_episodes, following, weights)
        with jax.named_scope("observe"):
            learner = parts.observe(learner, transition, episode.state, following, draws)
        run = RunState(
            learner=learner,
            episode=episode,
            episodes=episodes,
            schedule=run.schedule,
            returns=jnp.where(ended, 0.0, returns),
            numbers=run.numbers,
        )
        return run, info

    def weights(
        self,
        arrays: PyTree[Array],
        key: Key[Array, ""],
        episode: Int[Array, ""],
        step: Int[Array, ""],
    ) -> Float[Array, " objectives"]:
        """The weights of an episode that begins now."""
        schedule = eqx.combine(arrays, self.schedule)
        return schedule.weights(weights_key(key), episode, step)

    def advance(
        self, runs: RunState, start: int, stop: int, learning: bool
    ) -> tuple[RunState, StepInfo]:
        """Take all runs from step `start` to `stop`; the runs are donated."""
        cycles = (stop - start) // self.learner.hyperparameters.update_interval
        return run_chunk((self, ChunkSpec(jnp.asarray(start), cycles, learning)), runs)


class ChunkSpec(eqx.Module):
    """Steps to take in one compiled program: `cycles` times `update_interval` from `start` on."""

    start: Int[Array, ""]
    cycles: int = eqx.field(static=True)
    learning: bool = eqx.field(static=True)


@eqx.filter_jit(donate="all-except-first")
def run_chunk(program: tuple[FusedDriver, ChunkSpec], runs: RunState) -> tuple[RunState, StepInfo]:
    """Take all runs some cycles further; the runs are donated.

    The step infos have a leading axis of steps, then one of runs.
    """
    driver, chunk = program
    learner = driver.learner
    interval = learner.hyperparameters.update_interval
    # An accelerator waits less between steps that are laid out one after another; for the few
    # before learning starts that is not worth compiling.
    unroll = interval if chunk.learning and jax.default_backend() != "cpu" else 1

    def act(runs: RunState, inputs: tuple[Int[Array, ""], StepDraws]) -> tuple[RunState, StepInfo]:
        return jax.vmap(driver.step, (0, None, 0))(runs, *inputs)

    def learn(numbers: Any, state: LearnerState, step: Int[Array, ""]) -> LearnerState:
        return learner.with_numbers(numbers).learn(state, step)

    def cycle(runs: RunState, begin: Int[Array, ""]) -> tuple[RunState, StepInfo]:
        steps = begin + jnp.arange(interval)
        sample = jax.vmap(jax.vmap(learner.sample_draws, (0, None)), (None, 0))
        runs, infos = jax.lax.scan(
            act, runs, (steps, sample(runs.learner.key, steps)), unroll=unroll
        )
        state, end = runs.learner, begin + interval
        if chunk.learning:
            state = jax.vmap(learn, (0, 0, None))(runs.numbers, state, end)
        state = learner.copy_target(state, end // interval)
        return eqx.tree_at(lambda r: r.learner, runs, state), infos

    runs, infos = jax.lax.scan(cycle, runs, chunk.start + interval * jnp.arange(chunk.cycles))
    return runs, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), infos)
