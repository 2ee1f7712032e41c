"""The same buffers for programs outside JAX: NumPy in, NumPy out.

Added transitions wait on the host and enter the buffer many at a time, before the next sample,
since a call into a compiled program costs more than the work for one transition.
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
from windvane.replay.buffer import ReplayBuffer, check_transition
from windvane.replay.crossing import Draws, Kind, Waiting, own_arrays, programs
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.frames import FrameStore, frame_leaves

WAITING = 64
"""Transitions that enter the buffer in one call, at most."""


class HostReplay:
    """A replay buffer with a memory of its own; any `ReplayBuffer` decides what it keeps.

    `example` is a transition, any tree of arrays and numbers: it fixes shapes and types.

    `frames` names entries of a transition (a dict) that are stacks of pictures, uint8 of shape
    (stack, ...). Each distinct picture is stored once, which is most of the memory: neighbouring
    transitions share all but one. The buffer itself then sees numbers of pictures, so a signature
    must not look at these entries.

    `score` is for `ExplorationReplay` and no other: it maps a batch of transitions that are about
    to leave the ring, arrays with a leading axis, to a vector of scores. It is called when waiting
    transitions enter, at the latest before the next sample, so the agent has not learned since.
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
        """An empty buffer; `seed` decides what is sampled."""
        _check_score(buffer, score)
        self.buffer, self._score = buffer, score
        self._frame_leaves = frame_leaves(example, (frames,) if isinstance(frames, str) else frames)
        self._example = jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), example)
        self._given = Packing.of(self._example)
        leaves, self._structure = jax.tree.flatten(self._example)
        self._shapes = [leaf.shape for leaf in leaves]
        self.frames: FrameStore | None = None
        for index in self._frame_leaves:
            stack, *shape = leaves[index].shape
            self.frames = FrameStore(tuple(shape))
            leaves[index] = np.zeros(stack, np.int32)
        self._frames_each = sum(leaves[index].size for index in self._frame_leaves)
        self._draws = Draws(seed)
        self._start(jax.tree.unflatten(self._structure, leaves), jax.random.key(seed))

    def _start(self, row: Any, key: Any) -> None:
        """An empty state for transitions stored as `row`, and the programs that work on it."""
        state = self.buffer.init(jax.tree.map(jnp.asarray, row), key)
        self._kind = Kind.of(self.buffer, state, row)
        self._stored = self._kind.stored_packing()
        self._arrays = own_arrays(self.buffer)
        # Copies: equal parts may be one array, which cannot be given up twice. With their types
        # said, or programs would be compiled anew for those that were left open at first.
        self._state = tuple(jnp.array(leaf, leaf.dtype) for leaf in self._kind.close(state))
        ring = self.buffer.ring_capacity if isinstance(self.buffer, ExplorationReplay) else WAITING
        # No more wait than the ring holds, so that whatever leaves it has entered before.
        self._waiting = Waiting(self._kind.row_packing(), min(WAITING, ring))
        self._programs = programs(self._kind)
        self._readers: dict[int, list[Callable[[np.ndarray], np.ndarray]]] = {}
        self._added = 0

    def __len__(self) -> int:
        self._enter()
        return int(self.buffer.size(self._kind.open(self._state)))

    @property
    def nbytes(self) -> int:
        """Memory of the whole buffer, frames included."""
        stored = 0 if self.frames is None else self.frames.nbytes
        return sum(leaf.nbytes for leaf in self._state) + self._waiting.words.nbytes + stored

    def add(self, transition: Any, ended: bool) -> None:
        """Remember a transition; `ended` marks the last one of an episode, cut or terminal."""
        leaves = self._leaves(transition)
        if self._waiting.number == self._waiting.most:
            self._enter()
        if self.frames is not None:
            if self.frames.room < self._frames_each:
                self.frames.keep(self._frames_in_use(), self._frames_each)
            for index in self._frame_leaves:
                leaves[index] = self.frames.put(leaves[index])
        self._waiting.put(leaves, bool(ended))
        self._added += 1

    def sample(self, number: int, newest: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
        """Transitions, their places (for `update_priorities`), and how likely each was.

        The first are the `newest`, as many as were added since the last batch, say: so each gets a
        priority of its own soon.
        """
        number = require_positive_int("a batch", number, self.buffer.capacity)
        newest = require_int("the newest transitions of a batch", newest, 0, number)
        self._enter()
        if number > self._added:
            raise InputError(f"cannot sample {number} transitions: {len(self)} are held")
        data = np.asarray(
            self._programs.sample(self._arrays, self._state, self._draws(number), np.int32(newest))
        )
        rows, places, probabilities, held = [read(data) for read in self._sample_readers(number)]
        if number > held:
            raise InputError(f"cannot sample {number} transitions: {held} are held")
        return self._transitions(self._stored.views(rows)), places, probabilities

    def update_priorities(self, places: ArrayLike, errors: ArrayLike) -> None:
        """Set priorities from the errors of sampled transitions."""
        where, amounts = np.asarray(places), np.asarray(errors, np.float32)
        if where.shape != amounts.shape or where.ndim != 1:
            raise InputError(
                f"places and errors must be lists of equal length, not of shapes {where.shape} "
                f"and {amounts.shape}"
            )
        if not np.isfinite(amounts).all():
            raise InputError("errors must be finite numbers, and some are not")
        self._enter()
        if not where.size:
            return
        if where.dtype.kind not in "iu":
            raise InputError(f"places must be whole numbers, not {where.dtype}")
        # Copies, since a program may read them later than it is called.
        chosen = where.astype(np.int32), amounts.copy()
        self._state = self._programs.update(self._arrays, self._state, *chosen)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything, as plain arrays; `load_state_dict` continues from it exactly.

        Only frames in use are saved.
        """
        self._enter()
        state, frames = (self._state, {}) if self.frames is None else self._renumbered(self.frames)
        # Copies: the state itself will be changed in place.
        leaves = [np.array(leaf) for leaf in state]
        saved = {f"leaf{index}": leaf for index, leaf in enumerate(leaves)}
        rest = {"added": np.asarray(self._added), "draws": self._draws.state}
        return {**saved, **frames, **rest}

    def load_state_dict(self, saved: dict[str, np.ndarray]) -> None:
        """Continue from what `state_dict` gave for a buffer built alike."""
        names = [f"leaf{index}" for index in range(len(self._state))]
        like = dict(zip(names, self._state, strict=True))
        like = {**like, "added": np.asarray(0), "draws": self._draws.state}
        if self.frames is not None:
            like["frames"] = np.zeros((len(saved.get("frames", ())), *self.frames.shape), np.uint8)
        if _kinds(saved) != _kinds(like):
            raise InputError("the saved state is of a buffer with another capacity or transition")
        if self.frames is not None:
            self.frames = FrameStore.of(saved["frames"])
        self._state = tuple(jnp.array(saved[name]) for name in names)
        self._draws.state = saved["draws"]
        self._waiting.clear()
        self._added = int(saved["added"])

    def _leaves(self, transition: Any) -> list[Any]:
        """The arrays of a transition that is built like the example."""
        leaves, structure = jax.tree.flatten(transition)
        leaves = [np.asarray(leaf) for leaf in leaves]
        if structure != self._structure or [leaf.shape for leaf in leaves] != self._shapes:
            check_transition(self._given, transition)
        for index in self._frame_leaves:
            if leaves[index].dtype != np.uint8:
                raise InputError(f"frames must be uint8, not {leaves[index].dtype}")
        return leaves

    def _transitions(self, leaves: list[np.ndarray]) -> Any:
        """Transitions as they were added, from the arrays of their rows."""
        if self.frames is not None:
            for index in self._frame_leaves:
                leaves[index] = self.frames.get(leaves[index])
        return jax.tree.unflatten(self._structure, leaves)

    def _sample_readers(self, number: int) -> list[Callable[[np.ndarray], np.ndarray]]:
        """Functions that copy the parts of a sample out of its words."""
        if number not in self._readers:
            packing = self._kind.sample_packing(number)
            self._readers[number] = [packing.reader(i) for i in range(len(packing.shapes))]
        return self._readers[number]

    def _enter(self) -> None:
        """Put waiting transitions into the buffer; if their scores are bad, they go on waiting."""
        waiting = self._waiting
        if not waiting.number:
            return
        scores = None if self._score is None else self._leaving_scores(self._score)
        number = np.int32(waiting.number)
        self._state = self._programs.enter(self._arrays, self._state, waiting.words, number, scores)
        waiting.clear()

    def _leaving_scores(self, score: Callable[[Any], ArrayLike]) -> np.ndarray:
        """A score for each waiting transition: that of the one it drives out of the ring."""
        waiting, ring = self._waiting, self.buffer.ring_capacity  # type: ignore[attr-defined]
        entered = self._added - waiting.number
        first = max(ring - entered, 0)  # those before it fill the ring and drive nothing out
        scores = np.zeros(waiting.most, np.float32)
        number = waiting.number - first
        if number > 0:
            places = ((entered + np.arange(waiting.most)) % ring).astype(np.int32)
            rows = np.asarray(self._programs.read(self._arrays, self._state, places))
            leaving = self._transitions(self._stored.views(rows[first : waiting.number]))
            scores[first : waiting.number] = _checked_scores(score(leaving), number)
        return scores

    def _held_frames(self, words: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Numbers of frames in all rows, as they lie in `words`, and which rows are held."""
        rows = self.buffer.rows(self._kind.open(self._state))
        views = rows.packing.views(words)
        priorities = np.array(rows.priorities.places)
        held = priorities.reshape(-1)[: len(words)] > 0
        return [views[index] for index in self._frame_leaves], held

    def _words(self) -> np.ndarray:
        """A copy of all rows."""
        return np.array(self.buffer.rows(self._kind.open(self._state)).words)

    def _frames_in_use(self) -> np.ndarray:
        """Numbers of the frames that held and waiting transitions refer to."""
        ids, held = self._held_frames(self._words())
        waiting = [self._waiting.rows[index] for index in self._frame_leaves]
        parts = [rows[held] for rows in ids] + [rows[: self._waiting.number] for rows in waiting]
        return np.concatenate([part.ravel() for part in parts])

    def _renumbered(self, store: FrameStore) -> tuple[tuple[Any, ...], dict[str, np.ndarray]]:
        """The state with the frames in use numbered as they appear in it, and those frames.

        So what is saved does not depend on which numbers happened to be free.
        """
        words = self._words()
        ids, held = self._held_frames(words)
        used, seen = np.unique(np.concatenate([rows[held].ravel() for rows in ids]), True)
        used = used[np.argsort(seen)]
        new = np.zeros(used.max(initial=0) + 1, np.int32)
        new[used] = np.arange(len(used), dtype=np.int32)
        mask = held[:, None]
        for rows in ids:
            rows[:] = np.where(mask, new[np.where(mask, rows, 0)], 0)
        state = self._kind.open(self._state)
        state = eqx.tree_at(lambda s: self.buffer.rows(s).words, state, jnp.asarray(words))
        return self._kind.close(state), {"frames": store.get(used)}


def _check_score(buffer: ReplayBuffer[Any], score: Callable[[Any], ArrayLike] | None) -> None:
    name = type(buffer).__name__
    if isinstance(buffer, ExplorationReplay) and not callable(score):
        raise InputError(
            f"{name} needs a function `score` of transitions about to leave, not {score!r}"
        )
    if not isinstance(buffer, ExplorationReplay) and score is not None:
        raise InputError(f"only ExplorationReplay takes a `score`, not {name}")


def _checked_scores(given: ArrayLike, number: int) -> np.ndarray:
    scores = np.asarray(given, np.float32)
    if scores.shape != (number,):
        raise InputError(f"there must be {number} scores, one a transition, not {scores.shape}")
    if not np.isfinite(scores).all():
        raise InputError(f"scores must be finite numbers, not {scores[~np.isfinite(scores)][0]}")
    return scores


def _kinds(arrays: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    return {name: (array.shape, np.dtype(array.dtype)) for name, array in arrays.items()}
