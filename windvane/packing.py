"""Trees of small arrays as one vector of 32-bit words, and back, on the device and on the host.

One array is cheaper than many: a call to a compiled program has a cost per argument and result,
and an accelerator launches a kernel per array that is read or written.
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
"""Bytes per word."""


@dataclass(frozen=True)
class Packing:
    """The layout of a tree's arrays in the vector; each array starts at a word boundary."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    starts: tuple[int, ...]

    @staticmethod
    def of(tree: Any) -> "Packing":
        """The packing of trees like this one, of arrays or of `jax.ShapeDtypeStruct`."""
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
    def slices(self) -> list[slice]:
        """The words of each array."""
        return [slice(start, stop) for start, stop in itertools.pairwise(self.starts)]

    def pack(self, tree: Any) -> UInt32[Array, " words"]:
        """Concatenate the arrays of a tree; may be traced."""
        leaves = jax.tree.leaves(tree)
        parts = [_to_words(leaf, dtype) for leaf, dtype in zip(leaves, self.dtypes, strict=True)]
        return jnp.concatenate(parts)

    def unpack(self, words: UInt32[Array, " words"]) -> Any:
        """The tree that was packed; may be traced."""
        layout = zip(self.slices, self.shapes, self.dtypes, strict=True)
        leaves = [_from_words(words[part], shape, dtype) for part, shape, dtype in layout]
        return jax.tree.unflatten(self.structure, leaves)

    def views(self, rows: np.ndarray) -> list[np.ndarray]:
        """Views of the arrays of many packed trees, one per row, in a host array of words."""
        layout = zip(self.slices, self.shapes, self.dtypes, strict=True)
        return [
            rows[:, part].view(dtype)[:, : math.prod(shape)].reshape(len(rows), *shape)
            for part, shape, dtype in layout
        ]

    def reader(self, index: int) -> Callable[[np.ndarray], np.ndarray]:
        """A function that copies the array number `index` of the tree out of a host vector."""
        part, shape, dtype = self.slices[index], self.shapes[index], self.dtypes[index]
        size = math.prod(shape)
        return lambda words: words[part].view(dtype)[:size].reshape(shape).copy()


def _to_words(leaf: Any, dtype: np.dtype) -> Array:
    flat = jnp.asarray(leaf, dtype).ravel()
    flat = flat.astype(jnp.uint8) if dtype.kind == "b" else flat
    if flat.dtype.itemsize < WORD:
        per_word = WORD // flat.dtype.itemsize
        flat = jnp.pad(flat, (0, -flat.size % per_word)).reshape(-1, per_word)
    return jax.lax.bitcast_convert_type(flat, jnp.uint32).ravel()


def _from_words(words: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    plain = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    if plain.itemsize > WORD:
        words = words.reshape(-1, plain.itemsize // WORD)
    flat = jax.lax.bitcast_convert_type(words, plain).ravel()
    return flat[: math.prod(shape)].reshape(shape).astype(dtype)
