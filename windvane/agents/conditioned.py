"""Conditioned Network (CN, the paper's Algorithm 1): one network, given the weights as an input.

Each transition is trained on the active weights and on some met before, so that the network is
quickly good for the former and does not forget the latter. Two ablations train on one of them.
"""

from typing import ClassVar, Literal, final, get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from windvane.agents.core import Agent, WeightHistory, active_weights
from windvane.errors import choose

TrainOn = Literal["active+history", "active", "history"]


@final
class ConditionedNetwork(Agent):
    """CN; with `train_on="active"` CN-ACTIVE, with `train_on="history"` CN-UVFA."""

    train_on: TrainOn = eqx.field(static=True, default="active+history")
    conditioned: ClassVar[bool] = True

    def __check_init__(self) -> None:
        choose("train_on", self.train_on, get_args(TrainOn))

    def training_weights(
        self,
        active: Float[Array, "envs objectives"],
        history: WeightHistory,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """The active weights, random past ones, or both."""
        now = active_weights(active, number)
        if self.train_on == "active":
            return now
        past = history.sample(key, number)[:, None]
        return past if self.train_on == "history" else jnp.concatenate([now, past], axis=1)
