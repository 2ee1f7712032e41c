"""What all agents share: double DQN on vectors, absolute errors, and where they may differ.

An agent is frozen parameters plus pure functions; its networks are held by the learner. Agents may
differ in the weight vectors that a transition is trained on, in its targets and the distance to
them, and in what the network's values are.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Num, PyTree

from windvane.networks import Architecture
from windvane.spec import EnvSpec


class TransitionBatch(eqx.Module):
    """n transitions to learn from. `frames` are those of both observations of each: one more than
    the network stacks, since neighbouring observations share all but one.
    """

    frames: Num[Array, "k n *frame"]
    actions: Int[Array, " n"]
    rewards: Float[Array, "n objectives"]
    terminated: Bool[Array, " n"]
    step: int | Int[Array, ""] = 0
    """The step at which they are learned from, for losses that change in the course of a run."""
    target_limit: Float[Array, ""] | None = None
    """The largest size of a target; None where targets are not clipped."""


class LossInfo(eqx.Module):
    """The loss of a batch and the TD error of each transition, for its priority."""

    loss: Float[Array, ""]
    td_errors: Float[Array, " n"]


class WeightHistory(eqx.Module):
    """The weights met so far, once per change to them; beyond its capacity, a uniform sample."""

    vectors: Float[Array, "capacity objectives"]
    size: Int[Array, ""]
    """How many were met, whether they are still held or not."""

    @staticmethod
    def start(first: Float[Array, " objectives"], capacity: int) -> "WeightHistory":
        """Only the first weights have been met."""
        vectors = jnp.zeros((capacity, first.size)).at[0].set(first)
        return WeightHistory(vectors, jnp.ones((), int))

    def add(
        self, new: Float[Array, " objectives"], is_new: Bool[Array, ""], draw: Float[Array, ""]
    ) -> "WeightHistory":
        """Keep weights, if they are new (beyond the capacity by Algorithm R).

        `draw` is uniform in [0, 1).
        """
        capacity = self.vectors.shape[0]
        drawn = (draw * (self.size + 1).astype(jnp.float32)).astype(int)
        index = jnp.where(self.size < capacity, self.size, drawn)
        kept = jnp.minimum(index, capacity - 1)
        # Written in any case, perhaps as it was: to choose between old and new would copy all.
        vector = jnp.where(is_new & (index < capacity), new, self.vectors[kept])
        return WeightHistory(self.vectors.at[kept].set(vector), self.size + is_new.astype(int))

    @property
    def mask(self) -> Bool[Array, " capacity"]:
        """Which entries of `vectors` hold weights."""
        return jnp.arange(self.vectors.shape[0]) < self.size

    def sample(self, key: Key[Array, ""], number: int) -> Float[Array, "n objectives"]:
        """Draw uniformly, with replacement."""
        held = jnp.minimum(self.size, self.vectors.shape[0])
        return self.vectors[jax.random.randint(key, (number,), 0, held)]


class WeightChange(eqx.Module):
    """Whether the weights have changed, and from what to what.

    `history` are those met before; `start` is the first observation of the episode to come, as the
    learner's codec understands it.
    """

    changed: Bool[Array, ""]
    old: Float[Array, " objectives"]
    new: Float[Array, " objectives"]
    history: WeightHistory
    start: PyTree[Array]


class Networks(NamedTuple):
    """What a run trains, and what its agent keeps beside it."""

    online: Any
    target: Any
    agent_state: Any


Evaluate = Callable[
    [Any, Float[np.ndarray, "n objectives"], int], Float[np.ndarray, "n objectives"]
]
"""Takes an acting network, weights and a number of episodes; returns the mean discounted return of
greedy episodes for each weight vector.
"""


class Iteration(NamedTuple):
    """What an agent makes of itself on the host, between two chunks of training."""

    agent_state: Any
    weights: Float[np.ndarray, "n objectives"]
    """Weights of the episodes to come, where the schedule leaves them to the agent."""


class Agent(eqx.Module):
    """Subclasses are final and say where they differ from one another."""

    conditioned: ClassVar[bool]
    """Whether the network is given the weights."""
    learns_from: ClassVar[Literal["replay", "rollouts"]] = "replay"
    """Batches of a replay buffer, or what many environments have just been through (PQN alone)."""
    optimiser: ClassVar[Literal["sgd", "adam"]] = "sgd"
    """Stochastic gradient descent with Nesterov momentum, or Adam."""
    loss_power: ClassVar[Literal[1, 2]] = 1
    """Whether the loss grows as errors do, or as their squares."""
    acts_with: ClassVar[tuple[str, ...]] = ("online",)
    """The fields of `Networks` that `acting_network` needs. On the host, few cost less per step."""

    def build(self, spec: EnvSpec, architecture: Architecture, key: Key[Array, ""]) -> Any:
        """A network with random parameters."""
        return architecture.build(spec, spec.num_objectives, self.conditioned, key)

    def init_agent_state(self, network: Any) -> Any:
        """What an agent keeps beside its networks, before anything happened: nothing."""
        del network
        return ()

    def on_change(
        self, networks: Networks, change: WeightChange, observe: Any, key: Key[Array, ""]
    ) -> Networks:
        """Called at every step, for agents that do something where the weights change.

        `observe` turns `change.start` into an observation.
        """
        del change, observe, key
        return networks

    @property
    def iteration_interval(self) -> int | None:
        """Steps between two calls of `iterate`; None for agents without work on the host."""
        return None

    def iterate(self, networks: Networks, evaluate: Evaluate) -> Iteration:
        """Work on the host between two chunks, for agents that evaluate themselves in training."""
        del networks, evaluate
        raise NotImplementedError("an agent with an iteration_interval needs iterate")

    def past_weights(self, networks: Networks, history: WeightHistory) -> WeightHistory:
        """The weights, beside the active ones, that a batch may be trained on: those met so far."""
        del networks
        return history

    def training_weights(
        self,
        active: Float[Array, "envs objectives"],
        history: WeightHistory,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """The m weight vectors that each of `number` transitions is trained on: the active ones."""
        del history, key
        return active_weights(active, number)

    def scalarise(
        self, q: Float[Array, "actions outputs"], weights: Float[Array, " objectives"]
    ) -> Float[Array, " actions"]:
        """What actions are chosen by."""
        return q @ weights

    def target(
        self,
        next_online: Float[Array, "actions outputs"],
        next_target: Float[Array, "actions outputs"],
        reward: Float[Array, " objectives"],
        discount: Float[Array, ""],
        weights: Float[Array, " objectives"],
    ) -> Float[Array, " outputs"]:
        """Y = r + discount Q-(argmax_a Q(a) . w): the online network chooses, the target network
        evaluates. `discount` is 0 where the episode terminated.
        """
        best = jnp.argmax(self.scalarise(next_online, weights))
        return reward + discount * next_target[best]

    def targets(
        self,
        next_online: Float[Array, "m actions outputs"],
        next_target: Float[Array, "m actions outputs"],
        reward: Float[Array, " objectives"],
        discount: Float[Array, ""],
        weights: Float[Array, "m objectives"],
    ) -> Float[Array, "m outputs"]:
        """The targets of one transition for all m weight vectors that it is trained on: by default
        for each of them the `target` of its own Q-values.
        """
        per_weights = jax.vmap(self.target, (0, 0, None, None, 0))
        return per_weights(next_online, next_target, reward, discount, weights)

    def distance(
        self,
        difference: Float[Array, "n m outputs"],
        weights: Float[Array, "n m objectives"],
        step: int | Int[Array, ""],
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """What `difference`, targets minus Q-values, costs, and the TD error for the priority: by
        default both are the mean absolute error over objectives.
        """
        del weights, step
        error = jnp.abs(difference).mean(-1)
        return error, error

    def loss(
        self,
        online: Any,
        target: Any,
        batch: TransitionBatch,
        weights: Float[Array, "n m objectives"],
        gamma: Float[Array, ""],
    ) -> tuple[Float[Array, ""], LossInfo]:
        """The mean `distance` of a batch to its targets, over transitions and their weights.

        The networks have what `QNetwork` has: `stack`, `encode` and `q_values`.
        """
        stack = online.stack
        encoded = online.encode(batch.frames[:stack])
        q = online.q_values(encoded, weights)
        # The networks that make the targets get no gradient.
        fixed, known = jax.lax.stop_gradient((online, encoded))
        following = jnp.concatenate([known[1:], fixed.encode(batch.frames[stack:])])
        next_online = fixed.q_values(following, weights)
        next_target = target.q_values(target.encode(batch.frames[1:]), weights)
        discounts = jnp.where(batch.terminated, 0.0, gamma)
        per_transition = jax.vmap(self.targets)
        targets = per_transition(next_online, next_target, batch.rewards, discounts, weights)
        if batch.target_limit is not None:
            targets = jnp.clip(targets, -batch.target_limit, batch.target_limit)
        q_taken = jnp.take_along_axis(q, batch.actions[:, None, None, None], axis=2)[:, :, 0]
        difference = jax.lax.stop_gradient(targets) - q_taken
        losses, td_errors = self.distance(difference, weights, batch.step)
        return losses.mean(), LossInfo(losses.mean(), td_errors.mean(1))

    def act(
        self,
        network: Any,
        observation: Num[Array, "..."],
        weights: Float[Array, " objectives"],
    ) -> Int[Array, ""]:
        """The best action for the weights; `network` is what `acting_network` or `policy_network`
        returns.
        """
        return jnp.argmax(self.scalarise(network(observation, weights), weights))

    def acting_network(self, networks: Networks) -> Any:
        """What acts in training: by default the online network."""
        return networks.online

    def policy_network(
        self,
        networks: Networks,
        start: Num[Array, "..."] | None,
        weights: Float[Array, " objectives"],
    ) -> Any:
        """What a trained policy consists of: by default what acts in training.

        `start` is an observation at the start of an episode, `weights` are the active ones.
        """
        del start, weights
        return self.acting_network(networks)

    def policy_template(self, network: Any, sizes: dict[str, int]) -> Any:
        """A policy of the shapes that `policy_sizes` describes, from a network's; for loading."""
        del sizes
        return network

    def policy_sizes(self, policy: Any) -> dict[str, int]:
        """Sizes that the configuration does not determine; they are saved with a policy."""
        del policy
        return {}


def active_weights(
    active: Float[Array, "envs objectives"], number: int
) -> Float[Array, "n 1 objectives"]:
    """Active weights for every transition: those of each environment in turn, if there are many."""
    envs = active.shape[0]
    if envs == 1:
        return jnp.broadcast_to(active[0], (number, 1, active.shape[1]))
    return active[jnp.arange(number) % envs][:, None]
