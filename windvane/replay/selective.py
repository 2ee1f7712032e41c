"""Selective replay (SEL, "distribution matching"): half the newest transitions, half a uniform
sample of all older ones.
"""

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.replay.buffer import ReplayBuffer, Rows, check_buffer


class SelectiveReplayState(eqx.Module):
    """Half the rows are a ring, the rest a reservoir; `added` counts all transitions."""

    rows: Rows
    added: Int[Array, ""]
    key: Key[Array, ""]


@final
class SelectiveReplay(ReplayBuffer[SelectiveReplayState]):
    """Keeps the newest transitions and a reservoir sample of those that left them.

    Works on single transitions: that this tears trajectories apart is what the paper criticises.
    """

    capacity: int = eqx.field(static=True)
    alpha: float
    epsilon: float

    def __init__(self, capacity: int, *, alpha: float = 2.0, epsilon: float = 0.01):
        """The paper's exponent and offset are the defaults."""
        self.capacity = check_buffer(capacity, alpha, epsilon, least=2)
        self.alpha, self.epsilon = alpha, epsilon

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> SelectiveReplayState:
        """Nothing held; `key` decides what the reservoir will keep."""
        rows = self.empty_rows(example, self.capacity)
        return SelectiveReplayState(rows, jnp.zeros((), int), key)

    def add(
        self,
        state: SelectiveReplayState,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""] | None = None,
    ) -> SelectiveReplayState:
        """Put the oldest of the ring into the reservoir, if chance has it, and overwrite it."""
        del ended, score
        ring = self.ring_capacity
        place = state.added % ring
        leaving = state.added - ring
        chosen = reservoir_place(state.key, leaving, self.capacity - ring)
        to = jnp.where(leaving >= 0, ring + chosen, self.capacity)
        rows = state.rows.replace(place, transition, to)
        return SelectiveReplayState(rows, state.added + 1, state.key)

    def next_place(self, state: SelectiveReplayState) -> Int[Array, ""]:
        """Right after the newest."""
        return state.added % self.ring_capacity

    def size(self, state: SelectiveReplayState) -> Int[Array, ""]:
        """Number of transitions held."""
        return jnp.minimum(state.added, self.capacity)


def reservoir_place(key: Key[Array, ""], index: Int[Array, ""], size: int) -> Int[Array, ""]:
    """Where item number `index` (from 0) goes in a reservoir; `size` or more: nowhere."""
    drawn = jax.random.randint(jax.random.fold_in(key, index), (), 0, jnp.maximum(index, 0) + 1)
    return jnp.where(index < size, index, jnp.where(drawn < size, drawn, 2 * size))
