"""Trees of small arrays as one vector of 32-bit words, and back, on the device and on the host.

One array is cheaper than many: a call into a compiled program pays for each that goes in or out,
and an accelerator launches a kernel for each that is read or written.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

WORD = 4
"""Bytes in a word."""


@dataclass(frozen=True)
class Packing:
    """Where each array of a tree lies in the vector; each starts with a word of its own."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    starts: tuple[int, ...]

    @staticmethod
    def of(tree: Any) -> "Packing":
        """The packing of trees like this one, of arrays or of their shapes and types."""
        leaves, structure = jax.tree.flatten(tree)
        shapes = tuple(tuple(np.shape(leaf)) for leaf in leaves)
        dtypes = tuple(np.dtype(jnp.result_type(leaf)) for leaf in leaves)
        sizes = [-(-math.prod(s) * d.itemsize // WORD) for s, d in zip(shapes, dtypes, strict=True)]
        return Packing(structure, shapes, dtypes, tuple(itertools.accumulate(sizes, initial=0)))

    @property
    def size(self) -> int:
        """Number of words."""
        return self.starts[-1]

    @property
    def places(self) -> list[slice]:
        """Where each array lies."""
        return [slice(start, stop) for start, stop in itertools.pairwise(self.starts)]

    def pack(self, tree: Any) -> UInt32[Array, " words"]:
        """Lay the arrays of a tree side by side; may be traced."""
        leaves = jax.tree.leaves(tree)
        parts = [_to_words(leaf, dtype) for leaf, dtype in zip(leaves, self.dtypes, strict=True)]
        return jnp.concatenate(parts)

    def unpack(self, words: UInt32[Array, " words"]) -> Any:
        """The tree that was packed; may be traced."""
        kinds = zip(self.places, self.shapes, self.dtypes, strict=True)
        leaves = [_from_words(words[place], shape, dtype) for place, shape, dtype in kinds]
        return jax.tree.unflatten(self.structure, leaves)

    def views(self, rows: np.ndarray) -> list[np.ndarray]:
        """The arrays of many packed trees, one a row, as they lie in a host array of words."""
        kinds = zip(self.places, self.shapes, self.dtypes, strict=True)
        return [
            rows[:, place].view(dtype)[:, : math.prod(shape)].reshape(len(rows), *shape)
            for place, shape, dtype in kinds
        ]

    def reader(self, index: int) -> Callable[[np.ndarray], np.ndarray]:
        """A function that copies one array, by its place in the tree, out of a host vector."""
        place, shape, dtype = self.places[index], self.shapes[index], self.dtypes[index]
        size = math.prod(shape)
        return lambda words: words[place].view(dtype)[:size].reshape(shape).copy()


def _to_words(leaf: Any, dtype: np.dtype) -> Array:
    flat = jnp.asarray(leaf, dtype).ravel()
    flat = flat.astype(jnp.uint8) if dtype.kind == "b" else flat
    if flat.dtype.itemsize < WORD:
        together = WORD // flat.dtype.itemsize
        flat = jnp.pad(flat, (0, -flat.size % together)).reshape(-1, together)
    return jax.lax.bitcast_convert_type(flat, jnp.uint32).ravel()


def _from_words(words: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    plain = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    if plain.itemsize > WORD:
        words = words.reshape(-1, plain.itemsize // WORD)
    flat = jax.lax.bitcast_convert_type(words, plain).ravel()
    return flat[: math.prod(shape)].reshape(shape).astype(dtype)
