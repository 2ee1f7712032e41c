"""Plans, which are policies one can execute in a native environment, and rollouts of episodes.

What may not live here: how plans are found (see `windvane.oracle`) or learned (see `policy`).
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from windvane.envs.environment import Environment


def discount(gamma: Float[Array, ""], steps: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
    """`gamma` to the power of `steps`."""
    return gamma ** steps.astype(gamma.dtype)


class Plan(eqx.Module):
    """A policy with a memory. Plans of one coverage set have equal shapes: they stack and vmap."""

    @abstractmethod
    def start(self) -> Any:
        """The memory at the beginning of an episode."""

    @abstractmethod
    def act(self, memory: Any, state: Any) -> tuple[Int[Array, ""], Any]:
        """The action to take in the environment's `state`, and the memory afterwards."""


class OpenLoopPlan(Plan):
    """A fixed list of actions; `length` of them count, the rest is padding."""

    actions: Int[Array, " steps"]
    length: Int[Array, ""]

    def start(self) -> Int[Array, ""]:
        """No action taken yet."""
        return jnp.zeros((), int)

    def act(self, memory: Int[Array, ""], state: Any) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The next action of the list, whatever the state; the last one repeats."""
        del state
        return self.actions[jnp.minimum(memory, self.length - 1)], memory + 1


class EpisodeResult(eqx.Module):
    """Discounted return, length and end of one episode; not terminated means truncated."""

    returns: Float[Array, " objectives"]
    length: Int[Array, ""]
    terminated: Bool[Array, ""]


def rollout_episode(
    env: Environment, plan: Plan, gamma: float | Array, key: Key[Array, ""]
) -> EpisodeResult:
    """Follow `plan` for one episode, truncated at the environment's time limit.

    Pure; vmap over keys. Returns are discounted by `gamma` and in the environment's own units.
    """
    reset_key, step_key = jax.random.split(key)
    state = env.reset(reset_key)
    nothing = jnp.zeros(env.num_objectives, jnp.result_type(float))
    first = (state, plan.start(), EpisodeResult(nothing, jnp.zeros((), int), jnp.asarray(False)))

    def running(carry: tuple[Any, Any, EpisodeResult]) -> Bool[Array, ""]:
        return ~carry[2].terminated & (carry[2].length < env.time_limit)

    def step(carry: tuple[Any, Any, EpisodeResult]) -> tuple[Any, Any, EpisodeResult]:
        state, memory, so_far = carry
        action, memory = plan.act(memory, state)
        key = jax.random.fold_in(step_key, so_far.length)
        state, reward, terminated = env.step(state, action, key)
        discounted = reward * discount(jnp.asarray(gamma, reward.dtype), so_far.length)
        result = EpisodeResult(so_far.returns + discounted, so_far.length + 1, terminated)
        return state, memory, result

    return jax.lax.while_loop(running, step, first)[2]


def rollout_episodes(
    env: Environment, plan: Plan, gamma: float, key: Key[Array, ""], episodes: int
) -> EpisodeResult:
    """Roll out `episodes` independent episodes at once; every field gets a leading axis."""
    return _rollout_episodes(env, plan, jnp.asarray(gamma), jax.random.split(key, episodes))


@eqx.filter_jit
def _rollout_episodes(env: Environment, plan: Plan, gamma: Array, keys: Array) -> EpisodeResult:
    return jax.vmap(lambda key: rollout_episode(env, plan, gamma, key))(keys)
