"""UVFA adapted to dynamic weights: a conditioned network with one scalar value per action."""

from typing import Any, ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from windvane.agents.core import Agent, WeightHistory
from windvane.networks import Architecture
from windvane.spec import EnvSpec


@final
class UVFA(Agent):
    """Learns Q(s, a; w) of the scalarised reward, for random past weights."""

    conditioned: ClassVar[bool] = True

    def build(self, spec: EnvSpec, architecture: Architecture, key: Key[Array, ""]) -> Any:
        """One output per action."""
        return architecture.build(spec, 1, self.conditioned, key)

    def training_weights(
        self,
        active: Float[Array, "envs objectives"],
        history: WeightHistory,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """Random past weights."""
        del active
        return history.sample(key, number)[:, None]

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
