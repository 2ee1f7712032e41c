"""The compiled programs of `HostReplay`, and the plain arrays that they take and return.

A call to a compiled program costs several microseconds per argument and result, and more for a tree
that Python must flatten. So staged transitions are rows of one array of words, a sample is returned
as one vector, and a state is passed as the flat tuple of its arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from windvane.packing import Packing
from windvane.replay.buffer import ReplayBuffer, ScoredReplay
from windvane.replay.priorities import DRAWS


class StagingBuffer:
    """Transitions that are not in the replay buffer yet, and whether each ended an episode."""

    def __init__(self, packing: Packing, capacity: int):
        """Room for `capacity` transitions; `packing` is `ProgramKey.staging_packing()`."""
        self.packing, self.capacity, self.size = packing, capacity, 0
        self.clear()

    def append(self, leaves: list[np.ndarray], ended: bool) -> None:
        """Add a transition as the last."""
        for rows, leaf in zip(self.rows, leaves, strict=False):
            rows[self.size] = leaf
        self.rows[-1][self.size] = ended
        self.size += 1

    def clear(self) -> None:
        """Remove everything, into a new array: a program may still read the old one."""
        self.data = np.zeros((self.capacity, self.packing.size), np.uint32)
        self.rows = self.packing.views(self.data)
        self.size = 0


class Programs(NamedTuple):
    """A buffer's methods, compiled; `arrays` are the buffer's parameters, `leaves` its state.

    `flush` and `update` take the state donated, so that it is updated in place and not copied.
    """

    flush: Callable[..., Any]
    """(arrays, leaves, data, number, scores) -> leaves"""
    sample: Callable[..., Any]
    """(arrays, leaves, draws, newest) -> sample as words"""
    update: Callable[..., Any]
    """(arrays, leaves, indices, errors) -> leaves"""
    read: Callable[..., Any]
    """(arrays, leaves, indices) -> rows"""


@dataclass(frozen=True)
class ProgramKey:
    """Everything that the programs of a buffer depend on; buffers with equal keys share them."""

    buffer: Any
    fixed: tuple[Any, ...]
    state: Any
    is_key: tuple[bool, ...]
    transition: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]

    @staticmethod
    def of(buffer: ReplayBuffer[Any], state: Any, transition: Any) -> "ProgramKey":
        """The key of a buffer with such a state and such transitions."""
        parts, structure = jax.tree.flatten(buffer)
        leaves, state_structure = jax.tree.flatten(state)
        arrays, transition_structure = jax.tree.flatten(transition)
        return ProgramKey(
            buffer=structure,
            fixed=tuple(None if _is_array(part) else part for part in parts),
            state=state_structure,
            is_key=tuple(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves),
            transition=transition_structure,
            shapes=tuple(array.shape for array in arrays),
            dtypes=tuple(array.dtype for array in arrays),
        )

    def build_buffer(self, arrays: tuple[Any, ...]) -> ReplayBuffer[Any]:
        """The buffer with these arrays."""
        rest = iter(arrays)
        parts = [next(rest) if part is None else part for part in self.fixed]
        return jax.tree.unflatten(self.buffer, parts)

    def unflatten_state(self, leaves: tuple[Any, ...]) -> Any:
        """The state with these arrays."""
        typed = [
            jax.random.wrap_key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(leaves, self.is_key, strict=True)
        ]
        return jax.tree.unflatten(self.state, typed)

    def flatten_state(self, state: Any) -> tuple[Any, ...]:
        """The arrays of a state, with random keys as their data, which are passed faster."""
        leaves = jax.tree.leaves(state)
        return tuple(
            jax.random.key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(leaves, self.is_key, strict=True)
        )

    def staging_packing(self) -> Packing:
        """The layout of a staged transition: its arrays, and whether it ended an episode."""
        return Packing.of([*self._arrays(), np.zeros((), bool)])

    def sample_packing(self, number: int) -> Packing:
        """The layout of a sample: its rows, indices, probabilities, and how many are held."""
        rows = np.zeros((number, self.stored_packing().size), np.uint32)
        indices, held = np.zeros(number, int), np.zeros((), int)
        parts = [rows, indices, np.zeros(number), held]
        return Packing.of(jax.tree.map(_canonical, parts))

    def stored_packing(self) -> Packing:
        """The layout of a transition in its row of the buffer."""
        return Packing.of(self._arrays())

    def _arrays(self) -> list[jax.ShapeDtypeStruct]:
        pairs = zip(self.shapes, self.dtypes, strict=True)
        return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in pairs]


def parameter_arrays(buffer: ReplayBuffer[Any]) -> tuple[Any, ...]:
    """The arrays among a buffer's parameters."""
    return tuple(part for part in jax.tree.leaves(buffer) if _is_array(part))


class UniformDraws:
    """Random numbers for sampling, drawn on the host: in a program they cost half of a sample."""

    def __init__(self, seed: int):
        """The seed determines all draws."""
        self._generator = np.random.Generator(np.random.Philox(seed))

    def __call__(self, number: int) -> np.ndarray:
        """The random numbers for a sample of `number` transitions."""
        # Rounded down to float32 they stay below 1.
        draws = self._generator.integers(0, 1 << 24, (DRAWS, number), np.uint32)
        return draws.astype(np.float32) * np.float32(2**-24)

    @property
    def state(self) -> np.ndarray:
        """The state of the generator."""
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
def compiled_programs(key: ProgramKey) -> Programs:
    """The programs of buffers with this key."""
    packing = key.staging_packing()

    def flush(arrays: Any, leaves: Any, data: Any, number: Any, scores: Any) -> Any:
        buffer = key.build_buffer(arrays)

        def step(index: Any, state: Any) -> Any:
            *parts, ended = packing.unpack(data[index])
            transition = jax.tree.unflatten(key.transition, parts)
            if isinstance(buffer, ScoredReplay):
                return buffer.add_scored(state, transition, ended, scores[index])
            return buffer.add(state, transition, ended)

        return key.flatten_state(jax.lax.fori_loop(0, number, step, key.unflatten_state(leaves)))

    def sample(arrays: Any, leaves: Any, draws: Any, newest: Any) -> Any:
        buffer, state = key.build_buffer(arrays), key.unflatten_state(leaves)
        indices, probabilities = buffer.sample_indices(state, draws, newest)
        # Rows are returned packed: the host unpacks them at a lower cost.
        parts = (buffer.rows(state).data[indices], indices, probabilities, buffer.size(state))
        return key.sample_packing(draws.shape[1]).pack(parts)

    def update(arrays: Any, leaves: Any, indices: Any, errors: Any) -> Any:
        buffer, state = key.build_buffer(arrays), key.unflatten_state(leaves)
        return key.flatten_state(buffer.update_priorities(state, indices.astype(int), errors))

    def read(arrays: Any, leaves: Any, indices: Any) -> Any:
        return key.build_buffer(arrays).rows(key.unflatten_state(leaves)).data[indices]

    return Programs(
        flush=jax.jit(flush, donate_argnums=1),
        sample=jax.jit(sample),
        update=jax.jit(update, donate_argnums=1),
        read=jax.jit(read),
    )


def _canonical(part: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(part.shape, jax.dtypes.canonicalize_dtype(part.dtype))


def _is_array(part: Any) -> bool:
    return isinstance(part, jax.Array | np.ndarray)
