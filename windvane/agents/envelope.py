"""Envelope Q-learning (Yang et al., 2019): one conditioned network, trained on random weights.

A target takes the best action for its weights from the Q-values of all weights in the batch, so
that what was learned for some weights helps others at once. The loss begins as that of vectors,
which is smooth but blind to the weights, and ends as that of scalarised values.
"""

from typing import ClassVar, Literal, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from windvane.agents.core import Agent, WeightHistory
from windvane.errors import LARGEST_COUNT, choose, require_positive_int
from windvane.weights import DISTRIBUTIONS, sample_weights


@final
class Envelope(Agent):
    """Envelope Q-learning; each batch has `num_weights` weight vectors of its own."""

    num_weights: int = eqx.field(static=True, default=4)
    """Weight vectors that all transitions of a batch are trained on."""
    homotopy_steps: int = 10_000
    """Steps in which the loss moves from that of vectors to that of scalarised values."""
    distribution: str = eqx.field(static=True, default="uniform")
    """What these weight vectors are drawn from; see `sample_weights`."""
    conditioned: ClassVar[bool] = True
    optimiser: ClassVar[Literal["sgd", "adam"]] = "adam"
    loss_power: ClassVar[Literal[1, 2]] = 2

    def __check_init__(self) -> None:
        require_positive_int("num_weights", self.num_weights, 1024)
        choose("distribution of weights", self.distribution, DISTRIBUTIONS)
        if not isinstance(self.homotopy_steps, jax.Array):
            require_positive_int("homotopy_steps", self.homotopy_steps, LARGEST_COUNT)

    def training_weights(
        self,
        active: Float[Array, "envs objectives"],
        history: WeightHistory,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """Random weights, the same for all transitions."""
        del history
        keys, objectives = jax.random.split(key, self.num_weights), active.shape[1]
        drawn = jax.vmap(lambda one: sample_weights(one, objectives, self.distribution))(keys)
        return jnp.broadcast_to(drawn, (number, *drawn.shape))

    def targets(
        self,
        next_online: Float[Array, "m actions outputs"],
        next_target: Float[Array, "m actions outputs"],
        reward: Float[Array, " objectives"],
        discount: Float[Array, ""],
        weights: Float[Array, "m objectives"],
    ) -> Float[Array, "m outputs"]:
        """Y(w) = r + discount Q-(a', w') with (a', w') = argmax Q(a, w'') . w over all actions and
        all weights w'' of the batch: the usual target, of as many actions as there are pairs.
        """
        online, target = (q.reshape(-1, q.shape[-1]) for q in (next_online, next_target))
        per_weights = jax.vmap(self.target, (None, None, None, None, 0))
        return per_weights(online, target, reward, discount, weights)

    def distance(
        self,
        difference: Float[Array, "n m outputs"],
        weights: Float[Array, "n m objectives"],
        step: int | Int[Array, ""],
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """Squared errors of vectors and of scalarised values, whose share grows with the steps;
        priorities come from the latter alone.
        """
        passed, steps = (jnp.asarray(x, jnp.float32) for x in (step, self.homotopy_steps))
        share = jnp.minimum(passed / steps, 1.0)
        scalarised = (difference * weights).sum(-1)
        vectors = jnp.square(difference).mean(-1)
        return (1 - share) * vectors + share * jnp.square(scalarised), jnp.abs(scalarised)
