"""How transitions cross between the host and compiled programs: many at once, as plain words.

A call into a compiled program costs several microseconds for each array in or out, and more for a
tree that Python must take apart. So waiting transitions are rows of one array of words, a sample
comes back as one vector, and a state crosses as the flat tuple of its arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from windvane.packing import Packing
from windvane.replay.buffer import ReplayBuffer
from windvane.replay.priorities import DRAWS


class Waiting:
    """Transitions that have not entered the buffer yet, and whether each ended an episode."""

    def __init__(self, packing: Packing, most: int):
        """Room for `most` transitions; `packing` is `Kind.row_packing()`."""
        self.packing, self.most, self.number = packing, most, 0
        self.clear()

    def put(self, leaves: list[np.ndarray], ended: bool) -> None:
        """Wait as the last."""
        for rows, leaf in zip(self.rows, leaves, strict=False):
            rows[self.number] = leaf
        self.rows[-1][self.number] = ended
        self.number += 1

    def clear(self) -> None:
        """Nothing waits. The old words are left alone: a program may still be reading them."""
        self.words = np.zeros((self.most, self.packing.size), np.uint32)
        self.rows = self.packing.views(self.words)
        self.number = 0


class Programs(NamedTuple):
    """What a buffer does, compiled; `arrays` are the buffer's own, `leaves` those of its state.

    Those that change the state are given it up, so that it is changed in place, not copied.
    """

    enter: Callable[..., Any]
    """(arrays, leaves, words, number, scores) -> leaves"""
    sample: Callable[..., Any]
    """(arrays, leaves, draws, newest) -> sample as words"""
    update: Callable[..., Any]
    """(arrays, leaves, places, errors) -> leaves"""
    read: Callable[..., Any]
    """(arrays, leaves, places) -> rows"""


@dataclass(frozen=True)
class Kind:
    """All that the programs of a buffer depend on; buffers of one kind share them."""

    buffer: Any
    fixed: tuple[Any, ...]
    state: Any
    is_key: tuple[bool, ...]
    transition: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]

    @staticmethod
    def of(buffer: ReplayBuffer[Any], state: Any, transition: Any) -> "Kind":
        """The kind of a buffer with such a state and such transitions."""
        parts, structure = jax.tree.flatten(buffer)
        leaves, state_structure = jax.tree.flatten(state)
        arrays, transition_structure = jax.tree.flatten(transition)
        return Kind(
            buffer=structure,
            fixed=tuple(None if _is_array(part) else part for part in parts),
            state=state_structure,
            is_key=tuple(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves),
            transition=transition_structure,
            shapes=tuple(array.shape for array in arrays),
            dtypes=tuple(array.dtype for array in arrays),
        )

    def build(self, arrays: tuple[Any, ...]) -> ReplayBuffer[Any]:
        """The buffer with these arrays."""
        rest = iter(arrays)
        parts = [next(rest) if part is None else part for part in self.fixed]
        return jax.tree.unflatten(self.buffer, parts)

    def open(self, leaves: tuple[Any, ...]) -> Any:
        """The state whose arrays these are."""
        typed = [
            jax.random.wrap_key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(leaves, self.is_key, strict=True)
        ]
        return jax.tree.unflatten(self.state, typed)

    def close(self, state: Any) -> tuple[Any, ...]:
        """The arrays of a state, random keys as plain numbers: those cross faster."""
        leaves = jax.tree.leaves(state)
        return tuple(
            jax.random.key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(leaves, self.is_key, strict=True)
        )

    def row_packing(self) -> Packing:
        """How a waiting transition lies in its words: its arrays, and whether it ended."""
        return Packing.of([*self._arrays(), np.zeros((), bool)])

    def sample_packing(self, number: int) -> Packing:
        """How a sample lies in its words: its rows, places, probabilities, and how many held."""
        rows = np.zeros((number, self.stored_packing().size), np.uint32)
        places, held = np.zeros(number, int), np.zeros((), int)
        parts = [rows, places, np.zeros(number), held]
        return Packing.of(jax.tree.map(_canonical, parts))

    def stored_packing(self) -> Packing:
        """How a transition lies in its row of the buffer."""
        return Packing.of(self._arrays())

    def _arrays(self) -> list[jax.ShapeDtypeStruct]:
        pairs = zip(self.shapes, self.dtypes, strict=True)
        return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in pairs]


def own_arrays(buffer: ReplayBuffer[Any]) -> tuple[Any, ...]:
    """The arrays among a buffer's parameters."""
    return tuple(part for part in jax.tree.leaves(buffer) if _is_array(part))


class Draws:
    """Random numbers for sampling, drawn on the host: in a program they cost half of a sample."""

    def __init__(self, seed: int):
        """The seed determines all that follow."""
        self._generator = np.random.Generator(np.random.Philox(seed))

    def __call__(self, number: int) -> np.ndarray:
        """What it takes to find `number` transitions."""
        # Rounded down to float32 they stay below 1.
        draws = self._generator.integers(0, 1 << 24, (DRAWS, number), np.uint32)
        return draws.astype(np.float32) * np.float32(2**-24)

    @property
    def state(self) -> np.ndarray:
        """All that decides which numbers follow."""
        now = self._generator.bit_generator.state
        rest = [now["buffer_pos"], now["has_uint32"], now["uinteger"]]
        parts = [now["state"]["counter"], now["state"]["key"], now["buffer"], rest]
        return np.concatenate([np.asarray(part, np.uint64) for part in parts])

    @state.setter
    def state(self, saved: np.ndarray) -> None:
        counter, key, buffer, rest = np.split(saved, [4, 6, 10])
        position, has_half, half = rest.tolist()
        self._generator.bit_generator.state = {
            "bit_generator": "Philox",
            "state": {"counter": counter, "key": key},
            "buffer": buffer,
            "buffer_pos": position,
            "has_uint32": has_half,
            "uinteger": half,
        }


@lru_cache(maxsize=64)
def programs(kind: Kind) -> Programs:
    """The programs for buffers of a kind."""
    packing = kind.row_packing()

    def enter(arrays: Any, leaves: Any, data: Any, number: Any, scores: Any) -> Any:
        buffer = kind.build(arrays)

        def step(index: Any, state: Any) -> Any:
            *parts, ended = packing.unpack(data[index])
            transition = jax.tree.unflatten(kind.transition, parts)
            score = None if scores is None else scores[index]
            return buffer.add(state, transition, ended, score)

        return kind.close(jax.lax.fori_loop(0, number, step, kind.open(leaves)))

    def sample(arrays: Any, leaves: Any, draws: Any, newest: Any) -> Any:
        buffer, state = kind.build(arrays), kind.open(leaves)
        places, probabilities = buffer.draw(state, draws, newest)
        # Rows cross as they are: the host takes them apart for less.
        parts = (buffer.rows(state).words[places], places, probabilities, buffer.size(state))
        return kind.sample_packing(draws.shape[1]).pack(parts)

    def update(arrays: Any, leaves: Any, places: Any, errors: Any) -> Any:
        state = kind.open(leaves)
        return kind.close(kind.build(arrays).update_priorities(state, places.astype(int), errors))

    def read(arrays: Any, leaves: Any, places: Any) -> Any:
        return kind.build(arrays).rows(kind.open(leaves)).words[places]

    return Programs(
        enter=jax.jit(enter, donate_argnums=1),
        sample=jax.jit(sample),
        update=jax.jit(update, donate_argnums=1),
        read=jax.jit(read),
    )


def _canonical(part: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(part.shape, jax.dtypes.canonicalize_dtype(part.dtype))


def _is_array(part: Any) -> bool:
    return isinstance(part, jax.Array | np.ndarray)
