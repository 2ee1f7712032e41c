"""What all replay buffers share: rows of transitions, their priorities, sampling.

A buffer is frozen parameters plus pure functions on a state. Transitions may be any pytree of
arrays. Retention rules decide which rows live; a row with priority 0 is not held.
"""

from abc import abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.errors import InputError, require_int
from windvane.replay.priorities import Priorities

State = TypeVar("State")


class Rows(eqx.Module):
    """Transitions and their priorities. `highest` is the largest priority ever given."""

    transitions: PyTree[Array]
    priorities: Priorities
    highest: Float[Array, ""]

    @staticmethod
    def empty(example: PyTree[Array], number: int, highest: float) -> "Rows":
        """`number` rows shaped like `example`, none of them held."""
        blank = jax.tree.map(
            lambda leaf: jnp.zeros((number, *jnp.shape(leaf)), jnp.result_type(leaf)), example
        )
        return Rows(blank, Priorities.zeros(number), jnp.asarray(highest, jnp.float32))

    def write(self, place: Int[Array, ""], transition: PyTree[Array]) -> "Rows":
        """Store a transition; as new it gets the highest priority, so that it is seen soon."""
        transitions = jax.tree.map(lambda a, b: a.at[place].set(b), self.transitions, transition)
        priorities = self.priorities.set(place[None], self.highest[None])
        return Rows(transitions, priorities, self.highest)

    def replace(
        self, place: Int[Array, ""], transition: PyTree[Array], to: Int[Array, ""]
    ) -> "Rows":
        """As `write`, but what was there moves to another place first; out of range: nowhere."""
        size = jax.tree.leaves(self.transitions)[0].shape[0]

        def move(leaf: Array, new: Array) -> Array:
            # A write that may be dropped would copy the whole array: nowhere is its own place.
            row = jax.lax.dynamic_slice_in_dim(leaf, place, 1)
            kept = jax.lax.dynamic_update_slice_in_dim(
                leaf, row, jnp.where(to < size, to, place), 0
            )
            return kept.at[place].set(new)

        # One change of both priorities: two in a row would copy them all in between.
        places = jnp.stack([jnp.where(to < size, to, self.priorities.places.size), place])
        values = jnp.stack([self.priorities[place], self.highest])
        transitions = jax.tree.map(move, self.transitions, transition)
        return Rows(transitions, self.priorities.set(places, values), self.highest)

    def read(self, places: Int[Array, " n"]) -> PyTree[Array]:
        """Transitions of some rows."""
        return jax.tree.map(lambda leaf: leaf[places], self.transitions)


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

    @abstractmethod
    def size(self, state: State) -> Int[Array, ""]:
        """Number of transitions held."""

    def rows(self, state: State) -> Rows:
        """All rows of a state, held or not: every state keeps them as `rows`."""
        return state.rows  # type: ignore[attr-defined]

    def empty_rows(self, example: PyTree[Array], number: int) -> Rows:
        """`number` rows, none held; the first transitions count as having an error of 1."""
        return Rows.empty(example, number, (1.0 + self.epsilon) ** self.alpha)

    def sample(self, state: State, key: Key[Array, ""], number: int) -> Batch:
        """Draw transitions in proportion to their priorities; some must be held."""
        if not 1 <= number <= self.capacity:
            raise InputError(f"a batch must be of 1 to {self.capacity} transitions, not {number!r}")
        rows = self.rows(state)
        places = rows.priorities.sample(key, number)
        probabilities = rows.priorities[places] / rows.priorities.total
        return Batch(rows.read(places), places, probabilities)

    def update_priorities(
        self, state: State, places: Int[Array, " n"], errors: Float[Array, " n"]
    ) -> State:
        """Set the priorities of sampled transitions from their new errors.

        A transition that was dropped since it was sampled stays dropped.
        """
        rows = self.rows(state)
        fresh = (jnp.abs(errors) + self.epsilon) ** self.alpha
        held = rows.priorities[places] > 0
        priorities = rows.priorities.set(places, jnp.where(held, fresh, 0.0))
        highest = jnp.maximum(rows.highest, jnp.where(held, fresh, 0.0).max())
        return eqx.tree_at(self.rows, state, Rows(rows.transitions, priorities, highest))

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


def check_transition(example: Any, transition: Any) -> None:
    """Complain about a transition that is not shaped like those before it."""
    expected, given = jax.tree.structure(example), jax.tree.structure(transition)
    if expected != given:
        raise InputError(f"a transition must be built like {expected}, not {given}")
    pairs = zip(jax.tree.leaves(example), jax.tree.leaves(transition), strict=True)
    for index, (old, new) in enumerate(pairs):
        if jnp.shape(old) != jnp.shape(new):
            raise InputError(
                f"part {index} of a transition must have shape {jnp.shape(old)}, "
                f"not {jnp.shape(new)}"
            )
