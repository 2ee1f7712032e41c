"""What all agents share: double DQN on vectors, absolute errors, and what they may differ in.

An agent is frozen parameters plus pure functions; its networks are held by the training loop. What
may differ is which weight vectors a transition is trained on, and what the network's values are.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Num, PyTree

from windvane.envs.environment import Environment
from windvane.networks import Architecture, QNetwork


class Learned(eqx.Module):
    """Outcome of a batch: the loss and each transition's TD error, for its priority."""

    loss: Float[Array, ""]
    errors: Float[Array, " n"]


class Encountered(eqx.Module):
    """The weights met so far, once for each change to them; beyond its room, a uniform sample."""

    vectors: Float[Array, "room objectives"]
    number: Int[Array, ""]

    @staticmethod
    def start(first: Float[Array, " objectives"], room: int) -> "Encountered":
        """Only the first weights have been met."""
        vectors = jnp.zeros((room, first.size)).at[0].set(first)
        return Encountered(vectors, jnp.ones((), int))

    def add(
        self, new: Float[Array, " objectives"], isnew: Bool[Array, ""], chance: Float[Array, ""]
    ) -> "Encountered":
        """Remember weights, if they are new (beyond the room by Algorithm R).

        `chance` is a uniform draw from [0, 1).
        """
        room = self.vectors.shape[0]
        drawn = (chance * (self.number + 1).astype(jnp.float32)).astype(int)
        place = jnp.where(self.number < room, self.number, drawn)
        kept = jnp.minimum(place, room - 1)
        # Written in any case, perhaps as it was: to choose between old and new would copy all.
        vector = jnp.where(isnew & (place < room), new, self.vectors[kept])
        return Encountered(self.vectors.at[kept].set(vector), self.number + isnew.astype(int))

    @property
    def held(self) -> tuple[Float[Array, "room objectives"], Bool[Array, " room"]]:
        """All places, and which of them hold weights."""
        return self.vectors, jnp.arange(self.vectors.shape[0]) < self.number

    def sample(self, key: Key[Array, ""], number: int) -> Float[Array, "n objectives"]:
        """Draw uniformly, again and again."""
        held = jnp.minimum(self.number, self.vectors.shape[0])
        return self.vectors[jax.random.randint(key, (number,), 0, held)]


class Change(eqx.Module):
    """Whether the weights have changed, and from what to what.

    `encountered` are those met until then; `start` is the first state of the episode to come.
    """

    happened: Bool[Array, ""]
    before: Float[Array, " objectives"]
    after: Float[Array, " objectives"]
    encountered: Encountered
    start: PyTree[Array]


class Networks(NamedTuple):
    """What a run trains, and what its agent remembers beside it."""

    online: Any
    target: Any
    memory: Any


class Agent(eqx.Module):
    """Subclasses are final and say where they differ from one another."""

    conditioned: ClassVar[bool]
    """Whether the network is given the weights."""

    def build(self, env: Environment[Any], architecture: Architecture, key: Key[Array, ""]) -> Any:
        """Networks with random weights."""
        return architecture.build(env, env.num_objectives, self.conditioned, key)

    def remember(self, network: QNetwork) -> Any:
        """What an agent keeps beside its networks, before anything happened: nothing."""
        del network
        return ()

    def on_change(
        self, networks: Networks, change: Change, env: Environment[Any], key: Key[Array, ""]
    ) -> Networks:
        """Asked at every step, for agents that do something where the weights change."""
        del change, env, key
        return networks

    def training_weights(
        self,
        active: Float[Array, " objectives"],
        encountered: Encountered,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """The m weight vectors that each of `number` transitions is trained on: the active ones."""
        del encountered, key
        return active_only(active, number)

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
        """Y = r + discount Q-(argmax_a Q(a) . w): the online network chooses, the target judges.

        `discount` is 0 where the episode terminated.
        """
        best = jnp.argmax(self.scalarise(next_online, weights))
        return reward + discount * next_target[best]

    def loss(
        self,
        online: QNetwork,
        target: QNetwork,
        moments: Num[Array, "k n *moment"],
        actions: Int[Array, " n"],
        rewards: Float[Array, "n objectives"],
        terminated: Bool[Array, " n"],
        weights: Float[Array, "n m objectives"],
        gamma: Float[Array, ""],
    ) -> tuple[Float[Array, ""], Learned]:
        """Mean absolute TD error of a batch, over transitions, their weights, and objectives.

        `moments` are those of both observations: one more than the network stacks.
        """
        stack = online.stack
        before = online.encode(moments[:stack])
        q = online.judge(before, weights)
        # The networks that make the targets get no gradient.
        fixed, known = jax.lax.stop_gradient((online, before))
        after = jnp.concatenate([known[1:], fixed.encode(moments[stack:])])
        next_online = fixed.judge(after, weights)
        next_target = target.judge(target.encode(moments[1:]), weights)
        discounts = jnp.where(terminated, 0.0, gamma)
        per_weights = jax.vmap(self.target, (0, 0, None, None, 0))
        goals = jax.vmap(per_weights)(next_online, next_target, rewards, discounts, weights)
        taken = jnp.take_along_axis(q, actions[:, None, None, None], axis=2)[:, :, 0]
        errors = jnp.abs(jax.lax.stop_gradient(goals) - taken).mean(-1)
        return errors.mean(), Learned(errors.mean(), errors.mean(1))

    def act(
        self,
        network: QNetwork,
        observation: Num[Array, "..."],
        weights: Float[Array, " objectives"],
    ) -> Int[Array, ""]:
        """The best action for the weights."""
        return jnp.argmax(self.scalarise(network(observation, weights), weights))


def active_only(active: Float[Array, " objectives"], number: int) -> Float[Array, "n 1 objectives"]:
    """The active weights for every transition."""
    return jnp.broadcast_to(active, (number, 1, active.size))
