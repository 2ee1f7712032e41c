"""Sampling in proportion to priorities: sums of blocks, and of blocks of blocks.

A draw picks a top block, a block in it and a place in that, each in proportion to its sum; a change
of some priorities re-adds only the blocks they lie in. Both cost the same for ten thousand places
and for a million. Within a block sums are paired up and every choice between two halves uses a
fresh random number, so a priority of 1e-4 keeps its share beside one of 1e4, where running sums
in float32 would lose it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from windvane.errors import require_positive_int

BLOCK = 128
"""Places a block; a power of two."""

_HALVINGS = BLOCK.bit_length() - 1


class Priorities(eqx.Module):
    """Priorities of places 0 to capacity-1, with the sums that sampling needs; 0 is never drawn."""

    places: Float[Array, "blocks block"]
    blocks: Float[Array, "tops block"]
    tops: Float[Array, " tops"]

    @staticmethod
    def zeros(capacity: int) -> "Priorities":
        """No place can be drawn."""
        require_positive_int("the capacity of a replay buffer", capacity)
        tops = -(-capacity // BLOCK**2)
        return Priorities(
            jnp.zeros((tops * BLOCK, BLOCK)), jnp.zeros((tops, BLOCK)), jnp.zeros(tops)
        )

    @property
    def total(self) -> Float[Array, ""]:
        """Sum of all priorities."""
        return self.tops.sum()

    def __getitem__(self, places: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Priorities of some places."""
        return self.places[places // BLOCK, places % BLOCK]

    def set(self, places: Int[Array, " n"], values: Float[Array, " n"]) -> "Priorities":
        """Change the priorities of some places; places out of range are left out."""
        block, top = places // BLOCK, places // BLOCK**2
        leaves = self.places.at[block, places % BLOCK].set(values, mode="drop")
        sums = _sum(leaves.at[block].get(mode="fill", fill_value=0.0))
        blocks = self.blocks.at[top, block % BLOCK].set(sums, mode="drop")
        sums = _sum(blocks.at[top].get(mode="fill", fill_value=0.0))
        return Priorities(leaves, blocks, self.tops.at[top].set(sums, mode="drop"))

    def sample(self, key: Key[Array, ""], number: int) -> Int[Array, " n"]:
        """Draw places in proportion to their priorities, one from each of `number` equal strata.

        The strata divide the total among top blocks; what follows inside a block is independent.
        """
        strata_key, choice_key = jax.random.split(key)
        offsets = jax.random.uniform(strata_key, (number,))
        edges = jnp.cumsum(self.tops)
        heights = (jnp.arange(number, dtype=edges.dtype) + offsets) / number * edges[-1]
        top = jnp.sum(heights[:, None] >= edges[:-1], axis=1)
        choices = jax.random.uniform(choice_key, (2, _HALVINGS, number))
        block = top * BLOCK + _pick(self.blocks[top], choices[0])
        return block * BLOCK + _pick(self.places[block], choices[1])


def _sum(rows: Float[Array, "n block"]) -> Float[Array, " n"]:
    """Sum of each row, added pairwise."""
    return _halves(rows)[-1][:, 0]


def _halves(rows: Float[Array, "n block"]) -> list[Array]:
    """The rows, their sums of two neighbours, of four, and so on to a single one."""
    levels = [rows]
    for _ in range(_HALVINGS):
        levels.append(levels[-1][:, 0::2] + levels[-1][:, 1::2])
    return levels


def _pick(rows: Float[Array, "n block"], choices: Float[Array, "halvings n"]) -> Int[Array, " n"]:
    """One index of each row in proportion to its entries."""
    index = jnp.zeros(rows.shape[0], int)
    levels = _halves(rows)[:-1]
    for level, choice in zip(reversed(levels), choices, strict=True):
        pair = level.reshape(level.shape[0], -1, 2)
        halves = jnp.take_along_axis(pair, index[:, None, None], axis=1)[:, 0]
        right = choice * (halves[:, 0] + halves[:, 1]) >= halves[:, 0]
        index = 2 * index + right.astype(int)
    return index
