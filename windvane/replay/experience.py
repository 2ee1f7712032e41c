"""What a native environment's step leaves in a replay buffer: states, not pictures.

A picture is a pure function of the state, so it is drawn again when the step is sampled, and comes
out the same to the last bit. A step of Minecart takes about a hundred bytes instead of the 27,648
of its four frames.
"""

from typing import Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int8, Num

from windvane.envs.environment import Environment, require_pixels
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

    def moments(self, env: Environment[State]) -> Num[Array, "..."]:
        """What there was to see, moment by moment: three frames, the middle one of which is in the
        observations before and after the step, or two feature vectors.
        """
        if env.observation == "features":
            return jnp.stack([env.observe(self.state), env.observe(self.next_state)])
        drawn = require_pixels(env)
        previous, current = drawn.views(self.state)
        _, following = drawn.views(self.next_state)
        return jnp.stack([drawn.frame(view) for view in (previous, current, following)])

    def observe(self, env: Environment[State]) -> tuple[Num[Array, "..."], Num[Array, "..."]]:
        """What the agent saw before and after the step."""
        moments = self.moments(env)
        if env.observation == "features":
            return moments[0], moments[1]
        return moments[:-1], moments[1:]
