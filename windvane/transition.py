"""One step of an episode, as drivers hand it to a learner."""

from typing import Generic, TypeVar

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

State = TypeVar("State")


class Transition(eqx.Module, Generic[State]):
    """A step from one state to the next. A state is whatever the learner's codec understands: a
    native environment's state, or the frames of an observation.

    `next_state` is where the step really led, also when the episode ended there and the driver
    began another: bootstrap from it unless `terminated`.
    """

    state: State
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch objectives"]
    next_state: State
    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]

    @property
    def ended(self) -> Bool[Array, "*batch"]:
        """Whether the episode ended with this step, one way or the other."""
        return self.terminated | self.truncated
