"""What a diversity function is to `DiverseReplay`: points come and go, each has a diversity."""

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import equinox as eqx
from jaxtyping import Array, Float, Int

Points = TypeVar("Points")


class Diversity(eqx.Module, Generic[Points]):
    """Judges signatures against each other; the points in the slots of a state are the judged."""

    @abstractmethod
    def init(self, slots: int, example: Any) -> Points:
        """No points, with room for `slots` signatures like `example`."""

    @abstractmethod
    def insert(self, points: Points, slot: Int[Array, ""], signature: Any) -> Points:
        """Put a signature, younger than all others, into a free slot."""

    @abstractmethod
    def remove(self, points: Points, slot: Int[Array, ""]) -> Points:
        """Free a slot."""

    @abstractmethod
    def diversities(self, points: Points) -> Float[Array, " slots"]:
        """How diverse each point is relative to all others; free slots may hold any number."""
