"""The paper's other signature: the set of perceptual hashes of a trajectory's frames.

Frames that look alike have the same hash, so two trajectories are similar if they show mostly the
same frames, whatever their returns. The diversity of a set is its distance to the nearest other.
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
    """A number that does not change with small changes of a frame (after Zauner's DCT hash).

    The lowest 8x8 frequencies except the mean brightness, each above the median or not, give 63
    bits; they are mixed into 32, which are enough for the few frames of a trajectory.
    """
    grey = frame.astype(jnp.float32).reshape(*frame.shape[:2], -1).mean(-1)
    rows, columns = (jnp.asarray(_cosines(size)) for size in grey.shape)
    frequencies = (rows @ grey @ columns.T).ravel()[1:]
    bits = (frequencies > jnp.median(frequencies)).astype(jnp.uint32)
    shifts = jnp.arange(32, dtype=jnp.uint32)
    low, high = (bits[:32] << shifts).sum(), (bits[32:] << shifts[:31]).sum()
    mixed = _mix(_mix(low) ^ high)
    return jnp.minimum(mixed, _NOTHING - jnp.uint32(1))


def _cosines(size: int) -> np.ndarray:
    """The lowest frequencies of the cosine transform along one side of a frame."""
    middles = (np.arange(size) + 0.5) / size
    return np.cos(np.pi * np.arange(_SIDE)[:, None] * middles).astype(np.float32)


def _mix(word: UInt32[Array, ""]) -> UInt32[Array, ""]:
    """A bijection in which each bit affects all others (an xorshift-multiply round)."""
    word = (word ^ (word >> jnp.uint32(16))) * jnp.uint32(0x7FEB352D)
    word = (word ^ (word >> jnp.uint32(15))) * jnp.uint32(0x846CA68B)
    return word ^ (word >> jnp.uint32(16))


@final
class FrameHashes(Signature):
    """The distinct hashes of a trajectory's frames, at most `size` of them.

    If there are more, the smallest are kept. Hashes are as good as random, so this is the same
    random choice for all trajectories and preserves how much their sets overlap.
    """

    frame: Callable[[Any], Num[Array, "height width *colours"]] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, frame: Callable[[Any], Num[Array, "height width *colours"]], size: int = 32):
        """`frame` returns, or renders, the frame that a transition adds."""
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
    """The sets in each slot and their distances, infinite to itself and to free slots."""

    hashes: UInt32[Array, "slots size"]
    distances: Float[Array, "slots slots"]
    used: Bool[Array, " slots"]


@final
class NearestSet(Diversity[Sets]):
    """The diversity of a set is its Jaccard distance to the nearest other set.

    Stores the distances of all pairs: memory grows with the square of the number of trajectories.
    """

    max_trajectories: int = eqx.field(static=True, default=4096)

    def init(self, slots: int, example: UInt32[Array, " size"]) -> Sets:
        """No sets."""
        if slots > self.max_trajectories + 1:
            raise InputError(
                "NearestSet compares all pairs of sets: give DiverseReplay at most "
                f"{self.max_trajectories} trajectories, not {slots - 1}"
            )
        nothing = jnp.full((slots, example.size), _NOTHING, jnp.uint32)
        distances = jnp.full((slots, slots), jnp.inf, float)
        return Sets(nothing, distances, jnp.zeros(slots, bool))

    def insert(self, state: Sets, slot: Int[Array, ""], signature: UInt32[Array, " size"]) -> Sets:
        """Compute a set's distance to all others."""
        measured = jax.vmap(jaccard_distance, (0, None))(state.hashes, signature)
        row = jnp.where(state.used, measured, jnp.inf)
        distances = state.distances.at[slot].set(row).at[:, slot].set(row)
        used = state.used.at[slot].set(True)
        return Sets(state.hashes.at[slot].set(signature), distances, used)

    def remove(self, state: Sets, slot: Int[Array, ""]) -> Sets:
        """Remove a set and its distances."""
        distances = state.distances.at[slot].set(jnp.inf).at[:, slot].set(jnp.inf)
        return Sets(state.hashes, distances, state.used.at[slot].set(False))

    def diversities(self, state: Sets) -> Float[Array, " slots"]:
        """Distance to the nearest other set."""
        return state.distances.min(1)


def jaccard_distance(
    one: UInt32[Array, " size"], other: UInt32[Array, " size"]
) -> Float[Array, ""]:
    """1 - |intersection| / |union| of two sets; 0 for two empty ones."""
    here, there = one != _NOTHING, other != _NOTHING
    both = ((one[:, None] == other) & here[:, None]).sum()
    either = here.sum() + there.sum() - both
    common = both.astype(jnp.float32) / jnp.maximum(either, 1).astype(jnp.float32)
    return jnp.where(either > 0, 1.0 - common, 0.0)
