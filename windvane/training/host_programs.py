"""The compiled programs of the host driver, and the rows that cross into them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from windvane.agents.core import Networks
from windvane.envs.host import HostStep
from windvane.learning.learner import Learner, LearnerState
from windvane.transition import Transition

DRAWN = 256
"""Steps whose random draws are made at once."""
STAGED = 64
"""Transitions of a finished trajectory that enter the replay buffer in one call, at most."""


class HostDraws(NamedTuple):
    """Random draws as NumPy arrays; the agent's keys are plain numbers."""

    epsilon_draw: np.ndarray
    random_action: np.ndarray
    reservoir_draw: np.ndarray
    agent_key: np.ndarray


class Rows:
    """What happened in the steps since the learner last observed: one row per step and environment,
    environment by environment within a step.
    """

    def __init__(self, capacity: int, seen: np.ndarray, objectives: int):
        """Room for `capacity` rows; `seen` are observations as the environments give them."""
        frames = (capacity, *seen.shape[1:])
        self.seen, self.reached, self.starts = (np.zeros(frames, seen.dtype) for _ in range(3))
        self.actions = np.zeros(capacity, np.int32)
        self.numbers = np.zeros((capacity, 2 * objectives + 3), np.float32)
        self.agent_keys = np.zeros((capacity, 2), np.uint32)
        self.count, self._objectives = 0, objectives

    def add(
        self,
        seen: np.ndarray,
        actions: np.ndarray,
        outcome: HostStep,
        weights: np.ndarray,
        draws: HostDraws,
    ) -> None:
        """Keep one step of all environments; `weights` are those of what follows."""
        n = self._objectives
        rows = slice(self.count, self.count + len(actions))
        self.seen[rows], self.reached[rows] = seen, outcome.reached
        self.starts[rows], self.actions[rows] = outcome.observations, actions
        numbers = self.numbers[rows]
        numbers[:, :n], numbers[:, n : 2 * n] = outcome.rewards, weights
        numbers[:, -3], numbers[:, -2] = outcome.terminated, outcome.truncated
        numbers[:, -1] = draws.reservoir_draw
        self.agent_keys[rows] = draws.agent_key
        self.count += len(actions)

    def emptied(self) -> "Rows":
        """The same without rows: new arrays, since a call in flight may still read these."""
        return Rows(len(self.actions), self.seen, self._objectives)


class HostPrograms:
    """Compiled functions of one learner. Its state crosses as the flat tuple of its arrays, random
    keys as plain numbers: that is what a call costs least for.
    """

    def __init__(self, learner: Learner, like: LearnerState, num_envs: int):
        leaves, self._structure = jax.tree.flatten(like)
        self._is_key = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
        paths = [
            jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(like)
        ]
        self._loss = paths.index(".loss")
        parts = learner.agent.acts_with
        prefixes = tuple(f".{part}" for part in parts)
        self._acting = [i for i, path in enumerate(paths) if path.startswith(prefixes)]
        needed = {part: getattr(like, part) for part in parts}
        self._networks = jax.tree.structure(Networks(**(dict.fromkeys(Networks._fields) | needed)))
        self._learner, self._num_envs = learner, num_envs
        self._observe = jax.jit(self._traced_observe, donate_argnums=0, static_argnums=(4, 5))
        self._greedy = jax.jit(self._traced_greedy)
        self._draw = jax.jit(jax.vmap(self._traced_draws, (None, 0)))
        self._add = jax.jit(self._traced_add, donate_argnums=0)

    def close(self, state: LearnerState) -> tuple[Array, ...]:
        """The arrays of a state, each of its own, as they will be donated."""
        leaves = jax.tree.leaves(state)
        plain = (
            jax.random.key_data(x) if k else x for x, k in zip(leaves, self._is_key, strict=True)
        )
        return tuple(jnp.array(leaf, leaf.dtype) for leaf in plain)

    def open(self, leaves: Sequence[Array]) -> LearnerState:
        """The state whose arrays these are."""
        typed = [
            jax.random.wrap_key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(leaves, self._is_key, strict=True)
        ]
        return jax.tree.unflatten(self._structure, typed)

    def loss(self, leaves: Sequence[Array]) -> np.float32:
        """The loss of the latest gradient step."""
        return np.float32(leaves[self._loss])

    def acting(self, leaves: Sequence[Array]) -> tuple[Array, ...]:
        """The arrays of what acts: a call with few arrays costs less."""
        return tuple(leaves[index] for index in self._acting)

    def greedy(self, acting: Any, seen: np.ndarray, weights: np.ndarray) -> Array:
        """The best actions of all environments."""
        return self._greedy(acting, seen, weights)

    def draws(self, key: Any, step: int) -> HostDraws:
        """The random draws of the next steps."""
        number = max(DRAWN, self._num_envs)
        return HostDraws(*map(np.asarray, self._draw(key, step + jnp.arange(number))))

    def observe(
        self, leaves: Any, rows: Rows, end: np.int32, updates: int, staged: bool
    ) -> tuple[Array, ...]:
        """Observe rows, and then learn `updates` times; `end` is the number of steps taken.

        Transitions that are `staged` have their own way into the replay buffer.
        """
        frames = (rows.seen, rows.reached, rows.starts)
        columns = (frames, rows.actions, rows.numbers, rows.agent_keys)
        return self._observe(leaves, columns, np.int32(rows.count), end, updates, staged)

    def add(self, leaves: Any, rows: list[tuple[Any, ...]]) -> tuple[Array, ...]:
        """Add transitions to the replay buffer, at most `STAGED`."""
        columns = [np.stack(column) for column in zip(*rows, strict=True)]
        padded = [
            np.concatenate([c, np.zeros((STAGED - len(c), *c.shape[1:]), c.dtype)]) for c in columns
        ]
        return self._add(leaves, padded, np.int32(len(rows)))

    def _traced_draws(self, key: Any, step: Any) -> tuple[Array, ...]:
        draws = self._learner.sample_draws(key, step)
        agent_key = jax.random.key_data(draws.agent_key)
        return draws.epsilon_draw, draws.random_action, draws.reservoir_draw, agent_key

    def _traced_greedy(self, acting: Any, seen: Any, weights: Any) -> Array:
        learner = self._learner
        network = learner.agent.acting_network(jax.tree.unflatten(self._networks, acting))

        def act(weights: Any, one: Any) -> Array:
            return learner.agent.act(network, learner.codec.observe(one), weights)

        return jax.vmap(act)(weights, seen)

    def _traced_observe(
        self, leaves: Any, columns: Any, count: Any, end: Any, updates: int, staged: bool
    ) -> tuple[Array, ...]:
        (seen, reached, starts), actions, numbers, keys = columns
        learner, objectives = self._learner, self._learner.spec.num_objectives
        rewards, weights = numbers[:, :objectives], numbers[:, objectives:-3]
        terminated, truncated = numbers[:, -3] > 0, numbers[:, -2] > 0

        def one(row: Any, plain: Any) -> Any:
            state, env = self.open(plain), row % self._num_envs
            if not staged:
                transition = Transition(
                    seen[row], actions[row], rewards[row], reached[row],
                    terminated[row], truncated[row],
                )  # fmt: skip
                state = learner.remember(state, transition, env)
            key = jax.random.wrap_key_data(keys[row])
            state = learner.adopt_weights(
                state, starts[row], weights[row], numbers[row, -1], key, env
            )
            return self.close_traced(state)

        plain = jax.lax.fori_loop(0, count, one, tuple(leaves))
        if not updates:
            return plain
        state, interval = self.open(plain), learner.hyperparameters.update_interval
        for number in range(updates):
            at = end - interval * (updates - 1 - number)
            state = learner.learn(state, at)
            state = learner.copy_target(state, at // interval)
        return self.close_traced(state)

    def close_traced(self, state: LearnerState) -> tuple[Array, ...]:
        """As `close`, inside a program."""
        leaves = jax.tree.leaves(state)
        return tuple(
            jax.random.key_data(x) if k else x for x, k in zip(leaves, self._is_key, strict=True)
        )

    def _traced_add(self, leaves: Any, columns: Any, number: Any) -> tuple[Array, ...]:
        def one(index: Any, leaves: Any) -> Any:
            parts = [column[index] for column in columns]
            state = self._learner.remember(self.open(leaves), Transition(*parts))
            return self.close_traced(state)

        return jax.lax.fori_loop(0, number, one, tuple(leaves))
