"""The learner of rollouts: acting in many environments at once, and learning from what they met.

It has no replay buffer and no target network. Its state knows no environment and no schedule.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key, Num, PyTree

from windvane.agents.pqn import PQN, Rollout, RolloutBatch
from windvane.batching import where
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.learner import (
    epsilon,
    init_key,
    initial_network,
    make_optimiser,
    moving_average,
    ravel,
    step_key,
)
from windvane.networks import Architecture
from windvane.spec import EnvSpec


class RolloutLearnerState(eqx.Module):
    """Everything that one run has learned."""

    key: Key[Array, ""]
    online: PyTree[Array]
    average: PyTree[Array]
    optimiser: PyTree[Array]
    updates: Int[Array, ""]
    """Gradient steps so far."""
    loss: Float[Array, ""]
    failed: Bool[Array, ""]


class RolloutLearner(eqx.Module):
    """The parts of an agent that learns from rollouts."""

    spec: EnvSpec = eqx.field(static=True)
    agent: PQN
    architecture: Architecture
    hyperparameters: Hyperparameters
    total_updates: Float[Array, ""]
    """Gradient steps of the whole training, over which the learning rate falls."""
    replay: ClassVar[None] = None

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """What the agent asks for, on the ravelled parameters."""
        h, end = self.hyperparameters, self.agent.learning_rate_end

        def rate(count: Int[Array, ""]) -> Float[Array, ""]:
            passed = jnp.minimum(count.astype(jnp.float32) / self.total_updates, 1.0)
            return h.learning_rate * (1.0 - (1.0 - end) * passed)

        return make_optimiser(self.agent, h, rate)

    def init(self, key: Key[Array, ""], network: PyTree | None = None) -> RolloutLearnerState:
        """Before the first step, with a copy of a network that is given, else a random one."""
        online = initial_network(self, init_key(key, 0), network)
        return RolloutLearnerState(
            key=key,
            online=online,
            average=online,
            optimiser=self.optimiser.init(ravel(online)[0]),
            updates=jnp.zeros((), int),
            loss=jnp.zeros(()),
            failed=jnp.asarray(False),
        )

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Exploration falls linearly, then stays."""
        return epsilon(self.hyperparameters, step)

    def act(
        self,
        state: RolloutLearnerState,
        observations: Num[Array, "n ..."],
        weights: Float[Array, "n objectives"],
        step: Int[Array, ""],
    ) -> tuple[Int[Array, " n"], Float[Array, "n objectives"]]:
        """Random actions, or the best for each environment's weights; and the Q-vectors of the
        best ones. `step` counts the steps of all environments.
        """
        number = len(weights)
        greedy, values = self.agent.greedy(state.online, observations, weights)
        epsilon_key, action_key = jax.random.split(step_key(state.key, 0, step))
        epsilon_draw = jax.random.uniform(epsilon_key, (number,))
        random_action = jax.random.randint(action_key, (number,), 0, self.spec.num_actions)
        return jnp.where(epsilon_draw < self.epsilon(step), random_action, greedy), values

    def values(
        self,
        network: Any,
        observations: Num[Array, "n ..."],
        weights: Float[Array, "n objectives"],
    ) -> Float[Array, "n objectives"]:
        """Q-vectors of the best actions."""
        return self.agent.greedy(network, observations, weights)[1]

    def learn(
        self, state: RolloutLearnerState, rollout: Rollout, step: Int[Array, ""]
    ) -> RolloutLearnerState:
        """Some passes over a rollout, in minibatches; `step` is the first after it."""
        agent, h = self.agent, self.hyperparameters
        scaled = eqx.tree_at(lambda r: r.rewards, rollout, rollout.rewards * h.reward_scale)
        returns = agent.returns(scaled, jnp.asarray(h.gamma))
        size = rollout.actions.size
        columns = (rollout.observations, rollout.actions, rollout.weights, returns)
        batch = RolloutBatch(*(leaf.reshape(size, *leaf.shape[2:]) for leaf in columns))
        parameters, unravel = ravel(state.online)

        def loss(parameters: Array, part: RolloutBatch) -> Array:
            return agent.rollout_loss(unravel(parameters), part)

        def update(carry: Any, indices: Int[Array, " n"]) -> tuple[Any, None]:
            parameters, average, optimiser, count, _, failed = carry
            part = jax.tree.map(lambda leaf: leaf[indices], batch)
            value, gradient = jax.value_and_grad(loss)(parameters, part)
            updates, following = self.optimiser.update(gradient, optimiser)
            # A run that diverged stays as it was, and parallel runs continue.
            failed = failed | ~jnp.isfinite(value + jnp.linalg.norm(gradient))
            new = optax.apply_updates(parameters, updates)
            parameters, optimiser = where(failed, (parameters, optimiser), (new, following))
            average = moving_average(average, parameters, h.average_decay, count)
            return (parameters, average, optimiser, count + 1, value, failed), None

        keys = jax.random.split(step_key(state.key, 1, step), agent.epochs)
        order = jax.vmap(lambda key: jax.random.permutation(key, size))(keys)
        average = ravel(state.average)[0]
        first = (
            parameters, average, state.optimiser, state.updates, state.loss, state.failed,
        )  # fmt: skip
        last, _ = jax.lax.scan(update, first, order.reshape(agent.epochs * agent.minibatches, -1))
        parameters, average, *rest = last
        return RolloutLearnerState(state.key, unravel(parameters), unravel(average), *rest)

    def policy_network(self, state: RolloutLearnerState, start: Any | None) -> Any:
        """The average of the networks, which is steadier than the newest."""
        del start
        return state.average
