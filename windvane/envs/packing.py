"""Trees of small arrays as one vector of bytes, and back, on the device and on the host.

A call into a compiled program costs more for each array that goes in or out than one step of an
environment takes to compute, so the unbatched Gymnasium environment hands over a single array.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt8


@dataclass(frozen=True)
class Packing:
    """Where each array of a tree lies in the vector. Every array starts on a multiple of 8."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    places: tuple[slice, ...]

    @staticmethod
    def of(tree: Any) -> "Packing":
        """The packing of trees like this one, of arrays or of their shapes and types."""
        leaves, structure = jax.tree.flatten(tree)
        shapes = tuple(tuple(leaf.shape) for leaf in leaves)
        dtypes = tuple(np.dtype(leaf.dtype) for leaf in leaves)
        start, places = 0, []
        for shape, dtype in zip(shapes, dtypes, strict=True):
            stop = start + math.prod(shape) * dtype.itemsize
            places.append(slice(start, stop))
            start = -(-stop // 8) * 8
        return Packing(structure, shapes, dtypes, tuple(places))

    def pack(self, tree: Any) -> UInt8[Array, " bytes"]:
        """Lay the arrays of a tree side by side; may be traced."""
        parts = []
        for leaf in jax.tree.leaves(tree):
            flat = leaf.astype(jnp.uint8) if leaf.dtype == bool else leaf
            data = jax.lax.bitcast_convert_type(flat, jnp.uint8).ravel()
            parts.append(jnp.pad(data, (0, -data.size % 8)))
        return jnp.concatenate(parts)

    def unpack(self, data: UInt8[Array, " bytes"]) -> Any:
        """The tree that was packed; may be traced."""
        leaves = []
        for place, shape, dtype in zip(self.places, self.shapes, self.dtypes, strict=True):
            plain = np.dtype(np.uint8) if dtype.kind == "b" else dtype
            split = (*shape, plain.itemsize) if plain.itemsize > 1 else shape
            leaf = jax.lax.bitcast_convert_type(data[place].reshape(split), plain)
            leaves.append(leaf.astype(dtype))
        return jax.tree.unflatten(self.structure, leaves)

    def reader(self, index: int) -> Callable[[np.ndarray], np.ndarray]:
        """A function that copies one array, by its place in the tree, out of a host vector."""
        place, shape, dtype = self.places[index], self.shapes[index], self.dtypes[index]
        return lambda data: data[place].view(dtype).reshape(shape).copy()
