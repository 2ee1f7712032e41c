"""Standard replay: the newest transitions, first in first out."""

from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.replay.buffer import ReplayBuffer, Rows, check_buffer


class StandardReplayState(eqx.Module):
    """Rows used as a ring: `added` counts all transitions ever added."""

    rows: Rows
    added: Int[Array, ""]


@final
class StandardReplay(ReplayBuffer[StandardReplayState]):
    """Keeps the last `capacity` transitions."""

    capacity: int = eqx.field(static=True)
    alpha: float
    epsilon: float

    def __init__(self, capacity: int, *, alpha: float = 2.0, epsilon: float = 0.01):
        """The paper's exponent and offset are the defaults."""
        self.capacity = check_buffer(capacity, alpha, epsilon)
        self.alpha, self.epsilon = alpha, epsilon

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> StandardReplayState:
        """Nothing held. The key is not used."""
        del key
        return StandardReplayState(
            self.empty_rows(example, self.capacity),
            jnp.zeros((), int),
        )

    def add(
        self,
        state: StandardReplayState,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""] | None = None,
    ) -> StandardReplayState:
        """Overwrite the oldest transition. Where episodes end makes no difference."""
        del ended, score
        rows = state.rows.write(state.added % self.capacity, transition)
        return StandardReplayState(rows, state.added + 1)

    @property
    def ring_capacity(self) -> int:
        """All of it is first-in first-out."""
        return self.capacity

    def next_place(self, state: StandardReplayState) -> Int[Array, ""]:
        """Right after the newest."""
        return state.added % self.ring_capacity

    def size(self, state: StandardReplayState) -> Int[Array, ""]:
        """Number of transitions held."""
        return jnp.minimum(state.added, self.capacity)
