"""Replay buffers for programs outside JAX: NumPy in, NumPy out.

Added transitions are staged on the host and flushed into the buffer many at a time, before the next
sample, because a call to a compiled program costs more than the work for one transition.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from windvane.errors import InputError, require_int, require_positive_int
from windvane.packing import Packing
from windvane.replay.buffer import ReplayBuffer, ScoredReplay, check_transition
from windvane.replay.frames import FrameStore, frame_leaves
from windvane.replay.host_programs import (
    ProgramKey,
    StagingBuffer,
    UniformDraws,
    compiled_programs,
    parameter_arrays,
)

STAGING_SIZE = 64
"""Largest number of transitions that are flushed into the buffer in one call."""


class HostReplay:
    """A replay buffer that owns its state; any `ReplayBuffer` decides what it keeps.

    `example` is a transition, any tree of arrays and numbers, which fixes shapes and types.

    `frames` names entries of a transition (a dict) that are stacks of frames, uint8 of shape
    (stack, ...). Each distinct frame is stored once, which saves most of the memory: neighbouring
    transitions share all but one. The buffer itself then stores numbers of frames, so a signature
    must not use these entries.

    `score` is required for a `ScoredReplay`, such as `ExplorationReplay`, and not allowed for
    others. It maps a batch of transitions that are about to leave the ring, arrays with a leading
    axis, to a vector of scores. It is called when staged transitions are flushed, at the latest
    before the next sample, so the agent has not learned in between.
    """

    def __init__(
        self,
        buffer: ReplayBuffer[Any],
        example: Any,
        seed: int = 0,
        *,
        frames: Sequence[str] = (),
        score: Callable[[Any], ArrayLike] | None = None,
    ):
        """An empty buffer; `seed` determines what is sampled."""
        _check_score(buffer, score)
        self.buffer, self._score = buffer, score
        self._frame_leaves = frame_leaves(example, (frames,) if isinstance(frames, str) else frames)
        self._example = jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), example)
        self._example_packing = Packing.of(self._example)
        leaves, self._structure = jax.tree.flatten(self._example)
        self._shapes = [leaf.shape for leaf in leaves]
        self.frames: FrameStore | None = None
        for index in self._frame_leaves:
            stack, *shape = leaves[index].shape
            self.frames = FrameStore(tuple(shape))
            leaves[index] = np.zeros(stack, np.int32)
        self._frames_per_transition = sum(leaves[index].size for index in self._frame_leaves)
        self._draws = UniformDraws(seed)
        self._init_state(jax.tree.unflatten(self._structure, leaves), jax.random.key(seed))

    def _init_state(self, row: Any, key: Any) -> None:
        """Create an empty state for transitions stored as `row`, and its programs."""
        state = self.buffer.init(jax.tree.map(jnp.asarray, row), key)
        self._program_key = ProgramKey.of(self.buffer, state, row)
        self._stored_packing = self._program_key.stored_packing()
        self._arrays = parameter_arrays(self.buffer)
        # Copies, because equal leaves may be one array, which cannot be donated twice; explicit
        # types, because weakly typed leaves would compile the programs a second time.
        leaves = self._program_key.flatten_state(state)
        self._state = tuple(jnp.array(leaf, leaf.dtype) for leaf in leaves)
        scored = isinstance(self.buffer, ScoredReplay)
        # No more are staged than the ring holds, so that all that leave it have been flushed.
        size = min(STAGING_SIZE, self.buffer.ring_capacity) if scored else STAGING_SIZE
        self._staging = StagingBuffer(self._program_key.staging_packing(), size)
        self._programs = compiled_programs(self._program_key)
        self._readers: dict[int, list[Callable[[np.ndarray], np.ndarray]]] = {}
        self._added = 0

    def __len__(self) -> int:
        self._flush()
        return int(self.buffer.size(self._program_key.unflatten_state(self._state)))

    @property
    def nbytes(self) -> int:
        """Memory of the whole buffer, frames included."""
        stored = 0 if self.frames is None else self.frames.nbytes
        return sum(leaf.nbytes for leaf in self._state) + self._staging.data.nbytes + stored

    def add(self, transition: Any, ended: bool) -> None:
        """Add a transition; `ended` is true for the last of an episode, terminated or truncated."""
        leaves = self._leaves(transition)
        if self._staging.size == self._staging.capacity:
            self._flush()
        if self.frames is not None:
            if self.frames.room < self._frames_per_transition:
                self.frames.keep(self._frames_in_use(), self._frames_per_transition)
            for index in self._frame_leaves:
                leaves[index] = self.frames.put(leaves[index])
        self._staging.append(leaves, bool(ended))
        self._added += 1

    def sample(self, number: int, newest: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
        """Sampled transitions, their indices (for `update_priorities`) and their probabilities.

        The batch begins with the `newest` transitions, last first. If these are all that were added
        since the previous batch, every transition soon has a priority from its own error.
        """
        number = require_positive_int("a batch", number, self.buffer.capacity)
        newest = require_int("the newest transitions of a batch", newest, 0, number)
        self._flush()
        if number > self._added:
            raise InputError(f"cannot sample {number} transitions: {len(self)} are held")
        data = np.asarray(
            self._programs.sample(self._arrays, self._state, self._draws(number), np.int32(newest))
        )
        rows, indices, probabilities, held = [read(data) for read in self._sample_readers(number)]
        if number > held:
            raise InputError(f"cannot sample {number} transitions: {held} are held")
        return self._transitions(self._stored_packing.views(rows)), indices, probabilities

    def update_priorities(self, indices: ArrayLike, errors: ArrayLike) -> None:
        """Set priorities from the errors of sampled transitions."""
        at, values = np.asarray(indices), np.asarray(errors, np.float32)
        if at.shape != values.shape or at.ndim != 1:
            raise InputError(
                f"indices and errors must be lists of equal length, not of shapes {at.shape} "
                f"and {values.shape}"
            )
        if not np.isfinite(values).all():
            raise InputError("errors must be finite numbers, and some are not")
        self._flush()
        if not at.size:
            return
        if at.dtype.kind not in "iu":
            raise InputError(f"indices must be whole numbers, not {at.dtype}")
        # Copies, because a program may read them after the call has returned.
        copies = at.astype(np.int32), values.copy()
        self._state = self._programs.update(self._arrays, self._state, *copies)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The whole state as plain arrays, from which `load_state_dict` continues exactly.

        Only frames in use are saved.
        """
        self._flush()
        state, frames = (self._state, {}) if self.frames is None else self._renumbered(self.frames)
        # Copies, because the state itself is updated in place.
        leaves = [np.array(leaf) for leaf in state]
        saved = {f"leaf{index}": leaf for index, leaf in enumerate(leaves)}
        rest = {"added": np.asarray(self._added), "draws": self._draws.state}
        return {**saved, **frames, **rest}

    def load_state_dict(self, saved: dict[str, np.ndarray]) -> None:
        """Continue from the `state_dict` of a buffer with the same parameters and example."""
        names = [f"leaf{index}" for index in range(len(self._state))]
        like = dict(zip(names, self._state, strict=True))
        like = {**like, "added": np.asarray(0), "draws": self._draws.state}
        if self.frames is not None:
            like["frames"] = np.zeros((len(saved.get("frames", ())), *self.frames.shape), np.uint8)
        if _array_types(saved) != _array_types(like):
            raise InputError("the saved state is of a buffer with another capacity or transition")
        if self.frames is not None:
            self.frames = FrameStore.of(saved["frames"])
        self._state = tuple(jnp.array(saved[name]) for name in names)
        self._draws.state = saved["draws"]
        self._staging.clear()
        self._added = int(saved["added"])

    def _leaves(self, transition: Any) -> list[Any]:
        """The arrays of a transition that is built like the example."""
        leaves, structure = jax.tree.flatten(transition)
        leaves = [np.asarray(leaf) for leaf in leaves]
        if structure != self._structure or [leaf.shape for leaf in leaves] != self._shapes:
            check_transition(self._example_packing, transition)
        for index in self._frame_leaves:
            if leaves[index].dtype != np.uint8:
                raise InputError(f"frames must be uint8, not {leaves[index].dtype}")
        return leaves

    def _transitions(self, leaves: list[np.ndarray]) -> Any:
        """Transitions as they were added, from the arrays of their rows, frames included."""
        if self.frames is not None:
            for index in self._frame_leaves:
                leaves[index] = self.frames.get(leaves[index])
        return jax.tree.unflatten(self._structure, leaves)

    def _sample_readers(self, number: int) -> list[Callable[[np.ndarray], np.ndarray]]:
        """Functions that copy the parts of a sample out of its vector."""
        if number not in self._readers:
            packing = self._program_key.sample_packing(number)
            self._readers[number] = [packing.reader(i) for i in range(len(packing.shapes))]
        return self._readers[number]

    def _flush(self) -> None:
        """Add staged transitions to the buffer; if their scores are invalid, they stay staged."""
        staging = self._staging
        if not staging.size:
            return
        scores = None if self._score is None else self._leaving_scores(self._score)
        number = np.int32(staging.size)
        self._state = self._programs.flush(self._arrays, self._state, staging.data, number, scores)
        staging.clear()

    def _leaving_scores(self, score: Callable[[Any], ArrayLike]) -> np.ndarray:
        """One score per staged transition: that of the transition which it evicts from the ring."""
        staging, ring = self._staging, self.buffer.ring_capacity
        flushed = self._added - staging.size
        first = max(ring - flushed, 0)  # those before it fill the ring and evict nothing
        scores = np.zeros(staging.capacity, np.float32)
        number = staging.size - first
        if number > 0:
            indices = ((flushed + np.arange(staging.capacity)) % ring).astype(np.int32)
            rows = np.asarray(self._programs.read(self._arrays, self._state, indices))
            leaving = self._transitions(self._stored_packing.views(rows[first : staging.size]))
            scores[first : staging.size] = _checked_scores(score(leaving), number)
        return scores

    def _held_frames(self, data: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Views of the numbers of frames in all rows, `data`, and which rows are held."""
        rows = self.buffer.rows(self._program_key.unflatten_state(self._state))
        views = rows.packing.views(data)
        priorities = np.array(rows.priorities.values)
        held = priorities.reshape(-1)[: len(data)] > 0
        return [views[index] for index in self._frame_leaves], held

    def _row_data(self) -> np.ndarray:
        """A copy of all rows."""
        return np.array(self.buffer.rows(self._program_key.unflatten_state(self._state)).data)

    def _frames_in_use(self) -> np.ndarray:
        """Numbers of the frames that held and staged transitions refer to."""
        ids, held = self._held_frames(self._row_data())
        staged = [self._staging.rows[index] for index in self._frame_leaves]
        parts = [rows[held] for rows in ids] + [rows[: self._staging.size] for rows in staged]
        return np.concatenate([part.ravel() for part in parts])

    def _renumbered(self, store: FrameStore) -> tuple[tuple[Any, ...], dict[str, np.ndarray]]:
        """The state with the frames in use numbered in the order of their rows, and those frames.

        So the saved state does not depend on which numbers happened to be free.
        """
        data = self._row_data()
        ids, held = self._held_frames(data)
        used, seen = np.unique(np.concatenate([rows[held].ravel() for rows in ids]), True)
        used = used[np.argsort(seen)]
        new = np.zeros(used.max(initial=0) + 1, np.int32)
        new[used] = np.arange(len(used), dtype=np.int32)
        mask = held[:, None]
        for rows in ids:
            rows[:] = np.where(mask, new[np.where(mask, rows, 0)], 0)
        state = self._program_key.unflatten_state(self._state)
        state = eqx.tree_at(lambda s: self.buffer.rows(s).data, state, jnp.asarray(data))
        return self._program_key.flatten_state(state), {"frames": store.get(used)}


def _check_score(buffer: ReplayBuffer[Any], score: Callable[[Any], ArrayLike] | None) -> None:
    name = type(buffer).__name__
    if isinstance(buffer, ScoredReplay) and not callable(score):
        raise InputError(
            f"{name} needs a function `score` of transitions about to leave, not {score!r}"
        )
    if not isinstance(buffer, ScoredReplay) and score is not None:
        raise InputError(f"only a ScoredReplay takes a `score`, not {name}")


def _checked_scores(given: ArrayLike, number: int) -> np.ndarray:
    scores = np.asarray(given, np.float32)
    if scores.shape != (number,):
        raise InputError(f"there must be {number} scores, one per transition, not {scores.shape}")
    if not np.isfinite(scores).all():
        raise InputError(f"scores must be finite numbers, not {scores[~np.isfinite(scores)][0]}")
    return scores


def _array_types(arrays: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    return {name: (array.shape, np.dtype(array.dtype)) for name, array in arrays.items()}
