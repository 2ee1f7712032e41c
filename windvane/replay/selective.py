"""Selective replay (SEL, "distribution matching"): half the newest transitions, half a uniform
sample of all older ones.
"""

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PyTree

from windvane.replay.buffer import ReplayBuffer, Rows, check_buffer
from windvane.replay.setup import ReplaySetup


class SelectiveReplayState(eqx.Module):
    """Half the rows are a ring, the rest a reservoir; `added` counts all transitions ever added."""

    rows: Rows
    added: Int[Array, ""]
    key: Key[Array, ""]


@final
class SelectiveReplay(ReplayBuffer[SelectiveReplayState]):
    """Keeps the newest transitions and a reservoir sample of those that left the ring.

    It works on single transitions, so trajectories are torn apart, which the paper criticises.
    """

    capacity: int = eqx.field(static=True)
    priority_exponent: float
    priority_offset: float

    def __init__(
        self, capacity: int, *, priority_exponent: float = 2.0, priority_offset: float = 0.01
    ):
        """The defaults are the paper's exponent and offset."""
        self.capacity = check_buffer(capacity, priority_exponent, priority_offset, smallest=2)
        self.priority_exponent, self.priority_offset = priority_exponent, priority_offset

    @staticmethod
    def build(setup: ReplaySetup) -> "SelectiveReplay":
        """For the registry."""
        return SelectiveReplay(setup.capacity, **setup.priorities)

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> SelectiveReplayState:
        """Nothing held; `key` determines what the reservoir will keep."""
        rows = self.empty_rows(example, self.capacity)
        return SelectiveReplayState(rows, jnp.zeros((), int), key)

    def add(
        self, state: SelectiveReplayState, transition: PyTree[Array], ended: Bool[Array, ""]
    ) -> SelectiveReplayState:
        """Overwrite the oldest transition of the ring, which may enter the reservoir first."""
        del ended
        ring = self.ring_capacity
        index = state.added % ring
        leaving = state.added - ring
        chosen = reservoir_index(state.key, leaving, self.capacity - ring)
        to = jnp.where(leaving >= 0, ring + chosen, self.capacity)
        rows = state.rows.replace(index, transition, to)
        return SelectiveReplayState(rows, state.added + 1, state.key)

    def write_index(self, state: SelectiveReplayState) -> Int[Array, ""]:
        """The index after the newest."""
        return state.added % self.ring_capacity

    def size(self, state: SelectiveReplayState) -> Int[Array, ""]:
        """Number of transitions held."""
        return jnp.minimum(state.added, self.capacity)


def reservoir_index(key: Key[Array, ""], number: Int[Array, ""], size: int) -> Int[Array, ""]:
    """The index in a reservoir of item `number` (from 0); `size` or more if it is not kept."""
    drawn = jax.random.randint(jax.random.fold_in(key, number), (), 0, jnp.maximum(number, 0) + 1)
    return jnp.where(number < size, number, jnp.where(drawn < size, drawn, 2 * size))
