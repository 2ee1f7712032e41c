"""NSGA-II's crowding distance of a changing set of points, updated incrementally.

A point's distance is the sum over objectives of the gap between its two neighbours, relative to the
objective's range; the first and the last of an order have an infinite distance. Equal values are
ordered by age. Every point is linked to its neighbours, so that inserting or removing one changes
only those, and nothing is ever sorted.
"""

from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from windvane.replay.diversity import Diversity


class Order(eqx.Module):
    """The points in the order of one objective, as a doubly linked list.

    `lower` and `upper` copy the neighbours' values; -infinity and infinity where there is none.
    A free slot has the value infinity. `lowest` and `highest` are the values at the ends.
    """

    value: Float[Array, " slots"]
    lower: Float[Array, " slots"]
    upper: Float[Array, " slots"]
    below: Int[Array, " slots"]
    above: Int[Array, " slots"]
    lowest: Float[Array, ""]
    highest: Float[Array, ""]

    @staticmethod
    def empty(slots: int) -> "Order":
        """No points."""
        infinite, unlinked = jnp.full(slots, jnp.inf, float), jnp.zeros(slots, int)
        ends = infinite.min(), -infinite.min()
        return Order(infinite, infinite, infinite, unlinked, unlinked, *ends)

    def insert(self, slot: Int[Array, ""], value: Float[Array, ""]) -> "Order":
        """Link a value, above all equal ones."""
        fits = (self.value <= value) & (value < self.upper)
        has_below = self.lowest <= value
        has_above = value < self.highest
        below = jnp.where(has_below, jnp.argmax(fits), slot)
        first = jnp.argmax(self.lower == -jnp.inf)
        above = jnp.where(has_below, self.above[below], first)
        above = jnp.where(has_above, above, slot)
        lower = jnp.where(has_below, self.value[below], -jnp.inf)
        upper = jnp.where(has_above, self.value[above], jnp.inf)
        # A missing neighbour is the slot itself, which is written last.
        return Order(
            value=self.value.at[slot].set(value),
            lower=self.lower.at[above].set(value).at[slot].set(lower),
            upper=self.upper.at[below].set(value).at[slot].set(upper),
            below=self.below.at[above].set(slot).at[slot].set(below),
            above=self.above.at[below].set(slot).at[slot].set(above),
            lowest=jnp.minimum(self.lowest, value),
            highest=jnp.maximum(self.highest, value),
        )

    def remove(self, slot: Int[Array, ""]) -> "Order":
        """Link the two neighbours of a slot to each other."""
        lower, upper = self.lower[slot], self.upper[slot]
        is_first, is_last = lower == -jnp.inf, upper == jnp.inf
        below = jnp.where(is_first, slot, self.below[slot])
        above = jnp.where(is_last, slot, self.above[slot])
        return Order(
            value=self.value.at[slot].set(jnp.inf),
            lower=self.lower.at[above].set(lower).at[slot].set(jnp.inf),
            upper=self.upper.at[below].set(upper).at[slot].set(jnp.inf),
            below=self.below.at[above].set(below),
            above=self.above.at[below].set(above),
            lowest=jnp.where(is_first, upper, self.lowest),
            highest=jnp.where(is_last, lower, self.highest),
        )

    def gaps(self) -> Float[Array, " slots"]:
        """The gap between each point's neighbours, relative to the range."""
        extent = self.highest - self.lowest
        # One divisor per point: by a common one compilers divide as a product with its inverse,
        # which rounds differently, so that equal distances would no longer be equal.
        divisor = jnp.where((self.value < jnp.inf) & (extent > 0), extent, 1.0)
        return (self.upper - self.lower) / divisor


@final
class CrowdingDistance(Diversity[Order]):
    """The paper's diversity function; signatures are vectors, with one order per value."""

    def init(self, slots: int, example: Float[Array, " values"]) -> Order:
        """One empty order per value of a signature, stacked."""
        empty = Order.empty(slots)
        return jax.tree.map(lambda leaf: jnp.stack([leaf] * example.size), empty)

    def insert(self, state: Order, slot: Int[Array, ""], signature: Any) -> Order:
        """Link each value of the signature into its order."""
        return jax.vmap(Order.insert, (0, None, 0))(state, slot, signature)

    def remove(self, state: Order, slot: Int[Array, ""]) -> Order:
        """Remove a point from all orders."""
        return jax.vmap(Order.remove, (0, None))(state, slot)

    def diversities(self, state: Order) -> Float[Array, " slots"]:
        """Crowding distances, summed in the order of the objectives."""
        gaps = jax.vmap(Order.gaps)(state)
        total = gaps[0]
        for objective in range(1, gaps.shape[0]):
            total = total + gaps[objective]
        return total
