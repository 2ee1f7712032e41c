"""GPI-LS (Alegre et al., 2023): generalised policy improvement and linear support.

Two conditioned networks are trained for a few weight vectors, the support. For any weights the best
action is that of the best policy of the support. Between iterations of training, the next weights
are chosen where the policies promise the largest improvement.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Num

from windvane.agents.core import (
    Agent,
    Evaluate,
    Iteration,
    Networks,
    WeightHistory,
    active_weights,
)
from windvane.errors import LARGEST_COUNT, InputError, is_number, require_int, require_positive_int
from windvane.linear_support import corner_weights
from windvane.networks import Architecture, QNetwork
from windvane.spec import EnvSpec

SAME_WEIGHTS = 1e-4
"""Weights that differ by less are the same."""
MAX_CORNERS = 128
"""Most corner weights that are evaluated at once; with many objectives there may be thousands."""


class TwinNetwork(eqx.Module):
    """Two networks that learn the same values; their outputs stand one behind the other."""

    first: QNetwork
    second: QNetwork

    @property
    def stack(self) -> int:
        """Frames per observation."""
        return self.first.stack

    def encode(self, frames: Num[Array, "k n *frame"]) -> Num[Array, "k n width"]:
        """Features of both."""
        return jnp.concatenate([self.first.encode(frames), self.second.encode(frames)], axis=-1)

    def q_values(
        self, features: Num[Array, "stack n width"], weights: Float[Array, "n m objectives"]
    ) -> Float[Array, "n m actions outputs"]:
        """Q-values of both."""
        first, second = jnp.split(features, 2, axis=-1)
        both = self.first.q_values(first, weights), self.second.q_values(second, weights)
        return jnp.concatenate(both, axis=-1)

    def __call__(
        self, observation: Num[Array, "..."], weights: Float[Array, " objectives"]
    ) -> Float[Array, "actions outputs"]:
        """Q-values of the first, which acts."""
        return self.first(observation, weights)


@final
class ImprovedNetwork(eqx.Module):
    """Generalised policy improvement: the value of an action is that of the policy, of all in the
    support, that makes most of it for the weights.
    """

    network: QNetwork
    support: WeightHistory

    def __call__(
        self, observation: Num[Array, "..."], weights: Float[Array, " objectives"]
    ) -> Float[Array, "actions outputs"]:
        """Q-values of one observation; the weights themselves are one more of the support."""
        vectors = jnp.concatenate([weights[None], self.support.vectors])
        held = jnp.concatenate([jnp.ones(1, bool), self.support.mask])
        q = self.network.per_weights(observation, vectors)
        best = jnp.argmax(jnp.where(held[:, None], q @ weights, -jnp.inf), axis=0)
        return jnp.take_along_axis(q, best[None, :, None], axis=0)[0]


@final
class GPILS(Agent):
    """GPI-LS; its support begins with the weights of one objective each."""

    iteration_steps: int = eqx.field(static=True, default=10_000)
    """Steps between two choices of weights."""
    evaluation_episodes: int = eqx.field(static=True, default=5)
    """Greedy episodes for each weight vector that is evaluated then."""
    max_weights: int = eqx.field(static=True, default=32)
    """Most weight vectors in the support."""
    huber_threshold: float = 0.01
    """Size of the errors above which the loss is linear."""
    conditioned: ClassVar[bool] = True
    optimiser: ClassVar[Literal["sgd", "adam"]] = "adam"
    acts_with: ClassVar[tuple[str, ...]] = ("online", "agent_state")

    def __check_init__(self) -> None:
        require_positive_int("iteration_steps", self.iteration_steps, LARGEST_COUNT)
        require_positive_int("evaluation_episodes", self.evaluation_episodes, 1_000_000)
        require_positive_int("max_weights", self.max_weights, 4096)
        traced = isinstance(self.huber_threshold, jax.Array)
        if not traced and not (is_number(self.huber_threshold) and self.huber_threshold > 0):
            raise InputError(
                f"huber_threshold must be a number above 0, not {self.huber_threshold!r}"
            )

    def build(self, spec: EnvSpec, architecture: Architecture, key: Key[Array, ""]) -> TwinNetwork:
        """Two networks with random parameters."""
        keys, outputs = jax.random.split(key), spec.num_objectives
        return TwinNetwork(*(architecture.build(spec, outputs, True, one) for one in keys))

    def init_agent_state(self, network: TwinNetwork) -> WeightHistory:
        """The support: each objective alone."""
        objectives = network.first.head.outputs
        require_int("max_weights", self.max_weights, objectives, 4096)
        vectors = jnp.eye(self.max_weights, objectives)
        return WeightHistory(vectors, jnp.asarray(objectives))

    def past_weights(self, networks: Networks, history: WeightHistory) -> WeightHistory:
        """The support."""
        del history
        return networks.agent_state

    def training_weights(
        self,
        active: Float[Array, "envs objectives"],
        history: WeightHistory,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """The active weights, and random ones of the support."""
        now = active_weights(active, number)
        return jnp.concatenate([now, history.sample(key, number)[:, None]], axis=1)

    def target(
        self,
        next_online: Float[Array, "actions outputs"],
        next_target: Float[Array, "actions outputs"],
        reward: Float[Array, " objectives"],
        discount: Float[Array, ""],
        weights: Float[Array, " objectives"],
    ) -> Float[Array, " outputs"]:
        """Y = r + discount Q-(argmax_a Q-(a) . w), where Q-(a) is that of the two target networks
        that is worth less for the weights; both networks have the same target.
        """
        del next_online
        twins = next_target.reshape(len(next_target), 2, -1)
        worse = jnp.argmin(twins @ weights, axis=1)
        values = jnp.take_along_axis(twins, worse[:, None, None], axis=1)[:, 0]
        best = jnp.argmax(self.scalarise(values, weights))
        return jnp.tile(reward + discount * values[best], 2)

    def distance(
        self,
        difference: Float[Array, "n m outputs"],
        weights: Float[Array, "n m objectives"],
        step: int | Int[Array, ""],
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """Huber's loss of both networks, and the larger of their scalarised absolute errors.

        The loss is divided by its threshold, or Adam's epsilon would not be small beside gradients.
        """
        del step
        error, threshold = jnp.abs(difference), self.huber_threshold
        small = jnp.square(error) / (2 * threshold)
        loss = jnp.where(error < threshold, small, error - threshold / 2)
        larger = error.reshape(*error.shape[:-1], 2, -1).max(-2)
        return loss.mean(-1), (larger * weights).sum(-1)

    def acting_network(self, networks: Networks) -> ImprovedNetwork:
        """The first network with the support."""
        return ImprovedNetwork(networks.online.first, networks.agent_state)

    def policy_template(self, network: Any, sizes: dict[str, int]) -> ImprovedNetwork:
        """A policy with a support of the same size."""
        del sizes
        return ImprovedNetwork(network.first, self.init_agent_state(network))

    @property
    def iteration_interval(self) -> int:
        """Steps of an iteration."""
        return self.iteration_steps

    def iterate(self, networks: Networks, evaluate: Evaluate) -> Iteration:
        """Add the next weights to the support, unless it is full or there are none to add."""
        support, network = networks.agent_state, self.acting_network(networks)
        size = int(support.size)
        held = np.asarray(support.vectors, float)[:size]

        def values(weights: Float[np.ndarray, "n objectives"]) -> Float[np.ndarray, "n objectives"]:
            return evaluate(network, weights, self.evaluation_episodes)

        chosen = next_weights(held, values) if size < self.max_weights else None
        if chosen is None:
            return Iteration(support, held)
        vectors = support.vectors.at[size].set(jnp.asarray(chosen, support.vectors.dtype))
        return Iteration(WeightHistory(vectors, support.size + 1), np.vstack([held, chosen]))


def next_weights(
    held: Float[np.ndarray, "held objectives"],
    values: Callable[[Float[np.ndarray, "n objectives"]], Float[np.ndarray, "n objectives"]],
) -> Float[np.ndarray, " objectives"] | None:
    """The corner weight, of those that are not `held`, for which generalised policy improvement
    gains most over the values for weights that are; None if all corner weights are held.

    `values` says what the policy earns for each of some weights. Of corner weights with the same
    gain, the farthest from those that are held is chosen; of too many, only the farthest count.
    """
    known = values(held)
    corners = corner_weights(known)
    distance = np.abs(corners[:, None] - held).sum(-1).min(1)
    farthest = np.argsort(-distance, kind="stable")[:MAX_CORNERS]
    farthest = farthest[distance[farthest] > SAME_WEIGHTS]
    corners, distance = corners[farthest], distance[farthest]
    if not len(corners):
        return None
    promised = np.concatenate([known, values(corners)])
    improvement = (corners @ promised.T).max(1) - (corners @ known.T).max(1)
    return corners[np.lexsort((-distance, -improvement.round(9)))[0]]
