"""Drivers that know about time: reset an episode, step it with automatic resets, roll out a policy.

An environment never looks at its `time_limit`; these functions do. An episode that reaches the
limit is truncated, which is kept apart from termination: the state it leaves behind still has a
future.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Int32, Key

from windvane.batching import where
from windvane.envs.environment import Environment
from windvane.transition import Transition

State = TypeVar("State")


class EpisodeState(eqx.Module, Generic[State]):
    """A running episode: the environment's state and the number of steps taken so far."""

    state: State
    time: Int32[Array, ""]


def reset_episode(env: Environment[State], key: Key[Array, ""]) -> EpisodeState[State]:
    """Begin an episode."""
    return EpisodeState(env.reset(key), jnp.zeros((), jnp.int32))


def is_truncated(
    terminated: Bool[Array, ""], time: Int32[Array, ""], time_limit: int
) -> Bool[Array, ""]:
    """Whether a step taken at `time` is the last that the limit allows; termination comes first."""
    return ~terminated & (time + 1 >= time_limit)


def autoreset(
    ended: Bool[Array, ""],
    episode: EpisodeState[State],
    next_state: State,
    new_episode: EpisodeState[State],
) -> EpisodeState[State]:
    """The episode after a step that led to `next_state`: `new_episode` where the step ended it."""
    return where(ended, new_episode, EpisodeState(next_state, episode.time + 1))


def step_autoreset(
    env: Environment[State],
    episode: EpisodeState[State],
    action: Int[Array, ""],
    key: Key[Array, ""],
) -> tuple[EpisodeState[State], Transition[State]]:
    """Take one step, and begin a new episode at once where it ends one.

    Returns the episode to continue with and the transition.
    """
    step_key, reset_key = jax.random.split(key)
    next_state, reward, terminated = env.step(episode.state, action, step_key)
    truncated = is_truncated(terminated, episode.time, env.time_limit)
    transition = Transition(episode.state, action, reward, next_state, terminated, truncated)
    new_episode = reset_episode(env, reset_key)
    return autoreset(transition.ended, episode, next_state, new_episode), transition


def rollout(
    env: Environment[State],
    policy: Callable[[State, Key[Array, ""]], Int[Array, ""]],
    key: Key[Array, ""],
    steps: int,
) -> Transition[State]:
    """Follow `policy` for `steps` steps, episode after episode; the result has a leading time axis.

    The policy is given the state, so that it may look at more than an agent would; one that
    should not begins with `env.observe(state)`.
    """
    reset_key, run_key = jax.random.split(key)

    def one(
        episode: EpisodeState[State], key: Key[Array, ""]
    ) -> tuple[EpisodeState[State], Transition[State]]:
        policy_key, step_key = jax.random.split(key)
        return step_autoreset(env, episode, policy(episode.state, policy_key), step_key)

    keys = jax.random.split(run_key, steps)
    return jax.lax.scan(one, reset_episode(env, reset_key), keys)[1]
