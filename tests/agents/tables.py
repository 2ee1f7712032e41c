"""Networks whose Q-values are written down: a table in place of layers."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from windvane.networks import QNetwork


class TableNetwork(QNetwork):
    """Q(s, a; w) = table[s, a] + tilt[s, a] times the first weight; frames are states' numbers."""

    table: Float[Array, "states actions outputs"]
    tilt: Float[Array, "states actions outputs"]

    def __init__(self, table: Any, tilt: Any = None):
        self.encoder = self.head = None  # type: ignore[assignment]
        self.stack = 1
        self.table = jnp.asarray(table, jnp.float32)
        self.tilt = jnp.zeros_like(self.table) if tilt is None else jnp.asarray(tilt, jnp.float32)

    def __call__(self, observation: Any, weights: Any) -> Any:
        return self.q_values(observation[None, None, None], weights[None, None])[0, 0]

    def per_weights(self, observation: Any, weights: Any) -> Any:
        return self.q_values(observation[None, None, None], weights[None])[0]

    def encode(self, frames: Any) -> Any:
        return frames[:, :, None]

    def q_values(self, features: Any, weights: Any) -> Any:
        states = features[0, :, 0]
        return self.table[states][:, None] + weights[:, :, :1, None] * self.tilt[states][:, None]
