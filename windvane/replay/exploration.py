"""Exploration-based replay (EXP): half the newest transitions, half those whose action was furthest
from greedy.
"""

import math
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.batching import cond_any
from windvane.replay.buffer import Rows, ScoredReplay, check_buffer
from windvane.replay.setup import ReplaySetup


class ExplorationReplayState(eqx.Module):
    """A ring and a collection; `scores` are those of the collection, -infinity where it is free.

    `lowest` is the lowest score of each block.
    """

    rows: Rows
    added: Int[Array, ""]
    scores: Float[Array, "blocks block"]
    lowest: Float[Array, " blocks"]


@final
class ExplorationReplay(ScoredReplay[ExplorationReplayState]):
    """Keeps the newest transitions and, of those that left the ring, the most exploratory.

    The score is max_a Q.w - Q(a).w under the weights that are active when the transition leaves.
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
    def build(setup: ReplaySetup) -> "ExplorationReplay":
        """For the registry."""
        return ExplorationReplay(setup.capacity, **setup.priorities)

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> ExplorationReplayState:
        """Nothing held. The key is not used."""
        del key
        rows = self.empty_rows(example, self.capacity)
        size = self.capacity - self.ring_capacity
        # As many blocks as scores per block: two short searches find the lowest score.
        block = math.isqrt(size - 1) + 1
        blocks = -(-size // block)
        # Padding has the score infinity, so that it is never replaced.
        scores = jnp.where(jnp.arange(blocks * block) < size, -jnp.inf, jnp.inf)
        scores = scores.reshape(blocks, block)
        return ExplorationReplayState(rows, jnp.zeros((), int), scores, scores.min(1))

    def leaving(self, state: ExplorationReplayState) -> PyTree[Array]:
        """The transition that the next `add_scored` evicts from the ring, once the ring is full."""
        index = state.added % self.ring_capacity
        return jax.tree.map(lambda leaf: leaf[0], state.rows.read(index[None]))

    def add_scored(
        self,
        state: ExplorationReplayState,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""],
    ) -> ExplorationReplayState:
        """Keep the leaving transition if its `score` exceeds the lowest kept, and replace that one;
        among equal scores, the one with the smallest index.
        """
        del ended
        ring = self.ring_capacity
        index = state.added % ring
        block = jnp.argmin(state.lowest)
        within = jnp.argmin(state.scores[block])
        better = (state.added >= ring) & (score > state.lowest[block])
        # Separate from the read below, the update is in place.
        scores = cond_any(better, _set_score, state.scores, block, within, score)
        lowest = state.lowest.at[block].set(scores[block].min())
        to = jnp.where(better, ring + block * state.scores.shape[1] + within, self.capacity)
        rows = state.rows.replace(index, transition, to)
        return ExplorationReplayState(rows, state.added + 1, scores, lowest)

    def write_index(self, state: ExplorationReplayState) -> Int[Array, ""]:
        """The index after the newest."""
        return state.added % self.ring_capacity

    def size(self, state: ExplorationReplayState) -> Int[Array, ""]:
        """Number of transitions held."""
        collected = (state.scores > -jnp.inf).sum() - (state.scores == jnp.inf).sum()
        return jnp.minimum(state.added, self.ring_capacity) + collected


def _set_score(
    scores: Float[Array, "blocks block"],
    block: Int[Array, ""],
    within: Int[Array, ""],
    score: Float[Array, ""],
) -> Float[Array, "blocks block"]:
    return scores.at[block, within].set(score)
