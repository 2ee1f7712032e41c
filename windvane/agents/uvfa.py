"""UVFA adapted to dynamic weights: a conditioned network with one scalar value an action."""

from typing import Any, ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from windvane.agents.core import Agent, Encountered
from windvane.envs.environment import Environment
from windvane.networks import Architecture


@final
class UVFA(Agent):
    """Learns Q(s, a; w) of the scalarised reward, for random encountered weights."""

    conditioned: ClassVar[bool] = True

    def build(self, env: Environment[Any], architecture: Architecture, key: Key[Array, ""]) -> Any:
        """One output an action."""
        return architecture.build(env, 1, self.conditioned, key)

    def training_weights(
        self,
        active: Float[Array, " objectives"],
        encountered: Encountered,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """Random encountered weights."""
        del active
        return encountered.sample(key, number)[:, None]

    def scalarise(
        self, q: Float[Array, "actions outputs"], weights: Float[Array, " objectives"]
    ) -> Float[Array, " actions"]:
        """Values are scalars already."""
        del weights
        return q[:, 0]

    def target(
        self,
        next_online: Float[Array, "actions outputs"],
        next_target: Float[Array, "actions outputs"],
        reward: Float[Array, " objectives"],
        discount: Float[Array, ""],
        weights: Float[Array, " objectives"],
    ) -> Float[Array, " outputs"]:
        """Y = r . w + discount Q-(argmax_a Q(a; w); w)."""
        best = jnp.argmax(next_online[:, 0])
        return reward @ weights + discount * next_target[best]
