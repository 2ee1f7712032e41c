"""Codecs: what a replay buffer stores of a transition, and what networks see of it again."""

from abc import abstractmethod
from typing import Any, Generic, TypeVar, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from windvane.spec import EnvSpec
from windvane.transition import Transition

State = TypeVar("State")


class TransitionCodec(eqx.Module, Generic[State]):
    """The bridge from a driver's states to rows of a replay buffer and to a network's input.

    A row is any pytree of arrays with the fields `action`, `reward` and `terminated`.
    """

    @abstractmethod
    def blank(self) -> Any:
        """A row of zeros, which fixes shapes and types."""

    @abstractmethod
    def encode(self, transition: Transition[State]) -> Any:
        """What is stored of a transition."""

    @abstractmethod
    def frames(self, row: Any) -> Num[Array, " k *frame"]:
        """The frames of both observations of a row, oldest first: one more than are stacked."""

    @abstractmethod
    def observe(self, state: State) -> Num[Array, "..."]:
        """The observation of a state."""

    @abstractmethod
    def first_observation(self, row: Any) -> Num[Array, "..."]:
        """The observation before the step that a row stores."""


def action_dtype(num_actions: int) -> Any:
    """The smallest type that holds all actions."""
    return jnp.int8 if num_actions <= np.iinfo(np.int8).max + 1 else jnp.int16


class FrameRow(eqx.Module):
    """A transition with the frames that its two observations consist of."""

    frames: Num[Array, " k *frame"]
    action: Int[Array, ""]
    reward: Float[Array, " objectives"]
    terminated: Bool[Array, ""]


@final
class FrameCodec(TransitionCodec[Array]):
    """Stores frames as they were seen; a state is an observation."""

    spec: EnvSpec = eqx.field(static=True)

    def blank(self) -> FrameRow:
        """Zeros."""
        spec = self.spec
        return FrameRow(
            jnp.zeros((spec.stack + 1, *spec.frame.shape), spec.frame.dtype),
            jnp.zeros((), action_dtype(spec.num_actions)),
            jnp.zeros(spec.num_objectives),
            jnp.asarray(False),
        )

    def encode(self, transition: Transition[Array]) -> FrameRow:
        """Observations before and after share all frames but one."""
        before, after = (
            state.reshape(self.spec.stack, *self.spec.frame.shape)
            for state in (transition.state, transition.next_state)
        )
        return FrameRow(
            jnp.concatenate([before, after[-1:]]),
            transition.action.astype(action_dtype(self.spec.num_actions)),
            transition.reward,
            transition.terminated,
        )

    def frames(self, row: FrameRow) -> Num[Array, " k *frame"]:
        """As they were stored."""
        return row.frames

    def observe(self, state: Array) -> Num[Array, "..."]:
        """A state is an observation."""
        return state

    def first_observation(self, row: FrameRow) -> Num[Array, "..."]:
        """All frames but the last."""
        return row.frames[:-1].reshape(self.spec.observation_shape)
