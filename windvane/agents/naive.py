"""The naive baseline: the best Q-values of each objective by itself, scalarised only to act."""

from typing import ClassVar, final

import jax.numpy as jnp
from jaxtyping import Array, Float

from windvane.agents.core import Agent


@final
class Naive(Agent):
    """Every objective has its own greedy policy, so values do not show what a trade-off costs."""

    conditioned: ClassVar[bool] = False

    def target(
        self,
        next_online: Float[Array, "actions objectives"],
        next_target: Float[Array, "actions objectives"],
        reward: Float[Array, " objectives"],
        discount: Float[Array, ""],
        weights: Float[Array, " objectives"],
    ) -> Float[Array, " objectives"]:
        """y_o = r_o + discount Q-_o(argmax_a Q_o(a)), objective by objective."""
        del weights
        best = jnp.argmax(next_online, axis=0)
        return reward + discount * jnp.take_along_axis(next_target, best[None], axis=0)[0]
