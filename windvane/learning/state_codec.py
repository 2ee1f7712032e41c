"""The codec of native environments: it stores states, not pictures.

A picture is a pure function of the state, so it is rendered again when a row is sampled, and comes
out the same to the last bit. A step of Minecart takes about a hundred bytes instead of the 27,648
of its four frames.
"""

from typing import Any, Generic, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from windvane.envs.environment import Environment
from windvane.learning.codec import TransitionCodec, action_dtype
from windvane.transition import Transition

State = TypeVar("State")


class StateRow(eqx.Module, Generic[State]):
    """A transition as states. `terminated` is false after a truncated episode."""

    state: State
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch objectives"]
    next_state: State
    terminated: Bool[Array, "*batch"]


@final
class StateCodec(TransitionCodec[Any]):
    """Stores the states of a native environment."""

    env: Environment[Any]

    def blank(self) -> StateRow[Any]:
        """Zeros."""
        env = self.env

        def example(key: Array) -> Transition[Any]:
            state, action = env.reset(key), jnp.zeros((), int)
            following, reward, terminated = env.step(state, action, key)
            return Transition(state, action, reward, following, terminated, ~terminated)

        shapes = jax.eval_shape(example, jax.random.key(0))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return self.encode(zeros)

    def encode(self, transition: Transition[Any]) -> StateRow[Any]:
        """All but whether the episode was truncated."""
        return StateRow(
            transition.state,
            transition.action.astype(action_dtype(self.env.num_actions)),
            transition.reward,
            transition.next_state,
            transition.terminated,
        )

    def frames(self, row: StateRow[Any]) -> Num[Array, " k *frame"]:
        """Three images, the middle one of which is in both observations, or two feature vectors."""
        env = self.env
        if env.observation == "features":
            return jnp.stack([env.observe(row.state), env.observe(row.next_state)])
        previous, current = env.views(row.state)  # type: ignore[attr-defined]
        _, following = env.views(row.next_state)  # type: ignore[attr-defined]
        return jnp.stack([env.frame(view) for view in (previous, current, following)])  # type: ignore[attr-defined]

    def observe(self, state: Any) -> Num[Array, "..."]:
        """What the environment shows of a state."""
        return self.env.observe(state)

    def first_observation(self, row: StateRow[Any]) -> Num[Array, "..."]:
        """What the environment shows of the first state."""
        return self.env.observe(row.state)
