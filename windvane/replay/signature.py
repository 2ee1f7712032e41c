"""Signatures: the arrays by which trajectories are compared."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from windvane.errors import require_positive_int


class Signature(eqx.Module):
    """Arrays computed transition by transition, in the form that the diversity function expects."""

    @abstractmethod
    def start(self) -> Any:
        """The signature of no transitions."""

    @abstractmethod
    def extend(self, signature: Any, transition: Any, time: Int[Array, ""]) -> Any:
        """The signature with one more transition, number `time` (from 0) of the trajectory."""


@final
class ReturnSignature(Signature):
    """The paper's signature: the discounted return vector, sum of gamma^t r_t."""

    num_objectives: int = eqx.field(static=True)
    gamma: float
    reward: Callable[[Any], Float[Array, " objectives"]] = eqx.field(static=True)

    def __init__(
        self,
        num_objectives: int,
        gamma: float,
        reward: Callable[[Any], Float[Array, " objectives"]] = lambda transition: transition.reward,
    ):
        """`reward` returns the reward vector of a transition."""
        self.num_objectives = require_positive_int("the number of objectives", num_objectives)
        self.gamma, self.reward = gamma, reward

    def start(self) -> Float[Array, " objectives"]:
        """The return of no transitions, 0."""
        return jnp.zeros(self.num_objectives)

    def extend(
        self, signature: Float[Array, " objectives"], transition: Any, time: Int[Array, ""]
    ) -> Float[Array, " objectives"]:
        """Add the discounted reward."""
        reward = self.reward(transition).astype(signature.dtype)
        return signature + self.gamma ** time.astype(signature.dtype) * reward
