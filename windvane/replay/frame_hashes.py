"""The paper's other signature: the set of perceptual hashes of a trajectory's frames.

Pictures that look alike have the same hash, so two trajectories are alike when they saw much the
same pictures, whatever they earned. The diversity of a set is its distance to the nearest other.
"""

from collections.abc import Callable
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num, UInt32

from windvane.errors import InputError, require_positive_int
from windvane.replay.diversity import Diversity
from windvane.replay.signature import Signature

_SIDE = 8
_NOTHING = np.uint32(0xFFFFFFFF)


def perceptual_hash(frame: Num[Array, "height width *colours"]) -> UInt32[Array, ""]:
    """A number that small changes of a picture leave alone (after Zauner's DCT hash).

    Its lowest 8x8 frequencies but the average brightness, each above the median or not, give 63
    bits; they are scrambled into 32, which for the few pictures of a trajectory lose nothing.
    """
    grey = frame.astype(jnp.float32).reshape(*frame.shape[:2], -1).mean(-1)
    rows, columns = (jnp.asarray(_cosines(size)) for size in grey.shape)
    frequencies = (rows @ grey @ columns.T).ravel()[1:]
    bits = (frequencies > jnp.median(frequencies)).astype(jnp.uint32)
    shifts = jnp.arange(32, dtype=jnp.uint32)
    low, high = (bits[:32] << shifts).sum(), (bits[32:] << shifts[:31]).sum()
    scrambled = _scramble(_scramble(low) ^ high)
    return jnp.minimum(scrambled, _NOTHING - jnp.uint32(1))


def _cosines(size: int) -> np.ndarray:
    """The lowest frequencies of the cosine transform along one side of a picture."""
    middles = (np.arange(size) + 0.5) / size
    return np.cos(np.pi * np.arange(_SIDE)[:, None] * middles).astype(np.float32)


def _scramble(word: UInt32[Array, ""]) -> UInt32[Array, ""]:
    """Spread a word's bits over all others, one to one (an xorshift-multiply round)."""
    word = (word ^ (word >> jnp.uint32(16))) * jnp.uint32(0x7FEB352D)
    word = (word ^ (word >> jnp.uint32(15))) * jnp.uint32(0x846CA68B)
    return word ^ (word >> jnp.uint32(16))


@final
class FrameHashes(Signature):
    """The distinct hashes of a trajectory's frames, at most `size` of them.

    Of more, those with the smallest numbers stay: hashes are as good as random, so for all
    trajectories that is the same random choice, and how much their sets share survives it.
    """

    frame: Callable[[Any], Num[Array, "height width *colours"]] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, frame: Callable[[Any], Num[Array, "height width *colours"]], size: int = 32):
        """`frame` finds, or draws, the picture that a transition adds."""
        self.frame, self.size = frame, require_positive_int("the number of hashes", size)

    def start(self) -> UInt32[Array, " size"]:
        """No hashes."""
        return jnp.full(self.size, _NOTHING, jnp.uint32)

    def extend(
        self, signature: UInt32[Array, " size"], transition: Any, time: Int[Array, ""]
    ) -> UInt32[Array, " size"]:
        """Add the transition's frame."""
        del time
        new = perceptual_hash(self.frame(transition))
        largest = jnp.argmax(signature)
        added = ~(signature == new).any() & (new < signature[largest])
        return signature.at[largest].set(jnp.where(added, new, signature[largest]))


class Sets(eqx.Module):
    """The sets in each slot and the distances between them, infinite to itself and to free ones."""

    hashes: UInt32[Array, "slots size"]
    distances: Float[Array, "slots slots"]
    used: Bool[Array, " slots"]


@final
class NearestSet(Diversity[Sets]):
    """A set is as diverse as its Jaccard distance to the set most like it.

    Keeps the distances of all pairs: memory grows with the square of the number of trajectories.
    """

    most: int = eqx.field(static=True, default=4096)

    def init(self, slots: int, example: UInt32[Array, " size"]) -> Sets:
        """No sets."""
        if slots > self.most + 1:
            raise InputError(
                f"sets are compared in pairs: give DiverseReplay at most {self.most} trajectories, "
                f"not {slots - 1}"
            )
        nothing = jnp.full((slots, example.size), _NOTHING, jnp.uint32)
        far = jnp.full((slots, slots), jnp.inf, float)
        return Sets(nothing, far, jnp.zeros(slots, bool))

    def insert(self, points: Sets, slot: Int[Array, ""], signature: UInt32[Array, " size"]) -> Sets:
        """Measure a set's distance to all others."""
        measured = jax.vmap(jaccard_distance, (0, None))(points.hashes, signature)
        row = jnp.where(points.used, measured, jnp.inf)
        distances = points.distances.at[slot].set(row).at[:, slot].set(row)
        used = points.used.at[slot].set(True)
        return Sets(points.hashes.at[slot].set(signature), distances, used)

    def remove(self, points: Sets, slot: Int[Array, ""]) -> Sets:
        """Forget a set and how far it was."""
        distances = points.distances.at[slot].set(jnp.inf).at[:, slot].set(jnp.inf)
        return Sets(points.hashes, distances, points.used.at[slot].set(False))

    def diversities(self, points: Sets) -> Float[Array, " slots"]:
        """Distance to the nearest."""
        return points.distances.min(1)


def jaccard_distance(
    one: UInt32[Array, " size"], other: UInt32[Array, " size"]
) -> Float[Array, ""]:
    """The share of two sets' members that they do not have in common; 0 for two empty ones."""
    here, there = one != _NOTHING, other != _NOTHING
    both = ((one[:, None] == other) & here[:, None]).sum()
    either = here.sum() + there.sum() - both
    common = both.astype(jnp.float32) / jnp.maximum(either, 1).astype(jnp.float32)
    return jnp.where(either > 0, 1.0 - common, 0.0)
