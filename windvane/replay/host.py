"""The same buffers for programs outside JAX: NumPy in, NumPy out.

Added transitions wait on the host and enter the buffer many at a time, before the next sample,
since a call into a compiled program costs more than the work for one transition.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from windvane.batching import when
from windvane.errors import InputError, require_positive_int
from windvane.replay.buffer import ReplayBuffer, check_transition
from windvane.replay.exploration import ExplorationReplay

WAITING = 64
"""Transitions that enter the buffer in one call."""


class HostReplay:
    """A replay buffer with a memory of its own; any `ReplayBuffer` decides what it keeps.

    `example` is a transition, any tree of arrays and numbers: it fixes shapes and types.
    """

    def __init__(self, buffer: ReplayBuffer[Any], example: Any, seed: int = 0):
        """An empty buffer; `seed` decides what is sampled."""
        if isinstance(buffer, ExplorationReplay):
            raise InputError(
                "exploration replay needs a score for each leaving transition, which a host-side "
                "buffer cannot ask for; use it inside a compiled loop"
            )
        self.buffer = buffer
        self._example = jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), example)
        keep_key, self._key = jax.random.split(jax.random.key(seed))
        state = buffer.init(jax.tree.map(jnp.asarray, self._example), keep_key)
        # Equal parts may be one array, which cannot be given up twice.
        self._state = jax.tree.map(lambda leaf: leaf.copy(), state)
        self._waiting: list[tuple[Any, bool]] = []
        self._added = 0

    def __len__(self) -> int:
        self._enter()
        return int(self.buffer.size(self._state))

    def add(self, transition: Any, ended: bool) -> None:
        """Remember a transition; `ended` marks the last one of an episode, cut or terminal."""
        check_transition(self._example, transition)
        self._waiting.append((transition, bool(ended)))
        self._added += 1
        if len(self._waiting) == WAITING:
            self._enter()

    def sample(self, number: int) -> tuple[Any, np.ndarray, np.ndarray]:
        """Transitions, their places (for `update_priorities`), and how likely each was."""
        require_positive_int("a batch", number)
        self._enter()
        if number > self._added:
            raise InputError(f"cannot sample {number} transitions: {self._added} have been added")
        self._key, key = jax.random.split(self._key)
        batch = _sample(self.buffer, self._state, key, number)
        return jax.tree.map(np.asarray, (batch.transitions, batch.places, batch.probabilities))

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
        chosen = (jnp.asarray(where), jnp.asarray(amounts))
        self._state = _update((self.buffer, chosen), self._state)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything, as plain arrays; `load_state_dict` continues from it exactly."""
        self._enter()
        leaves = jax.tree.leaves((self._state, self._key))
        saved = {f"leaf{index}": _plain(leaf) for index, leaf in enumerate(leaves)}
        return {**saved, "added": np.asarray(self._added)}

    def load_state_dict(self, saved: dict[str, np.ndarray]) -> None:
        """Continue from what `state_dict` gave for a buffer built alike."""
        leaves, structure = jax.tree.flatten((self._state, self._key))
        if len(saved) != len(leaves) + 1 or any(
            saved[f"leaf{index}"].shape != _plain(leaf).shape for index, leaf in enumerate(leaves)
        ):
            raise InputError("the saved state is of a buffer with another capacity or transition")
        restored = [_like(leaf, saved[f"leaf{index}"]) for index, leaf in enumerate(leaves)]
        self._state, self._key = jax.tree.unflatten(structure, restored)
        self._waiting, self._added = [], int(saved["added"])

    def _enter(self) -> None:
        """Put waiting transitions into the buffer; the call is padded, so that it compiles once."""
        if not self._waiting:
            return
        number = len(self._waiting)
        padded = self._waiting + self._waiting[-1:] * (WAITING - number)
        transitions = jax.tree.map(
            lambda example, *leaves: np.stack([np.asarray(a, example.dtype) for a in leaves]),
            self._example,
            *(transition for transition, _ in padded),
        )
        ended = np.asarray([end for _, end in padded])
        valid = np.arange(WAITING) < number
        items = jax.tree.map(jnp.asarray, (transitions, ended, valid))
        self._state = _enter((self.buffer, items), self._state)
        self._waiting = []


# The state is given up to the call, so that it is changed in place instead of copied.
@eqx.filter_jit(donate="all-except-first")
def _enter(what: tuple[ReplayBuffer[Any], Any], state: Any) -> Any:
    buffer, items = what

    def step(state: Any, item: Any) -> tuple[Any, None]:
        transition, end, counts = item
        return when(counts, buffer.add, state, transition, end), None

    return jax.lax.scan(step, state, items)[0]


@eqx.filter_jit
def _sample(buffer: ReplayBuffer[Any], state: Any, key: Any, number: int) -> Any:
    return buffer.sample(state, key, number)


@eqx.filter_jit(donate="all-except-first")
def _update(what: tuple[ReplayBuffer[Any], tuple[Any, Any]], state: Any) -> Any:
    buffer, chosen = what
    return buffer.update_priorities(state, *chosen)


def _plain(leaf: Any) -> np.ndarray:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _like(leaf: Any, saved: np.ndarray) -> Any:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(jnp.asarray(saved)) if is_key else jnp.asarray(saved)
