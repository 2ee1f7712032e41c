"""Drivers that know about time: start an episode, advance it with resets, roll out a policy.

An environment never looks at its `time_limit`; these functions do. A cut at the limit is a
truncation, kept apart from termination: the state it leaves behind still has a future.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int32, Key

from windvane.batching import where
from windvane.envs.environment import Environment
from windvane.transition import Transition

State = TypeVar("State")


class EpisodeState(eqx.Module, Generic[State]):
    """A running episode: the environment's state and the number of steps taken so far."""

    state: State
    time: Int32[Array, ""]


def start(env: Environment[State], key: Key[Array, ""]) -> EpisodeState[State]:
    """Begin an episode."""
    return EpisodeState(env.reset(key), jnp.zeros((), jnp.int32))


def advance(
    env: Environment[State],
    episode: EpisodeState[State],
    action: Int[Array, ""],
    key: Key[Array, ""],
) -> tuple[EpisodeState[State], Transition[State]]:
    """Take one step, and begin a new episode at once where it ends one.

    Returns the episode to go on with and what happened.
    """
    step_key, reset_key = jax.random.split(key)
    next_state, reward, terminated = env.step(episode.state, action, step_key)
    truncated = ~terminated & (episode.time + 1 >= env.time_limit)
    transition = Transition(episode.state, action, reward, next_state, terminated, truncated)
    going_on = EpisodeState(next_state, episode.time + 1)
    return where(transition.ended, start(env, reset_key), going_on), transition


def rollout(
    env: Environment[State],
    policy: Callable[[State, Key[Array, ""]], Int[Array, ""]],
    key: Key[Array, ""],
    steps: int,
) -> Transition[State]:
    """Play `policy` for `steps` steps, episode after episode; the result has a leading time axis.

    The policy is given the state, so that it may look at more than an agent would; one that
    should not begins with `env.observe(state)`.
    """
    start_key, run_key = jax.random.split(key)

    def one(
        episode: EpisodeState[State], key: Key[Array, ""]
    ) -> tuple[EpisodeState[State], Transition[State]]:
        policy_key, advance_key = jax.random.split(key)
        return advance(env, episode, policy(episode.state, policy_key), advance_key)

    keys = jax.random.split(run_key, steps)
    return jax.lax.scan(one, start(env, start_key), keys)[1]
