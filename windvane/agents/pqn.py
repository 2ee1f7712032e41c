"""PQN for vectors and weights: one conditioned network on many environments at once.

The idea is that of PQN (Gallici et al., 2024), carried over to vector rewards: no replay buffer and
no target network, but layer normalisation and fresh rollouts of many environments, each with
weights of its own. Targets are Peng's Q(lambda) returns, vectors that bootstrap from the action
which is best for the environment's own weights.
"""

from typing import ClassVar, Literal, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from windvane.agents.core import Agent
from windvane.errors import InputError, is_number, require_int, shown
from windvane.networks import QNetwork


class RolloutStep(eqx.Module):
    """A step of n environments, or several with an axis of time.

    `values` are Q-vectors of the greedy actions in the states before the step; `reached` are those
    in the states that it led to, where an episode was truncated there.
    """

    observations: Num[Array, "..."]
    actions: Int[Array, "*time n"]
    rewards: Float[Array, "*time n objectives"]
    terminated: Bool[Array, "*time n"]
    truncated: Bool[Array, "*time n"]
    weights: Float[Array, "*time n objectives"]
    values: Float[Array, "*time n objectives"]
    reached: Float[Array, "*time n objectives"]


class Rollout(eqx.Module):
    """T steps of n environments. `next_values` are Q-vectors of the greedy actions in the states
    that each step led to; they mean nothing where an episode terminated.
    """

    observations: Num[Array, "t n ..."]
    actions: Int[Array, "t n"]
    rewards: Float[Array, "t n objectives"]
    terminated: Bool[Array, "t n"]
    truncated: Bool[Array, "t n"]
    weights: Float[Array, "t n objectives"]
    next_values: Float[Array, "t n objectives"]

    @staticmethod
    def of(steps: RolloutStep, last: Float[Array, "n objectives"]) -> "Rollout":
        """From steps with an axis of time; `last` are the values after the last of them."""
        following = jnp.concatenate([steps.values[1:], last[None]])
        following = jnp.where(steps.truncated[..., None], steps.reached, following)
        return Rollout(
            steps.observations, steps.actions, steps.rewards, steps.terminated, steps.truncated,
            steps.weights, following,
        )  # fmt: skip


class RolloutBatch(eqx.Module):
    """Steps to learn from, with the return that each is to predict."""

    observations: Num[Array, "n ..."]
    actions: Int[Array, " n"]
    weights: Float[Array, "n objectives"]
    returns: Float[Array, "n objectives"]


@final
class PQN(Agent):
    """Conditioned on weights; learns from rollouts."""

    epochs: int = eqx.field(static=True, default=2)
    """Passes over a rollout."""
    minibatches: int = eqx.field(static=True, default=16)
    """Gradient steps per pass."""
    td_lambda: float = 0.65
    """Share of the return that follows, rather than of the value of the state that follows."""
    learning_rate_end: float = 0.05
    """Share of the learning rate that is left in the end; it falls linearly."""
    conditioned: ClassVar[bool] = True
    learns_from: ClassVar[Literal["replay", "rollouts"]] = "rollouts"
    optimiser: ClassVar[Literal["sgd", "adam"]] = "adam"
    loss_power: ClassVar[Literal[1, 2]] = 2

    def __check_init__(self) -> None:
        require_int("epochs", self.epochs, 1, 1_000)
        require_int("minibatches", self.minibatches, 1, 1_000_000)
        for name in ("td_lambda", "learning_rate_end"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value <= 1):
                raise InputError(f"{name} must be a number from 0 to 1, not {shown(value)}")

    def greedy(
        self,
        network: QNetwork,
        observations: Num[Array, "n ..."],
        weights: Float[Array, "n objectives"],
    ) -> tuple[Int[Array, " n"], Float[Array, "n objectives"]]:
        """The best action of each environment for its weights, and that action's Q-vector."""
        q = network.batch(observations, weights)
        best = jnp.argmax(jax.vmap(self.scalarise)(q, weights), axis=-1)
        return best, jnp.take_along_axis(q, best[:, None, None], axis=1)[:, 0]

    def returns(self, rollout: Rollout, gamma: Float[Array, ""]) -> Float[Array, "t n objectives"]:
        """Peng's Q(lambda): G_t = r_t + gamma [(1 - lambda) V(s_t+1) + lambda G_t+1].

        Nothing follows a terminated episode. Where one was truncated, and where the rollout ends,
        the value of the state reached stands for all that would follow.
        """

        def back(following: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
            reward, terminated, truncated, value = step
            mixed = (1 - self.td_lambda) * value + self.td_lambda * following
            mixed = jnp.where(truncated[:, None], value, mixed)
            result = reward + gamma * jnp.where(terminated[:, None], 0.0, mixed)
            return result, result

        steps = (rollout.rewards, rollout.terminated, rollout.truncated, rollout.next_values)
        return jax.lax.scan(back, rollout.next_values[-1], steps, reverse=True)[1]

    def rollout_loss(self, network: QNetwork, batch: RolloutBatch) -> Float[Array, ""]:
        """Mean squared error of the Q-vectors of the actions taken."""
        q = network.batch(batch.observations, batch.weights)
        q_taken = jnp.take_along_axis(q, batch.actions[:, None, None], axis=1)[:, 0]
        return jnp.square(q_taken - batch.returns).sum(-1).mean() / 2
