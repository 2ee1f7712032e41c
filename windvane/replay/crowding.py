"""NSGA-II's crowding distance of a changing set of points, kept up to date point by point.

For each objective the points are kept in order. A point's distance is the sum over objectives of
the gap between its two neighbours, in parts of the objective's range; the first and the last of
an order have an infinite distance. Equal values are ordered by age. Adding or removing a point
costs a few passes over the arrays, and no sorting.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class CrowdedSet(eqx.Module):
    """Up to `slots` points. `ordered` holds each objective's values in order, then infinity;
    `rank` tells where in that order a slot's point is; `born` when it was added (unused: -1).
    """

    ordered: Float[Array, "objectives slots"]
    rank: Int[Array, "objectives slots"]
    born: Int[Array, " slots"]
    number: Int[Array, ""]

    @staticmethod
    def empty(slots: int, objectives: int) -> "CrowdedSet":
        """No points."""
        return CrowdedSet(
            jnp.full((objectives, slots), jnp.inf),
            jnp.zeros((objectives, slots), int),
            jnp.full(slots, -1),
            jnp.zeros((), int),
        )

    @property
    def used(self) -> Bool[Array, " slots"]:
        """Which slots hold a point."""
        return self.born >= 0

    def insert(
        self, slot: Int[Array, ""], point: Float[Array, " objectives"], born: Int[Array, ""]
    ) -> "CrowdedSet":
        """Put a point, younger than all others, into a free slot."""
        place = (self.ordered <= point[:, None]).sum(1)
        places = jnp.arange(self.born.size)
        before = jnp.concatenate([self.ordered[:, :1], self.ordered[:, :-1]], axis=1)
        ordered = jnp.where(places < place[:, None], self.ordered, before)
        ordered = jnp.where(places == place[:, None], point[:, None], ordered)
        rank = self.rank + (self.rank >= place[:, None]).astype(int)
        return CrowdedSet(
            ordered,
            rank.at[:, slot].set(place),
            self.born.at[slot].set(born),
            self.number + 1,
        )

    def remove(self, slot: Int[Array, ""]) -> "CrowdedSet":
        """Take a point out and free its slot."""
        place = self.rank[:, slot]
        places = jnp.arange(self.born.size)
        last = jnp.full_like(self.ordered[:, :1], jnp.inf)
        after = jnp.concatenate([self.ordered[:, 1:], last], axis=1)
        ordered = jnp.where(places < place[:, None], self.ordered, after)
        rank = self.rank - (self.rank > place[:, None]).astype(int)
        return CrowdedSet(ordered, rank, self.born.at[slot].set(-1), self.number - 1)

    def distances(self) -> Float[Array, " slots"]:
        """Crowding distance of every point; unused slots get no number that counts."""
        gaps = jax.vmap(self._gaps)(self.ordered)
        each = jnp.take_along_axis(gaps, self.rank, axis=1)
        total = each[0]
        for objective in range(1, each.shape[0]):
            total = total + each[objective]
        return total

    def _gaps(self, ordered: Float[Array, " slots"]) -> Float[Array, " slots"]:
        """Each ordered value's gap between its neighbours, in parts of the range."""
        places = jnp.arange(ordered.size)
        extent = ordered[jnp.maximum(self.number - 1, 0)] - ordered[0]
        before = jnp.concatenate([ordered[:1], ordered[:-1]])
        after = jnp.concatenate([ordered[1:], ordered[-1:]])
        inner = (places > 0) & (places < self.number - 1)
        gap = jnp.where(inner, after - before, 0.0) / jnp.where(extent > 0, extent, 1.0)
        return jnp.where(inner, gap, jnp.inf)

    def least_diverse(self) -> Int[Array, ""]:
        """Slot of the point with the smallest distance; the oldest among equals."""
        distances = jnp.where(self.used, self.distances(), jnp.inf)
        candidates = self.used & (distances == distances.min())
        newest = jnp.iinfo(self.born.dtype).max
        return jnp.argmin(jnp.where(candidates, self.born, newest))
