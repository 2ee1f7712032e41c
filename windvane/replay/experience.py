"""What a native environment's step leaves in a replay buffer: states, not pictures.

A picture is a pure function of the state, so it is drawn again when the step is sampled, and comes
out the same to the last bit. A step of Minecart takes about a hundred bytes instead of the 27,648
of its four frames.
"""

from typing import Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int8, Num, UInt8

from windvane.envs.environment import Environment
from windvane.envs.episodes import Transition

State = TypeVar("State")


class Experience(eqx.Module, Generic[State]):
    """A step to learn from. After a truncated episode `terminated` is false: there is a future."""

    state: State
    action: Int8[Array, "*batch"]
    reward: Float[Array, "*batch objectives"]
    next_state: State
    terminated: Bool[Array, "*batch"]

    @staticmethod
    def of(transition: Transition[State]) -> "Experience[State]":
        """What is worth keeping of a transition."""
        return Experience(
            transition.state,
            transition.action.astype(jnp.int8),
            transition.reward,
            transition.next_state,
            transition.terminated,
        )

    def observe(self, env: Environment[State]) -> tuple[Num[Array, "..."], Num[Array, "..."]]:
        """What the agent saw before and after the step."""
        if env.observation == "features":
            return env.observe(self.state), env.observe(self.next_state)
        frames = self.frames(env)
        return frames[:2], frames[1:]

    def frames(self, env: Environment[State]) -> UInt8[Array, "3 48 48 3"]:
        """The three frames of both observations: the middle one is in either."""
        previous, current = env.views(self.state)
        _, following = env.views(self.next_state)
        return jnp.stack([env.frame(view) for view in (previous, current, following)])
