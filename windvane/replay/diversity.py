"""The interface of diversity functions: signatures come and go, and each has a diversity."""

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import equinox as eqx
from jaxtyping import Array, Float, Int

State = TypeVar("State")


class Diversity(eqx.Module, Generic[State]):
    """How much the signatures in the slots of a state differ from each other."""

    @abstractmethod
    def init(self, slots: int, example: Any) -> State:
        """No signatures, with room for `slots` like `example`."""

    @abstractmethod
    def insert(self, state: State, slot: Int[Array, ""], signature: Any) -> State:
        """Put a signature, younger than all others, into a free slot."""

    @abstractmethod
    def remove(self, state: State, slot: Int[Array, ""]) -> State:
        """Free a slot."""

    @abstractmethod
    def diversities(self, state: State) -> Float[Array, " slots"]:
        """The diversity of each signature relative to all others; any number for free slots."""
