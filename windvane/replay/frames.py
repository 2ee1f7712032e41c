"""Frames on the host, each stored once however many transitions contain it.

A transition with stacked frames shares nearly all of them with its neighbour. Here a frame is
looked up by its content and identified by a number, and transitions hold the numbers. References
are not counted: the owner of the store says now and then which numbers are in use (`keep`), so it
works with any retention rule.
"""

from collections.abc import Collection
from hashlib import blake2b
from typing import Any

import jax
import numpy as np

from windvane.errors import InputError

_INITIAL_SIZE = 64
_RECENT = 16


class FrameStore:
    """Distinct uint8 frames of one shape, numbered from 0; numbers of dropped frames are reused."""

    def __init__(self, shape: tuple[int, ...]):
        """An empty store for frames of this shape."""
        self.shape = tuple(shape)
        self._frames = np.empty((_INITIAL_SIZE, *self.shape), np.uint8)
        self._stored = np.zeros(_INITIAL_SIZE, bool)
        self._digests = [b""] * _INITIAL_SIZE
        self._free = list(range(_INITIAL_SIZE))[::-1]
        self._ids: dict[bytes, int] = {}
        self._recent: list[tuple[bytes, int]] = []

    @staticmethod
    def of(frames: np.ndarray) -> "FrameStore":
        """A store of these frames, which must be distinct, numbered in their order."""
        store = FrameStore(frames.shape[1:])
        for frame in frames:
            store.put(frame[None])
        return store

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def room(self) -> int:
        """Frames that can be stored without allocating memory."""
        return len(self._free)

    @property
    def nbytes(self) -> int:
        """Memory of all frames, stored and free."""
        return self._frames.nbytes

    def put(self, stack: np.ndarray) -> np.ndarray:
        """Store the new frames of a stack, and return the numbers of all."""
        recent = []
        for frame in stack:
            data = frame.tobytes()
            recent.append((data, self._put(data, frame)))
        self._recent = recent[-_RECENT:]
        return np.fromiter((number for _, number in recent), np.int32, len(recent))

    def get(self, ids: np.ndarray) -> np.ndarray:
        """Frames by their numbers."""
        return self._frames[ids]

    def keep(self, ids: np.ndarray, least: int = 0) -> None:
        """Drop all frames but these; afterwards there is room for at least `least` more.

        If less than a quarter is free then, more memory is allocated. So calls are rare, and the
        cost of a search through all transitions is amortised over many.
        """
        used = np.zeros(len(self._stored), bool)
        used[ids] = True
        for number in np.flatnonzero(self._stored & ~used).tolist():
            del self._ids[self._digests[number]]
            self._free.append(number)
        self._stored &= used
        self._recent = []
        if self.room < max(least, len(self._stored) // 4):
            self._grow(least)

    def _put(self, data: bytes, frame: np.ndarray) -> int:
        # Most frames of a stack were in the previous one: a comparison is cheaper than a digest.
        for known, number in self._recent:
            if known == data:
                return number
        digest = blake2b(data, digest_size=16).digest()
        number = self._ids.get(digest)
        if number is not None:
            return number
        if not self._free:
            self._grow(1)
        number = self._free.pop()
        self._frames[number] = frame
        self._stored[number], self._digests[number] = True, digest
        self._ids[digest] = number
        return number

    def _grow(self, least: int) -> None:
        """Allocate half as much memory again as is in use."""
        old = len(self._stored)
        new = max(len(self) + max(least, len(self) // 2), old + 1)
        frames = np.empty((new, *self.shape), np.uint8)
        frames[:old] = self._frames
        self._frames = frames
        self._stored = np.append(self._stored, np.zeros(new - old, bool))
        self._digests += [b""] * (new - old)
        self._free = list(range(old, new))[::-1] + self._free


def frame_leaves(example: Any, names: Collection[str]) -> tuple[int, ...]:
    """Which leaves of a transition are stacks of frames; raise an error if they cannot be."""
    if not names:
        return ()
    if not isinstance(example, dict):
        raise InputError(
            "frames are named entries of a transition, which must be a dict, not "
            f"{type(example).__name__}"
        )
    for name in names:
        _check_frames(example, name)
    shapes = {name: np.shape(example[name])[1:] for name in names}
    if len(set(shapes.values())) > 1:
        raise InputError(f"frames of all entries must have one shape, not {shapes}")
    paths = jax.tree_util.tree_leaves_with_path(example)
    return tuple(index for index, (path, _) in enumerate(paths) if path[0].key in names)


def _check_frames(example: dict[Any, Any], name: str) -> None:
    if name not in example:
        entries = ", ".join(map(str, example))
        raise InputError(f"a transition has no frames {name!r}; choose among: {entries}")
    stack = example[name]
    if getattr(stack, "dtype", None) != np.uint8 or np.ndim(stack) < 2:
        given = f"{getattr(stack, 'dtype', type(stack).__name__)} of shape {np.shape(stack)}"
        raise InputError(f"{name!r} must be a stack of frames, uint8 (stack, ...), not {given}")
