"""What a replay buffer stores of a native environment's step: states, not frames.

A frame is a pure function of the state, so it is rendered again, bit for bit, when the step is
sampled. A step of Minecart takes about a hundred bytes instead of the 27,648 of its four frames.
"""

from typing import Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int8, Num

from windvane.envs.environment import Environment
from windvane.envs.episodes import Transition

State = TypeVar("State")


class Experience(eqx.Module, Generic[State]):
    """A step to learn from. If the episode was truncated, `terminated` is false."""

    state: State
    action: Int8[Array, "*batch"]
    reward: Float[Array, "*batch objectives"]
    next_state: State
    terminated: Bool[Array, "*batch"]

    @staticmethod
    def of(transition: Transition[State]) -> "Experience[State]":
        """The parts of a transition that learning needs."""
        return Experience(
            transition.state,
            transition.action.astype(jnp.int8),
            transition.reward,
            transition.next_state,
            transition.terminated,
        )

    def frames(self, env: Environment[State]) -> Num[Array, "..."]:
        """The frames of both observations: three, of which the middle one is in the observations
        before and after the step, or two feature vectors.
        """
        if env.observation == "features":
            return jnp.stack([env.observe(self.state), env.observe(self.next_state)])
        previous, current = env.views(self.state)
        _, following = env.views(self.next_state)
        return jnp.stack([env.frame(view) for view in (previous, current, following)])

    def observations(self, env: Environment[State]) -> tuple[Num[Array, "..."], Num[Array, "..."]]:
        """The observations before and after the step."""
        frames = self.frames(env)
        if env.observation == "features":
            return frames[0], frames[1]
        return frames[:-1], frames[1:]
