"""Exploration-based replay (EXP): half the newest transitions, half those whose action was furthest
from greedy.
"""

import math
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.batching import when
from windvane.errors import InputError
from windvane.replay.buffer import ReplayBuffer, Rows, check_buffer


class ExplorationReplayState(eqx.Module):
    """A ring and a collection; `scores` are those of the collection, free places -infinity."""

    rows: Rows
    added: Int[Array, ""]
    scores: Float[Array, "blocks block"]
    lowest: Float[Array, " blocks"]


@final
class ExplorationReplay(ReplayBuffer[ExplorationReplayState]):
    """Keeps the newest transitions and, of those that left them, the most exploratory.

    How exploratory a transition is, max_a Q.w - Q(a).w under the weights active when it leaves,
    only the agent knows: it reads `leaving` and hands the `score` to `add`.
    """

    capacity: int = eqx.field(static=True)
    alpha: float
    epsilon: float

    def __init__(self, capacity: int, *, alpha: float = 2.0, epsilon: float = 0.01):
        """The paper's exponent and offset are the defaults."""
        self.capacity = check_buffer(capacity, alpha, epsilon, least=2)
        self.alpha, self.epsilon = alpha, epsilon

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> ExplorationReplayState:
        """Nothing held. The key is not used."""
        del key
        rows = self.empty_rows(example, self.capacity)
        size = self.capacity - self.ring_capacity
        # As many blocks as a block has places: the lowest of all is found in two short looks.
        block = math.isqrt(size - 1) + 1
        blocks = -(-size // block)
        # Places beyond the collection look full of the best, so that nothing goes there.
        scores = jnp.where(jnp.arange(blocks * block) < size, -jnp.inf, jnp.inf)
        scores = scores.reshape(blocks, block)
        return ExplorationReplayState(rows, jnp.zeros((), int), scores, scores.min(1))

    def leaving(self, state: ExplorationReplayState) -> PyTree[Array]:
        """The transition that the next `add` takes out of the ring, once the ring is full."""
        place = state.added % self.ring_capacity
        return jax.tree.map(lambda leaf: leaf[0], state.rows.read(place[None]))

    def add(
        self,
        state: ExplorationReplayState,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""] | None = None,
    ) -> ExplorationReplayState:
        """Keep the leaving transition if its `score` beats the lowest kept; of equal scores the one
        in the first place goes.
        """
        del ended
        if score is None:
            raise InputError("exploration replay needs the score of the leaving transition")
        ring = self.ring_capacity
        place = state.added % ring
        block = jnp.argmin(state.lowest)
        within = jnp.argmin(state.scores[block])
        better = (state.added >= ring) & (score > state.lowest[block])
        # On its own, and not mixed with the reading below, the change is made in place.
        scores = when(better, _set_score, state.scores, block, within, score)
        lowest = state.lowest.at[block].set(scores[block].min())
        to = jnp.where(better, ring + block * state.scores.shape[1] + within, self.capacity)
        rows = state.rows.replace(place, transition, to)
        return ExplorationReplayState(rows, state.added + 1, scores, lowest)

    def next_place(self, state: ExplorationReplayState) -> Int[Array, ""]:
        """Right after the newest."""
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
