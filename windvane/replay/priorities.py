"""Sampling in proportion to priorities, with sums per block and per block of blocks.

A draw picks a top block, a block in it and an index in that, each in proportion to its sum; a
change of priorities sums up only the affected blocks again. Both cost the same for ten thousand
transitions and for a million. Within a block, sums are pairwise and every choice between two halves
uses a fresh random number, so that a priority of 1e-4 keeps its share beside one of 1e4, where
cumulative sums in float32 would lose it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from windvane.errors import LARGEST_COUNT, require_positive_int

BLOCK = 128
"""Priorities per block; a power of two."""

_HALVINGS = BLOCK.bit_length() - 1

DRAWS = 1 + 2 * _HALVINGS
"""Random numbers per sampled index."""


class Priorities(eqx.Module):
    """Priorities of indices 0 to capacity-1, with the sums that sampling needs.

    An index of priority 0 is never sampled.
    """

    values: Float[Array, "blocks block"]
    block_sums: Float[Array, "tops block"]
    top_sums: Float[Array, " tops"]

    @staticmethod
    def zeros(capacity: int) -> "Priorities":
        """No index can be sampled."""
        require_positive_int("the capacity of a replay buffer", capacity, LARGEST_COUNT)
        tops = -(-capacity // BLOCK**2)
        return Priorities(
            jnp.zeros((tops * BLOCK, BLOCK)), jnp.zeros((tops, BLOCK)), jnp.zeros(tops)
        )

    @staticmethod
    def of(values: Float[Array, "blocks block"]) -> "Priorities":
        """Priorities with these values; computes all sums."""
        block_sums = _sum(values).reshape(-1, BLOCK)
        return Priorities(values, block_sums, _sum(block_sums))

    @property
    def total(self) -> Float[Array, ""]:
        """Sum of all priorities."""
        return self.top_sums.sum()

    def __getitem__(self, indices: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Priorities at some indices."""
        return self.values[indices // BLOCK, indices % BLOCK]

    def set(self, indices: Int[Array, " n"], values: Float[Array, " n"]) -> "Priorities":
        """Set the priorities at some indices; indices out of range are ignored."""
        block, top = indices // BLOCK, indices // BLOCK**2
        new = self.values.at[block, indices % BLOCK].set(values, mode="drop")
        sums = _sum(new.at[block].get(mode="fill", fill_value=0.0))
        block_sums = self.block_sums.at[top, block % BLOCK].set(sums, mode="drop")
        sums = _sum(block_sums.at[top].get(mode="fill", fill_value=0.0))
        return Priorities(new, block_sums, self.top_sums.at[top].set(sums, mode="drop"))

    def move_segment(
        self,
        source: Int[Array, ""],
        target: Int[Array, ""],
        length: Int[Array, ""],
        kept: Bool[Array, ""],
    ) -> "Priorities":
        """Move `length` neighbouring priorities, at most `BLOCK`, and set the old ones to 0.

        If not `kept`, the old ones are set to 0 and nothing else changes.
        """
        moved = self[source + jnp.arange(BLOCK)]

        # A loop, because the compiler would fuse two consecutive updates and copy everything.
        def change(index: Int[Array, ""], carry: tuple[Any, Array]) -> tuple[Any, Array]:
            priorities, moved = carry
            clearing = index == 0
            start, amount = (
                jnp.where(clearing, source, target),
                jnp.where(clearing | kept, length, 0),
            )
            values = jnp.where(clearing, 0.0, moved)
            return priorities._set_segment(start, values, amount), moved

        return jax.lax.fori_loop(0, 2, change, (self, moved))[0]

    def _set_segment(
        self, start: Int[Array, ""], values: Float[Array, " block"], length: Int[Array, ""]
    ) -> "Priorities":
        """Set `length` neighbouring priorities, beginning at `start`.

        They lie in at most two blocks, and only the sums of those are computed again.
        """
        first = jnp.minimum(start // BLOCK, self.values.shape[0] - 2)
        pair = jax.lax.dynamic_slice_in_dim(self.values, first, 2).ravel()
        offset = jnp.arange(2 * BLOCK) - (start - first * BLOCK)
        changed = (offset >= 0) & (offset < length)
        pair = jnp.where(changed, values[jnp.clip(offset, 0, BLOCK - 1)], pair).reshape(2, BLOCK)
        new = jax.lax.dynamic_update_slice_in_dim(self.values, pair, first, 0)
        block = first + jnp.arange(2)
        top = block // BLOCK
        sums = _sum(jax.lax.dynamic_slice_in_dim(new, first, 2))
        block_sums = self.block_sums.at[top, block % BLOCK].set(sums)
        return Priorities(new, block_sums, self.top_sums.at[top].set(_sum(block_sums[top])))

    def sample(self, key: Key[Array, ""], number: int) -> Int[Array, " n"]:
        """Sample indices in proportion to their priorities, one from each of `number` strata.

        The strata divide the total among top blocks; choices within a top block are independent.
        """
        draws = jax.random.uniform(key, (DRAWS, number))
        return self.locate(draws, jnp.arange(number), jnp.asarray(number))

    def locate(
        self, draws: Float[Array, "draws n"], stratum: Int[Array, " n"], strata: Int[Array, ""]
    ) -> Int[Array, " n"]:
        """As `sample`, from given random numbers, uniform in [0, 1): each index from the stratum
        with that number, of so many that share the whole total.
        """
        edges = jnp.cumsum(self.top_sums)
        shares = (stratum.astype(edges.dtype) + draws[0]) / strata.astype(edges.dtype)
        # Rounded up to 1, the last share would lie behind all that is held.
        shares = jnp.minimum(shares, 1 - 2.0**-24)
        heights = shares * edges[-1]
        top = jnp.sum(heights[:, None] >= edges[:-1], axis=1)
        block = top * BLOCK + _pick(self.block_sums[top], draws[1 : 1 + _HALVINGS])
        return block * BLOCK + _pick(self.values[block], draws[1 + _HALVINGS :])


def _sum(rows: Float[Array, "n block"]) -> Float[Array, " n"]:
    """Sum of each row, added pairwise."""
    return _pairwise_sums(rows)[-1][:, 0]


def _pairwise_sums(rows: Float[Array, "n block"]) -> list[Array]:
    """The rows, their sums of two neighbours, of four, and so on to a single one."""
    levels = [rows]
    for _ in range(_HALVINGS):
        levels.append(levels[-1][:, 0::2] + levels[-1][:, 1::2])
    return levels


def _pick(rows: Float[Array, "n block"], choices: Float[Array, "halvings n"]) -> Int[Array, " n"]:
    """One index per row, in proportion to the row's entries."""
    index = jnp.zeros(rows.shape[0], int)
    levels = _pairwise_sums(rows)[:-1]
    for level, choice in zip(reversed(levels), choices, strict=True):
        pair = level.reshape(level.shape[0], -1, 2)
        halves = jnp.take_along_axis(pair, index[:, None, None], axis=1)[:, 0]
        right = choice * (halves[:, 0] + halves[:, 1]) >= halves[:, 0]
        index = 2 * index + right.astype(int)
    return index
