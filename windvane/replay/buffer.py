"""What all replay buffers share: rows of transitions, their priorities, sampling.

A buffer is frozen parameters plus pure functions on a state. Transitions may be any pytree of
arrays. Retention rules decide which rows live; a row with priority 0 is not held.
"""

import dataclasses
from abc import abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, UInt32

from windvane.errors import InputError, require_int
from windvane.packing import Packing
from windvane.replay.priorities import BLOCK, DRAWS, Priorities

State = TypeVar("State")

RUN = BLOCK
"""Neighbouring rows that are moved at once; trajectories are some tens of transitions long."""


class Rows(eqx.Module):
    """Transitions, packed into words, and their priorities; `newcomer` is a new one's."""

    words: UInt32[Array, "rows words"]
    priorities: Priorities
    newcomer: Float[Array, ""]
    packing: Packing = eqx.field(static=True)

    @staticmethod
    def empty(example: PyTree[Array], number: int, newcomer: float) -> "Rows":
        """`number` rows for transitions like `example`, none of them held."""
        packing = Packing.of(example)
        blank = jnp.zeros((number, packing.size), jnp.uint32)
        return Rows(blank, Priorities.zeros(number), jnp.asarray(newcomer, jnp.float32), packing)

    def write(self, place: Int[Array, ""], transition: PyTree[Array]) -> "Rows":
        """Store a transition."""
        words = self.words.at[place].set(self._pack(transition))
        priorities = self.priorities.set(place[None], self.newcomer[None])
        return dataclasses.replace(self, words=words, priorities=priorities)

    def replace(
        self, place: Int[Array, ""], transition: PyTree[Array], to: Int[Array, ""]
    ) -> "Rows":
        """As `write`, but what was there moves to another place first; out of range: nowhere."""
        size = self.words.shape[0]
        # A write that may be dropped would copy the whole array: nowhere is its own place.
        row = jax.lax.dynamic_slice_in_dim(self.words, place, 1)
        there = jnp.where(to < size, to, place)
        moved = jax.lax.dynamic_update_slice_in_dim(self.words, row, there, 0)
        words = moved.at[place].set(self._pack(transition))
        # One change of both priorities: two in a row would copy them all in between.
        places = jnp.stack([jnp.where(to < size, to, self.priorities.places.size), place])
        values = jnp.stack([self.priorities[place], self.newcomer])
        priorities = self.priorities.set(places, values)
        return dataclasses.replace(self, words=words, priorities=priorities)

    def move_run(
        self,
        source: Int[Array, ""],
        target: Int[Array, ""],
        number: Int[Array, ""],
        kept: Bool[Array, ""],
    ) -> "Rows":
        """Move `number` neighbouring rows, at most `RUN` of them; if not `kept`, forget them.

        `RUN` rows are copied, however few are meant: none from the target on may be in use.
        """
        run = jax.lax.dynamic_slice_in_dim(self.words, source, RUN)
        # Rows that are forgotten move to where they are.
        there = jnp.where(kept, target, source)
        words = jax.lax.dynamic_update_slice_in_dim(self.words, run, there, 0)
        priorities = self.priorities.move_run(source, target, number, kept)
        return dataclasses.replace(self, words=words, priorities=priorities)

    def read(self, places: Int[Array, " n"]) -> PyTree[Array]:
        """Transitions of some rows."""
        return jax.vmap(self.packing.unpack)(self.words[places])

    def _pack(self, transition: PyTree[Array]) -> UInt32[Array, " words"]:
        check_transition(self.packing, transition)
        return self.packing.pack(transition)


class Batch(NamedTuple):
    """Sampled transitions, where they lie, and how likely each was (for importance weights)."""

    transitions: PyTree[Array]
    places: Int[Array, " n"]
    probabilities: Float[Array, " n"]


class ReplayBuffer(eqx.Module, Generic[State]):
    """Prioritised replay: p = (error + epsilon)^alpha, sampled in proportion.

    Subclasses are final and differ in what they keep when there is no room for all.
    """

    capacity: eqx.AbstractVar[int]
    alpha: eqx.AbstractVar[float]
    epsilon: eqx.AbstractVar[float]

    @abstractmethod
    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> State:
        """An empty buffer for transitions shaped like `example`; `key` is for rules that draw."""

    @abstractmethod
    def add(
        self,
        state: State,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""] | None = None,
    ) -> State:
        """Remember a transition; `ended` says whether it is its episode's last, cut or terminal.

        Only `ExplorationReplay` looks at `score`.
        """

    whole_trajectories = False

    def close_trajectory(self, state):
        return state

    @abstractmethod
    def size(self, state: State) -> Int[Array, ""]:
        """Number of transitions held."""

    @abstractmethod
    def next_place(self, state: State) -> Int[Array, ""]:
        """Where in the ring of the newest transitions the next one will lie."""

    @property
    def ring_capacity(self) -> int:
        """Transitions in the first-in first-out half."""
        return self.capacity - self.capacity // 2

    def rows(self, state: State) -> Rows:
        """All rows of a state, held or not: every state keeps them as `rows`."""
        return state.rows  # type: ignore[attr-defined]

    def empty_rows(self, example: PyTree[Array], number: int) -> Rows:
        """`number` rows, none held; the first transitions count as having an error of 1."""
        return Rows.empty(example, number, (1.0 + self.epsilon) ** self.alpha)

    def sample(self, state: State, key: Key[Array, ""], number: int, newest: int = 0) -> Batch:
        """The `newest` transitions, last first, and for the rest of the batch some that are drawn
        in proportion to their priorities, perhaps one more than once.

        As many must be held. A compiled program cannot complain about that, and would draw from
        whatever is held.
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
        places, probabilities = self.draw(state, draws, newest)
        return Batch(self.rows(state).read(places), places, probabilities)

    def draw(
        self, state: State, draws: Float[Array, "draws n"], newest: int | Int[Array, ""] = 0
    ) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
        """Where the transitions of a sample lie, and how likely each was, by given random numbers,
        uniform in [0, 1).
        """
        priorities, age = self.rows(state).priorities, jnp.arange(draws.shape[1])
        recent = (self.next_place(state) - 1 - age) % self.ring_capacity
        wanted = (age < jnp.minimum(newest, self.ring_capacity)) & (priorities[recent] > 0)
        places = jnp.where(wanted, recent, priorities.locate(draws))
        return places, priorities[places] / priorities.total

    def update_priorities(
        self, state: State, places: Int[Array, " n"], errors: Float[Array, " n"]
    ) -> State:
        """Set the priorities of sampled transitions from their new errors.

        A transition that was dropped since it was sampled stays dropped. Newcomers will have the
        mean of these priorities: the largest so far would, after a single large error, make all
        later batches consist of newcomers.
        """
        rows = self.rows(state)
        fresh = (jnp.abs(errors) + self.epsilon) ** self.alpha
        held = rows.priorities[places] > 0
        priorities = rows.priorities.set(places, jnp.where(held, fresh, 0.0))
        changed = dataclasses.replace(rows, priorities=priorities, newcomer=fresh.mean())
        return eqx.tree_at(self.rows, state, changed)

    def importance_weights(self, state: State, batch: Batch, beta: float) -> Float[Array, " n"]:
        """(n p)^-beta, scaled so that the largest of the batch is 1; the paper uses none."""
        number = self.size(state).astype(batch.probabilities.dtype)
        weights = (number * batch.probabilities) ** -beta
        return weights / weights.max()


def check_buffer(capacity: int, alpha: float, epsilon: float, least: int = 1) -> int:
    """Return the capacity if it is at least `least` and the rest makes priorities."""
    capacity = require_int("the capacity of a replay buffer", capacity, least)
    if not (np.isfinite(alpha) and alpha >= 0):
        raise InputError(f"alpha must be 0 or more, not {alpha!r}")
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon must be above 0, or nothing would be sampled, not {epsilon!r}")
    return capacity


def check_transition(packing: Packing, transition: Any) -> None:
    """Complain about a transition that is not shaped like those before it."""
    leaves, structure = jax.tree.flatten(transition)
    if structure != packing.structure:
        raise InputError(f"a transition must be built like {packing.structure}, not {structure}")
    for index, (shape, leaf) in enumerate(zip(packing.shapes, leaves, strict=True)):
        if np.shape(leaf) != shape:
            raise InputError(
                f"part {index} of a transition must have shape {shape}, not {np.shape(leaf)}"
            )
