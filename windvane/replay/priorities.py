"""Sampling in proportion to priorities: sums of blocks, and of blocks of blocks.

A draw picks a top block, a block in it and a place in that, each in proportion to its sum; a change
of some priorities re-adds only the blocks they lie in. Both cost the same for ten thousand places
and for a million. Within a block sums are paired up and every choice between two halves uses a
fresh random number, so a priority of 1e-4 keeps its share beside one of 1e4, where running sums
in float32 would lose it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from windvane.errors import require_positive_int

BLOCK = 128
"""Places a block; a power of two."""

_HALVINGS = BLOCK.bit_length() - 1

DRAWS = 1 + 2 * _HALVINGS
"""Random numbers that it takes to find one place."""


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

    @staticmethod
    def of(places: Float[Array, "blocks block"]) -> "Priorities":
        """All priorities at once, with their sums."""
        blocks = _sum(places).reshape(-1, BLOCK)
        return Priorities(places, blocks, _sum(blocks))

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

    def move_run(
        self,
        source: Int[Array, ""],
        target: Int[Array, ""],
        number: Int[Array, ""],
        kept: Bool[Array, ""],
    ) -> "Priorities":
        """Move the priorities of `number` neighbouring places, a block's worth at most; their old
        places get 0. If not `kept`, that is all that happens.
        """
        moved = self[source + jnp.arange(BLOCK)]

        # A loop, since the compiler would mix two changes in a row and copy everything in between.
        def change(index: Int[Array, ""], carry: tuple[Any, Array]) -> tuple[Any, Array]:
            priorities, moved = carry
            clearing = index == 0
            start, amount = (
                jnp.where(clearing, source, target),
                jnp.where(clearing | kept, number, 0),
            )
            values = jnp.where(clearing, 0.0, moved)
            return priorities._set_run(start, values, amount), moved

        return jax.lax.fori_loop(0, 2, change, (self, moved))[0]

    def _set_run(
        self, start: Int[Array, ""], values: Float[Array, " block"], number: Int[Array, ""]
    ) -> "Priorities":
        """Change the priorities of `number` neighbouring places from `start` on.

        They lie in two blocks at most, whose sums are all that has to be added up again.
        """
        first = jnp.minimum(start // BLOCK, self.places.shape[0] - 2)
        pair = jax.lax.dynamic_slice_in_dim(self.places, first, 2).ravel()
        offset = jnp.arange(2 * BLOCK) - (start - first * BLOCK)
        changed = (offset >= 0) & (offset < number)
        pair = jnp.where(changed, values[jnp.clip(offset, 0, BLOCK - 1)], pair).reshape(2, BLOCK)
        places = jax.lax.dynamic_update_slice_in_dim(self.places, pair, first, 0)
        block = first + jnp.arange(2)
        top = block // BLOCK
        sums = _sum(jax.lax.dynamic_slice_in_dim(places, first, 2))
        blocks = self.blocks.at[top, block % BLOCK].set(sums)
        return Priorities(places, blocks, self.tops.at[top].set(_sum(blocks[top])))

    def sample(self, key: Key[Array, ""], number: int) -> Int[Array, " n"]:
        """Draw places in proportion to their priorities, one from each of `number` equal strata.

        The strata divide the total among top blocks; what follows inside a block is independent.
        """
        return self.locate(jax.random.uniform(key, (DRAWS, number)))

    def locate(self, draws: Float[Array, "draws n"]) -> Int[Array, " n"]:
        """As `sample`, with given random numbers, uniform in [0, 1)."""
        number = draws.shape[1]
        edges = jnp.cumsum(self.tops)
        heights = (jnp.arange(number, dtype=edges.dtype) + draws[0]) / number * edges[-1]
        top = jnp.sum(heights[:, None] >= edges[:-1], axis=1)
        block = top * BLOCK + _pick(self.blocks[top], draws[1 : 1 + _HALVINGS])
        return block * BLOCK + _pick(self.places[block], draws[1 + _HALVINGS :])


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
