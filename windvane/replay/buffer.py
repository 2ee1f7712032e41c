"""What all replay buffers share: rows of transitions, their priorities, and sampling.

A buffer is frozen parameters plus pure functions on a state. A transition is any pytree of arrays.
Retention rules, in their own files, decide which rows are held; a row of priority 0 is not held.
"""

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, NoReturn, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, UInt32

from windvane.errors import LARGEST_COUNT, InputError, is_number, require_int
from windvane.packing import Packing
from windvane.replay.priorities import BLOCK, DRAWS, Priorities

State = TypeVar("State")

SEGMENT = BLOCK
"""Neighbouring rows that are moved at once; trajectories have some tens of transitions."""


class Rows(eqx.Module):
    """Transitions, packed into words, and their priorities.

    `initial_priority` is the priority of a new transition.
    """

    data: UInt32[Array, "rows words"]
    priorities: Priorities
    initial_priority: Float[Array, ""]
    packing: Packing = eqx.field(static=True)

    @staticmethod
    def empty(example: PyTree[Array], number: int, initial_priority: Any) -> "Rows":
        """`number` rows for transitions like `example`, none of them held."""
        packing = Packing.of(example)
        data = jnp.zeros((number, packing.size), jnp.uint32)
        initial = jnp.asarray(initial_priority, jnp.float32)
        return Rows(data, Priorities.zeros(number), initial, packing)

    def write(self, index: Int[Array, ""], transition: PyTree[Array]) -> "Rows":
        """Store a transition at an index."""
        data = self.data.at[index].set(self._pack(transition))
        priorities = self.priorities.set(index[None], self.initial_priority[None])
        return dataclasses.replace(self, data=data, priorities=priorities)

    def replace(
        self, index: Int[Array, ""], transition: PyTree[Array], to: Int[Array, ""]
    ) -> "Rows":
        """As `write`, but move the row at `index` to `to` first, unless that is out of range."""
        size = self.data.shape[0]
        # A write that may be dropped copies the whole array: a row that stays moves to itself.
        row = jax.lax.dynamic_slice_in_dim(self.data, index, 1)
        target = jnp.where(to < size, to, index)
        moved = jax.lax.dynamic_update_slice_in_dim(self.data, row, target, 0)
        data = moved.at[index].set(self._pack(transition))
        # One update of both priorities: two consecutive ones would copy all of them in between.
        indices = jnp.stack([jnp.where(to < size, to, self.priorities.values.size), index])
        values = jnp.stack([self.priorities[index], self.initial_priority])
        priorities = self.priorities.set(indices, values)
        return dataclasses.replace(self, data=data, priorities=priorities)

    def move_segment(
        self,
        source: Int[Array, ""],
        target: Int[Array, ""],
        length: Int[Array, ""],
        kept: Bool[Array, ""],
    ) -> "Rows":
        """Move `length` neighbouring rows, at most `SEGMENT`; if not `kept`, drop them.

        `SEGMENT` rows are always copied, so none of those from `target` on may be in use.
        """
        segment = jax.lax.dynamic_slice_in_dim(self.data, source, SEGMENT)
        # Rows that are dropped are copied onto themselves.
        start = jnp.where(kept, target, source)
        data = jax.lax.dynamic_update_slice_in_dim(self.data, segment, start, 0)
        priorities = self.priorities.move_segment(source, target, length, kept)
        return dataclasses.replace(self, data=data, priorities=priorities)

    def read(self, indices: Int[Array, " n"]) -> PyTree[Array]:
        """The transitions at some indices."""
        return jax.vmap(self.packing.unpack)(self.data[indices])

    def _pack(self, transition: PyTree[Array]) -> UInt32[Array, " words"]:
        check_transition(self.packing, transition)
        return self.packing.pack(transition)


class Batch(NamedTuple):
    """Sampled transitions, their indices, and their probabilities (for importance weights)."""

    transitions: PyTree[Array]
    indices: Int[Array, " n"]
    probabilities: Float[Array, " n"]


class ReplayBuffer(eqx.Module, Generic[State]):
    """Prioritised replay: p = (error + priority_offset)^priority_exponent, sampled in proportion.

    Final subclasses are retention rules: they differ in what they keep when the buffer is full.
    """

    capacity: eqx.AbstractVar[int]
    priority_exponent: eqx.AbstractVar[float]
    priority_offset: eqx.AbstractVar[float]

    whole_trajectories: ClassVar[bool] = False
    """Whether transitions of one trajectory must be added one after another."""

    @abstractmethod
    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> State:
        """An empty buffer for transitions like `example`; `key` is for rules that are random."""

    @abstractmethod
    def add(self, state: State, transition: PyTree[Array], ended: Bool[Array, ""]) -> State:
        """Add a transition; `ended` is true for the last of an episode, terminated or truncated."""

    @abstractmethod
    def size(self, state: State) -> Int[Array, ""]:
        """Number of transitions held."""

    @abstractmethod
    def write_index(self, state: State) -> Int[Array, ""]:
        """The index, in the ring of the newest transitions, of the next one."""

    def close_trajectory(self, state: State) -> State:
        """The open trajectory is abandoned: the next transition begins another."""
        return state

    @property
    def ring_capacity(self) -> int:
        """Transitions in the first-in first-out half."""
        return self.capacity - self.capacity // 2

    def rows(self, state: State) -> Rows:
        """All rows of a state, held or not; every state has them as its field `rows`."""
        return state.rows  # type: ignore[attr-defined]

    def empty_rows(self, example: PyTree[Array], number: int) -> Rows:
        """`number` rows, none held; the first transitions have the priority of an error of 1."""
        return Rows.empty(example, number, (1.0 + self.priority_offset) ** self.priority_exponent)

    def sample(self, state: State, key: Key[Array, ""], number: int, newest: int = 0) -> Batch:
        """Sample a batch: the `newest` transitions, last first, and others in proportion to their
        priorities, with replacement.

        At least `number` transitions must be held. A compiled program cannot check that, and
        samples from those that are held.
        """
        if not 1 <= number <= self.capacity:
            raise InputError(f"a batch must be of 1 to {self.capacity} transitions, not {number!r}")
        if not 0 <= newest <= number:
            raise InputError(
                f"of a batch of {number}, 0 to {number} can be the newest, not {newest!r}"
            )
        held = self.size(state)
        if not isinstance(held, Tracer) and number > int(held):
            raise InputError(f"cannot sample {number} transitions: {int(held)} are held")
        draws = jax.random.uniform(key, (DRAWS, number))
        indices, probabilities = self.sample_indices(state, draws, newest)
        return Batch(self.rows(state).read(indices), indices, probabilities)

    def sample_indices(
        self, state: State, draws: Float[Array, "draws n"], newest: int | Int[Array, ""] = 0
    ) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
        """The indices of a sample and their probabilities, from given random numbers, uniform in
        [0, 1).
        """
        priorities, age = self.rows(state).priorities, jnp.arange(draws.shape[1])
        recent = (self.write_index(state) - 1 - age) % self.ring_capacity
        wanted = (age < jnp.minimum(newest, self.ring_capacity)) & (priorities[recent] > 0)
        # All others divide the whole of the priorities among them, whatever their number.
        stratum, strata = jnp.cumsum(~wanted) - 1, jnp.maximum(jnp.sum(~wanted), 1)
        indices = jnp.where(wanted, recent, priorities.locate(draws, stratum, strata))
        return indices, priorities[indices] / priorities.total

    def update_priorities(
        self, state: State, indices: Int[Array, " n"], errors: Float[Array, " n"]
    ) -> State:
        """Set the priorities of sampled transitions from their new errors.

        A transition that was dropped since it was sampled stays dropped. New transitions get the
        mean of these priorities: with the largest so far, a single large error would fill all
        later batches with new transitions.
        """
        rows = self.rows(state)
        new = (jnp.abs(errors) + self.priority_offset) ** self.priority_exponent
        held = rows.priorities[indices] > 0
        priorities = rows.priorities.set(indices, jnp.where(held, new, 0.0))
        changed = dataclasses.replace(rows, priorities=priorities, initial_priority=new.mean())
        return eqx.tree_at(self.rows, state, changed)

    def importance_weights(self, state: State, batch: Batch, beta: float) -> Float[Array, " n"]:
        """(n p)^-beta, scaled so that the largest of the batch is 1; the paper uses none."""
        number = self.size(state).astype(batch.probabilities.dtype)
        weights = (number * batch.probabilities) ** -beta
        return weights / weights.max()


class ScoredReplay(ReplayBuffer[State]):
    """A buffer that keeps or drops the transition leaving its ring by a score from the agent.

    The agent reads `leaving`, computes the score and passes it to `add_scored`. Transitions leave
    the ring in the order in which they entered it.
    """

    @abstractmethod
    def leaving(self, state: State) -> PyTree[Array]:
        """The transition that the next `add_scored` evicts from the ring, once the ring is full."""

    @abstractmethod
    def add_scored(
        self,
        state: State,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""],
    ) -> State:
        """As `add`, with the `score` of the transition that leaves; ignored while none leaves."""

    def add(self, state: State, transition: PyTree[Array], ended: Bool[Array, ""]) -> NoReturn:
        """Not supported: use `add_scored`."""
        del state, transition, ended
        raise InputError(
            f"{type(self).__name__} needs the score of the leaving transition: use `add_scored`"
        )


def check_buffer(
    capacity: Any, priority_exponent: Any, priority_offset: Any, smallest: int = 1
) -> int:
    """Return the capacity if it is at least `smallest` and the rest gives valid priorities."""
    capacity = require_int("the capacity of a replay buffer", capacity, smallest, LARGEST_COUNT)
    if not (is_number(priority_exponent) and priority_exponent >= 0):
        raise InputError(
            f"priority_exponent must be a finite number of at least 0, not {priority_exponent!r}"
        )
    if not (is_number(priority_offset) and priority_offset > 0):
        raise InputError(
            "priority_offset must be a finite number above 0, or nothing would be sampled, not "
            f"{priority_offset!r}"
        )
    return capacity


def check_transition(packing: Packing, transition: Any) -> None:
    """Raise an error if a transition has another structure or shape than the example."""
    leaves, structure = jax.tree.flatten(transition)
    if structure != packing.structure:
        raise InputError(f"a transition must be built like {packing.structure}, not {structure}")
    for index, (shape, leaf) in enumerate(zip(packing.shapes, leaves, strict=True)):
        if np.shape(leaf) != shape:
            raise InputError(
                f"part {index} of a transition must have shape {shape}, not {np.shape(leaf)}"
            )
