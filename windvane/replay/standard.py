"""Standard replay: the newest transitions, first in first out."""

from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PyTree

from windvane.replay.buffer import ReplayBuffer, Rows, check_buffer
from windvane.replay.setup import ReplaySetup


class StandardReplayState(eqx.Module):
    """Rows used as a ring; `added` counts all transitions ever added."""

    rows: Rows
    added: Int[Array, ""]


@final
class StandardReplay(ReplayBuffer[StandardReplayState]):
    """Keeps the last `capacity` transitions."""

    capacity: int = eqx.field(static=True)
    priority_exponent: float
    priority_offset: float

    def __init__(
        self, capacity: int, *, priority_exponent: float = 2.0, priority_offset: float = 0.01
    ):
        """The defaults are the paper's exponent and offset."""
        self.capacity = check_buffer(capacity, priority_exponent, priority_offset)
        self.priority_exponent, self.priority_offset = priority_exponent, priority_offset

    @staticmethod
    def build(setup: ReplaySetup) -> "StandardReplay":
        """For the registry."""
        return StandardReplay(setup.capacity, **setup.priorities)

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> StandardReplayState:
        """Nothing held. The key is not used."""
        del key
        return StandardReplayState(
            self.empty_rows(example, self.capacity),
            jnp.zeros((), int),
        )

    def add(
        self, state: StandardReplayState, transition: PyTree[Array], ended: Bool[Array, ""]
    ) -> StandardReplayState:
        """Overwrite the oldest transition; `ended` is ignored."""
        del ended
        rows = state.rows.write(state.added % self.capacity, transition)
        return StandardReplayState(rows, state.added + 1)

    @property
    def ring_capacity(self) -> int:
        """The whole buffer is first-in first-out."""
        return self.capacity

    def write_index(self, state: StandardReplayState) -> Int[Array, ""]:
        """The index after the newest."""
        return state.added % self.ring_capacity

    def size(self, state: StandardReplayState) -> Int[Array, ""]:
        """Number of transitions held."""
        return jnp.minimum(state.added, self.capacity)
