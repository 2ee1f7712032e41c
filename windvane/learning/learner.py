"""The learner: acting, observing and learning as pure functions on one state.

A learner's random draws depend on its own key and on the step alone, so chunk boundaries and
parallel runs change nothing. Drivers (`windvane.training`) connect it to a world.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.agents.core import (
    Agent,
    Networks,
    TransitionBatch,
    WeightChange,
    WeightHistory,
)
from windvane.batching import cond_in_place, where
from windvane.learning.codec import TransitionCodec
from windvane.learning.hyperparameters import Hyperparameters
from windvane.networks import Architecture
from windvane.replay.buffer import ReplayBuffer, ScoredReplay
from windvane.spec import EnvSpec
from windvane.transition import Transition

PRIORITIES = ("priority_exponent", "priority_offset")
"""Numbers of a replay buffer that runs in one program may have of their own."""


class StepDraws(eqx.Module):
    """All random draws of one step. They depend on nothing that happens, so they are drawn for many
    steps at once: few large draws are quicker than many small ones.
    """

    epsilon_draw: Float[Array, "*batch"]
    random_action: Int[Array, "*batch"]
    env_key: Key[Array, "*batch"]
    reservoir_draw: Float[Array, "*batch"]
    agent_key: Key[Array, "*batch"]


class LearnerState(eqx.Module):
    """Everything that one run has learned and remembers; no environment and no schedule."""

    key: Key[Array, ""]
    online: PyTree[Array]
    target: PyTree[Array]
    agent_state: PyTree[Array]
    optimiser: PyTree[Array]
    replay: PyTree[Array]
    active_weights: Float[Array, "envs objectives"]
    history: WeightHistory
    loss: Float[Array, ""]
    failed: Bool[Array, ""]
    average: PyTree[Array] = None
    """The average of the networks so far, where there is one."""

    @property
    def networks(self) -> Networks:
        """What the agent trains and keeps."""
        return Networks(self.online, self.target, self.agent_state)


class Learner(eqx.Module):
    """The parts of an agent in training."""

    spec: EnvSpec = eqx.field(static=True)
    agent: Agent
    replay: ReplayBuffer[Any]
    codec: TransitionCodec[Any]
    architecture: Architecture
    hyperparameters: Hyperparameters

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """What the agent asks for, on the ravelled parameters."""
        return make_optimiser(self.agent, self.hyperparameters)

    def init(
        self,
        key: Key[Array, ""],
        weights: Float[Array, "envs objectives"],
        network: PyTree | None = None,
    ) -> LearnerState:
        """Before the first step; `weights` are those of the first episode in each environment.
        The network is a copy of the one that is given, else random.
        """
        network_key, replay_key = (init_key(key, index) for index in range(2))
        online = initial_network(self, network_key, network)
        return LearnerState(
            key=key,
            online=online,
            target=online,
            agent_state=self.agent.init_agent_state(online),
            optimiser=self.optimiser.init(ravel(online)[0]),
            replay=self.replay.init(self.codec.blank(), replay_key),
            active_weights=weights,
            history=WeightHistory.start(weights[0], self.hyperparameters.weight_history_size),
            loss=jnp.zeros(()),
            failed=jnp.asarray(False),
            average=online if self.averaging else None,
        )

    def with_numbers(
        self, numbers: Mapping[str, Array] | None, *, replay: bool = True
    ) -> "Learner":
        """The same with some numbers in the place of its own, which a compiled program may then be
        given: hyperparameters by name and, with `replay`, `PRIORITIES`.
        """
        if not numbers:
            return self
        own = [name for name in numbers if name not in PRIORITIES]
        learner = eqx.tree_at(
            lambda learner: [getattr(learner.hyperparameters, name) for name in own],
            self,
            [numbers[name] for name in own],
        )
        others = [name for name in PRIORITIES if name in numbers and replay]
        return eqx.tree_at(
            lambda learner: [getattr(learner.replay, name) for name in others],
            learner,
            [numbers[name] for name in others],
        )

    @property
    def averaging(self) -> bool:
        """Whether the policy is an average of the networks."""
        decay = self.hyperparameters.average_decay
        return isinstance(decay, jax.Array) or decay > 0

    @property
    def clipping(self) -> bool:
        """Whether targets are clipped."""
        limit = self.hyperparameters.clip_targets
        return isinstance(limit, jax.Array) or limit > 0

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Exploration falls linearly, then stays."""
        return epsilon(self.hyperparameters, step)

    def sample_draws(self, key: Key[Array, ""], step: Int[Array, ""]) -> StepDraws:
        """The random draws of a step."""
        epsilon, action, env, reservoir, agent = jax.random.split(step_key(key, 0, step), 5)
        return StepDraws(
            epsilon_draw=jax.random.uniform(epsilon),
            random_action=jax.random.randint(action, (), 0, self.spec.num_actions),
            env_key=env,
            reservoir_draw=jax.random.uniform(reservoir),
            agent_key=agent,
        )

    def act(
        self, state: LearnerState, seen: Any, step: Int[Array, ""], draws: StepDraws, env: int = 0
    ) -> Int[Array, ""]:
        """A random action, or the best for the active weights. `seen` is the codec's state."""
        weights = state.active_weights[env]
        network = self.agent.acting_network(state.networks)
        greedy = self.agent.act(network, self.codec.observe(seen), weights)
        return jnp.where(draws.epsilon_draw < self.epsilon(step), draws.random_action, greedy)

    def observe(
        self,
        state: LearnerState,
        transition: Transition[Any],
        start: Any,
        next_weights: Float[Array, " objectives"],
        draws: StepDraws,
        env: int = 0,
    ) -> LearnerState:
        """Remember a transition of environment number `env`, and adopt the weights of what follows.

        The reward is unscaled; `start` is the codec's state from which the environment continues.
        """
        state = self.remember(state, transition, env)
        return self.adopt_weights(
            state, start, next_weights, draws.reservoir_draw, draws.agent_key, env
        )

    def remember(
        self, state: LearnerState, transition: Transition[Any], env: int | Int[Array, ""] = 0
    ) -> LearnerState:
        """Add a transition to the replay buffer."""
        reward = transition.reward * self.hyperparameters.reward_scale
        row = self.codec.encode(eqx.tree_at(lambda t: t.reward, transition, reward))
        if isinstance(self.replay, ScoredReplay):
            leaving = self.replay.leaving(state.replay)
            score = self._exploration(state, leaving, state.active_weights[env])
            replay = self.replay.add_scored(state.replay, row, transition.ended, score)
        else:
            replay = self.replay.add(state.replay, row, transition.ended)
        return eqx.tree_at(lambda s: s.replay, state, replay)

    def adopt_weights(
        self,
        state: LearnerState,
        start: Any,
        weights: Float[Array, " objectives"],
        reservoir_draw: Float[Array, ""],
        agent_key: Key[Array, ""],
        env: int | Int[Array, ""] = 0,
    ) -> LearnerState:
        """Continue in environment number `env` with these weights, whether they are new or not."""
        active = state.active_weights
        # Weights that another environment of this run has already are not new.
        changed = ~(active == weights).all(-1).any()
        change = WeightChange(changed, active[env], weights, state.history, start)
        networks = self.agent.on_change(state.networks, change, self.codec.observe, agent_key)
        return LearnerState(
            key=state.key,
            **networks._asdict(),
            optimiser=state.optimiser,
            replay=state.replay,
            active_weights=active.at[env].set(weights),
            history=state.history.add(weights, changed, reservoir_draw),
            loss=state.loss,
            failed=state.failed,
            average=state.average,
        )

    def learn(
        self, state: LearnerState, step: Int[Array, ""], newest: int | None = None
    ) -> LearnerState:
        """One gradient step on a batch from replay, which begins with the `newest` transitions (by
        default those since the last batch).
        """
        sample_key, weights_key = jax.random.split(step_key(state.key, 1, step))
        h = self.hyperparameters
        newest = min(h.update_interval if newest is None else newest, h.batch_size)
        with jax.named_scope("sample"):
            sampled = self.replay.sample(state.replay, sample_key, h.batch_size, newest)
        rows = sampled.transitions
        past = self.agent.past_weights(state.networks, state.history)
        weights = self.agent.training_weights(state.active_weights, past, weights_key, h.batch_size)
        with jax.named_scope("frames"):
            frames = jax.vmap(self.codec.frames, out_axes=1)(rows)
        batch = TransitionBatch(
            frames=frames,
            actions=rows.action.astype(int),
            rewards=rows.reward,
            terminated=rows.terminated,
            step=step,
            target_limit=jnp.asarray(h.clip_targets, jnp.float32) if self.clipping else None,
        )
        grad = eqx.filter_grad(self.agent.loss, has_aux=True)
        gradient, info = grad(state.online, state.target, batch, weights, jnp.asarray(h.gamma))
        with jax.named_scope("optimiser"):
            flat, unravel = ravel(gradient)
            updates, optimiser = self.optimiser.update(flat, state.optimiser)
            online = eqx.apply_updates(state.online, unravel(updates))
            # A run that diverged stays as it was, and parallel runs continue. Where the gradient's
            # norm is finite, so is all that is made of it.
            failed = state.failed | ~jnp.isfinite(info.loss + optax.tree.norm(flat))
            kept = where(failed, (state.online, state.optimiser), (online, optimiser))
        td_errors = jnp.where(failed, 0.0, info.td_errors)
        with jax.named_scope("priorities"):
            replay = self.replay.update_priorities(state.replay, sampled.indices, td_errors)
        if self.averaging:
            updates = (step - h.learning_starts) // h.update_interval
            average = moving_average(state.average, kept[0], h.average_decay, updates)
            state = eqx.tree_at(lambda s: s.average, state, average)
        return eqx.tree_at(
            lambda s: (s.online, s.optimiser, s.replay, s.loss, s.failed),
            state,
            (*kept, replay, info.loss, failed),
        )

    def copy_target(self, state: LearnerState, updates: Int[Array, ""]) -> LearnerState:
        """Copy the network to the target network where `updates` gradient steps make it due. For
        many runs at once: all are at the same step.
        """
        due = updates % self.hyperparameters.target_interval == 0
        target = cond_in_place(due, lambda _: state.online, state.target)
        return eqx.tree_at(lambda s: s.target, state, target)

    def abandon_episode(self, state: LearnerState) -> LearnerState:
        """The open episode was lost: what follows begins another."""
        return eqx.tree_at(lambda s: s.replay, state, self.replay.close_trajectory(state.replay))

    def policy_network(self, state: LearnerState, start: Any | None) -> Any:
        """What a run has learned, for a policy; `start` is an observation at an episode's start."""
        networks = state.networks
        if self.averaging:
            networks = networks._replace(online=state.average)
        return self.agent.policy_network(networks, start, state.active_weights[0])

    def _exploration(
        self, state: LearnerState, row: Any, weights: Float[Array, " objectives"]
    ) -> Float[Array, ""]:
        """max_a Q.w - Q(a).w: how far from greedy the action of a row is."""
        q = state.online(self.codec.first_observation(row), weights)
        values = self.agent.scalarise(q, weights)
        return values.max() - values[row.action]


def initial_network(learner: Any, key: Key[Array, ""], network: PyTree | None) -> PyTree:
    """A copy of a network, since training donates its arrays; without one, a random network."""
    if network is None:
        return learner.agent.build(learner.spec, learner.architecture, key)
    return jax.tree.map(lambda leaf: jnp.copy(leaf) if eqx.is_array(leaf) else leaf, network)


def make_optimiser(
    agent: Agent, h: Hyperparameters, learning_rate: Any = None
) -> optax.GradientTransformation:
    """The agent's optimiser, after clipping; `learning_rate` may be a schedule."""
    rate = h.learning_rate if learning_rate is None else learning_rate
    if agent.optimiser == "adam":
        descent = _with_promotion(optax.adam(rate, b1=h.momentum, eps=h.adam_epsilon))
    else:
        descent = optax.sgd(rate, h.momentum, nesterov=True)
    return optax.chain(optax.clip_by_global_norm(h.clip_norm), descent)


def _with_promotion(transformation: optax.GradientTransformation) -> optax.GradientTransformation:
    """The same where types are promoted strictly: optax raises floats to whole numbers."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        with jax.numpy_dtype_promotion("standard"):
            return transformation.update(updates, state, params)

    return optax.GradientTransformation(transformation.init, update)


def epsilon(h: Hyperparameters, step: Int[Array, ""]) -> Float[Array, ""]:
    """Exploration falls linearly, then stays."""
    share = jnp.minimum(step.astype(jnp.float32) / h.epsilon_steps, 1.0)
    return h.epsilon_start + share * (h.epsilon_end - h.epsilon_start)


def moving_average(
    average: PyTree, new: PyTree, decay: float | Float[Array, ""], updates: Int[Array, ""]
) -> PyTree:
    """The exponential average of networks after one more; `updates` came before it. At first it
    follows closely, or it would remember the random start.
    """
    least = 9.0 / (10.0 + jnp.maximum(updates, 0).astype(jnp.float32))
    share = jnp.maximum(1.0 - decay, least)

    def mix(old: Array, latest: Array) -> Array:
        return old + share * (latest - old)

    return jax.tree.map(mix, average, new)


def ravel(tree: PyTree) -> tuple[Float[Array, " n"], Callable[[Any], PyTree]]:
    """All numbers of a tree in one array, and how to put such an array back into the tree."""
    return ravel_pytree(eqx.filter(tree, eqx.is_array))


def init_key(key: Key[Array, ""], index: int) -> Key[Array, ""]:
    """A key for each thing that is drawn once: network, replay, first reset, weights."""
    return jax.random.fold_in(jax.random.fold_in(key, 0), index)


def step_key(key: Key[Array, ""], purpose: int, step: Int[Array, ""]) -> Key[Array, ""]:
    """A key for each thing that is drawn at a step."""
    return jax.random.fold_in(jax.random.fold_in(key, 1 + purpose), step)


def reset_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key of a run's first reset."""
    return init_key(key, 2)


def weights_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key that a run's schedule is asked with."""
    return init_key(key, 3)


def _flatten(values: Hyperparameters) -> tuple[tuple[Any, ...], None]:
    return tuple(getattr(values, field.name) for field in fields(Hyperparameters)), None


def _unflatten(_: None, leaves: Iterable[Any]) -> Hyperparameters:
    made = object.__new__(Hyperparameters)  # unchecked: a leaf may be anything for a while
    for field, leaf in zip(fields(Hyperparameters), leaves, strict=True):
        object.__setattr__(made, field.name, leaf)
    return made


# Not where the class is, which is read without JAX. A number may be an array, as in a sweep over
# learning rates in one program.
jax.tree_util.register_pytree_node(Hyperparameters, _flatten, _unflatten)
