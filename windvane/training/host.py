"""The host driver: a Python loop around the same compiled learner, for any Gymnasium environment.

Each run has its own copies of the environment. Acting is one small compiled call per step. What
happened is kept on the host and observed once per cycle, in one larger call that also learns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from windvane.envs.host import HostEnvs, HostStep
from windvane.errors import InputError
from windvane.learning.learner import Learner, LearnerState, weights_key
from windvane.live import LiveWeights
from windvane.schedules import WeightSchedule
from windvane.training.fused import StepInfo
from windvane.training.session import Session
from windvane.transition import Transition
from windvane.weights import check_weights

DRAWN = 256
"""Steps whose random draws are made at once."""
STAGED = 64
"""Transitions of a finished trajectory that enter the replay buffer in one call, at most."""


WeightSource = WeightSchedule | LiveWeights | Callable[[int, int], Any]
"""Where weights come from; a function is called with the episode and the step that begin."""


class HostRunState(eqx.Module):
    """All of a run but its environment, which cannot be saved: resuming begins new episodes."""

    learner: LearnerState
    episodes: Int[Array, ""]
    schedule: PyTree[Array]


@dataclass(frozen=True)
class HostDriver:
    """A learner, environments and a source of weights; `num_envs` environments per run."""

    learner: Learner
    schedule: WeightSource
    num_envs: int
    learning_starts: int
    """The first step whose cycle ends with a gradient step."""

    @property
    def cycle(self) -> int:
        """Steps of one cycle."""
        return max(self.learner.hyperparameters.update_interval, self.num_envs)

    @property
    def updates(self) -> int:
        """Gradient steps at the end of a cycle."""
        return self.cycle // self.learner.hyperparameters.update_interval

    def init(self, seed: int, schedule: PyTree[Array] = None) -> HostRunState:
        """A run before its first step."""
        own = self.schedule if isinstance(self.schedule, WeightSchedule) else None
        arrays = eqx.filter(own, eqx.is_array) if schedule is None else schedule
        key = jax.random.key(seed)
        first = np.asarray(self.weights(arrays, key, 0, 0), np.float32)
        weights = jnp.broadcast_to(jnp.asarray(first), (self.num_envs, first.size))
        learner = eqx.filter_jit(self.learner.init)(key, weights)
        return HostRunState(learner, jnp.zeros((), int), arrays)

    def weights(self, arrays: PyTree[Array], key: Any, episode: int, step: int) -> np.ndarray:
        """The weights of an episode that begins now."""
        source, number = self.schedule, self.learner.spec.num_objectives
        if isinstance(source, LiveWeights):
            return source.current()
        if isinstance(source, WeightSchedule):
            return np.asarray(self._schedule_program(arrays, key, episode, step), np.float32)
        return check_weights(source(episode, step), number).astype(np.float32)

    @cached_property
    def _schedule_program(self) -> Any:
        static = self.schedule

        def weights(arrays: Any, key: Any, episode: Any, step: Any) -> Array:
            return eqx.combine(arrays, static).weights(weights_key(key), episode, step)

        return jax.jit(weights)

    def programs(self, like: LearnerState) -> "_Programs":
        """The compiled functions that all runs share."""
        if "_programs" not in self.__dict__:
            self.__dict__["_programs"] = _Programs(self.learner, like, self.num_envs)
        return self.__dict__["_programs"]


class HostRun:
    """A run on its way: its environments, and its learner's arrays on the device."""

    def __init__(
        self, driver: HostDriver, state: HostRunState, envs: HostEnvs, seed: int, step: int
    ):
        """Begin an episode in every environment."""
        self.driver, self.envs, self.step, self.episodes = driver, envs, step, int(state.episodes)
        self.schedule = state.schedule
        learner = driver.learner
        if step:
            state = eqx.tree_at(
                lambda s: s.learner, state, eqx.filter_jit(learner.abandon_episode)(state.learner)
            )
        self._key = state.learner.key
        self._programs = driver.programs(state.learner)
        self._leaves = self._programs.close(state.learner)
        self._online = self._programs.online(self._leaves)
        number = driver.num_envs
        children = np.random.SeedSequence([seed, step]).spawn(number)
        self.start = envs.reset([int(child.generate_state(1)[0]) for child in children])
        self._seen = self.start
        self._weights = np.asarray(state.learner.active_weights, np.float32).copy()
        self._returns = np.zeros((number, learner.spec.num_objectives), np.float32)
        self._lengths = np.zeros(number, int)
        self._staged: list[list[tuple[Any, ...]]] = [[] for _ in range(number)]
        self._staging = learner.replay.whole_trajectories and number > 1
        # Plain numbers: reading them from modules at every step would cost as much as the step.
        h, live = learner.hyperparameters, driver.schedule
        self._number, self._cycle, self._updates = number, driver.cycle, driver.updates
        self._gamma, self._scale = np.float32(h.gamma), np.float32(h.reward_scale)
        exploration = (h.epsilon_start, h.epsilon_end, h.epsilon_steps)
        self._exploration = tuple(np.float32(value) for value in exploration)
        self._immediately = isinstance(live, LiveWeights) and live.immediately
        self._draws = self._programs.draws(self._key, step)
        self._drawn_from = step
        self._rows = _Rows(driver.cycle, self.start, learner.spec.num_objectives)
        self._choose()

    @property
    def state(self) -> HostRunState:
        """All that can be saved."""
        self._flush()
        learner = self._programs.open(self._leaves)
        return HostRunState(learner, jnp.asarray(self.episodes), self.schedule)

    def advance(self, stop: int, interrupted: Callable[[], bool]) -> StepInfo:
        """Take steps up to `stop`, or fewer if interrupted; axes are steps and environments.

        An environment that fails ends this early with an `EnvironmentFailedError`, which holds
        what was recorded before.
        """
        rows: list[tuple[Any, ...]] = []
        try:
            while self.step < stop and not (interrupted() and rows):
                rows.append(self._one_step())
        except InputError as error:
            raise EnvironmentFailedError(str(error), self._infos(rows)) from error
        return self._infos(rows)

    def _one_step(self) -> tuple[Any, ...]:
        """One step of all environments; the fields of its `StepInfo`, plain for speed."""
        outcome = self.envs.step(self._actions)
        ended = outcome.terminated | outcome.truncated
        any_ended = bool(ended.any())
        discount = np.power(self._gamma, self._lengths, dtype=np.float32)[:, None]
        self._returns = self._returns + discount * (outcome.rewards * self._scale)
        self._lengths = self._lengths + 1
        loss = self._programs.loss(self._leaves) if any_ended else np.float32(0)
        epsilon = self._epsilon(self.step)
        info = (ended, self._lengths, self._weights, self._returns, epsilon, loss)
        step, self.step = self.step, self.step + self._number
        changed = self._next_weights(ended) if any_ended or self._immediately else False
        if self._staging:
            self._stage(outcome, ended)
        draws = self._draws_at(step)
        self._rows.add(self._seen, self._actions, outcome, self._weights, draws)
        if self.step % self._cycle == 0:
            learning = self.step - self._cycle >= self.driver.learning_starts
            self._flush(self._updates if learning else 0)
        elif changed:  # an agent may answer with another network
            self._flush()
        self._seen = outcome.observations
        if any_ended:
            self._returns = np.where(ended[:, None], np.float32(0), self._returns)
            self._lengths = np.where(ended, 0, self._lengths)
        self._choose()
        return info

    def _flush(self, updates: int = 0) -> None:
        """Let the learner observe what happened since the last time, and learn `updates` times."""
        if self._rows.count or updates:
            self._leaves = self._programs.observe(
                self._leaves, self._rows, np.int32(self.step), updates, self._staging
            )
            self._online = self._programs.online(self._leaves)
            self._rows = self._rows.emptied()

    def _infos(self, rows: list[tuple[Any, ...]]) -> StepInfo:
        """Step infos with a leading axis of steps: environment by environment within a step."""
        number, objectives = self._number, self._returns.shape[1]
        if not rows:
            none, wide = np.zeros(0, np.float32), np.zeros((0, objectives), np.float32)
            return StepInfo(none.astype(bool), none.astype(int), wide, wide, none, none)
        ended, lengths, weights, returns, epsilons, losses = zip(*rows, strict=True)
        return StepInfo(
            np.concatenate(ended), np.concatenate(lengths), np.concatenate(weights),
            np.concatenate(returns), np.repeat(np.asarray(epsilons, np.float32), number),
            np.repeat(np.asarray(losses, np.float32), number),
        )  # fmt: skip

    def _choose(self) -> None:
        """The actions of the next step: random ones, or the best."""
        draws = self._draws_at(self.step)
        exploring = draws.epsilon_draw < self._epsilon(self.step)
        if exploring.all():
            self._actions = draws.random_action
            return
        greedy = self._programs.greedy(self._online, self._seen, self._weights)
        self._actions = np.where(exploring, draws.random_action, np.asarray(greedy))

    def _draws_at(self, step: int) -> "HostDraws":
        """The random draws of a step of all environments; they are drawn for many at once."""
        first = step - self._drawn_from
        if first < 0 or first + self._number > len(self._draws.random_action):
            self._draws, self._drawn_from, first = self._programs.draws(self._key, step), step, 0
        last = first + self._number
        return HostDraws(*(column[first:last] for column in self._draws))

    def _next_weights(self, ended: np.ndarray) -> bool:
        """Ask for the weights of what follows; whether they differ."""
        weights = self._weights.copy()
        if self._immediately:
            weights[:] = self.driver.schedule.current()  # type: ignore[union-attr]
        for index in np.flatnonzero(ended):
            self.episodes += 1
            weights[index] = self.driver.weights(self.schedule, self._key, self.episodes, self.step)
        changed = not np.array_equal(weights, self._weights)
        self._weights = weights
        return changed

    def _epsilon(self, step: int) -> np.float32:
        start, end, steps = self._exploration
        share = np.minimum(np.float32(step) / steps, np.float32(1))
        return start + share * (end - start)

    def _stage(self, outcome: HostStep, ended: np.ndarray) -> None:
        """Keep transitions until their trajectory is whole, and then add it at once."""
        parts = (self._seen, self._actions, outcome.rewards, outcome.reached,
                 outcome.terminated, outcome.truncated)  # fmt: skip
        for index, rows in enumerate(self._staged):
            rows.append(tuple(part[index] for part in parts))
            if ended[index]:
                for first in range(0, len(rows), STAGED):
                    self._leaves = self._programs.add(self._leaves, rows[first : first + STAGED])
                rows.clear()


class _Rows:
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
        draws: "HostDraws",
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

    def emptied(self) -> "_Rows":
        """The same without rows: new arrays, since a call in flight may still read these."""
        return _Rows(len(self.actions), self.seen, self._objectives)


class HostDraws(NamedTuple):
    """Random draws as NumPy arrays; the agent's keys are plain numbers."""

    epsilon_draw: np.ndarray
    random_action: np.ndarray
    reservoir_draw: np.ndarray
    agent_key: np.ndarray


class EnvironmentFailedError(InputError):
    """An environment did what it must not do; `infos` tells of the steps before."""

    def __init__(self, message: str, infos: StepInfo):
        """The sentence, and what was recorded."""
        super().__init__(message)
        self.infos = infos


class _Programs:
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
        self._online = [i for i, path in enumerate(paths) if path.startswith(".online")]
        self._network = jax.tree.structure(like.online)
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

    def online(self, leaves: Sequence[Array]) -> tuple[Array, ...]:
        """The arrays of the network that acts: a call with few arrays costs less."""
        return tuple(leaves[index] for index in self._online)

    def greedy(self, online: Any, seen: np.ndarray, weights: np.ndarray) -> Array:
        """The best actions of all environments."""
        return self._greedy(online, seen, weights)

    def draws(self, key: Any, step: int) -> HostDraws:
        """The random draws of the next steps."""
        number = max(DRAWN, self._num_envs)
        return HostDraws(*map(np.asarray, self._draw(key, step + jnp.arange(number))))

    def observe(
        self, leaves: Any, rows: _Rows, end: np.int32, updates: int, staged: bool
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

    def _traced_greedy(self, online: Any, seen: Any, weights: Any) -> Array:
        network, learner = jax.tree.unflatten(self._network, online), self._learner

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


class HostSession(Session):
    """Runs in progress in Gymnasium environments, one after another within a chunk."""

    resume_note = (
        "its environment cannot be saved: the episodes that were open begin anew, and what follows "
        "differs from an uninterrupted run"
    )

    def __init__(
        self,
        driver: HostDriver,
        seeds: np.ndarray,
        schedules: PyTree[Array],
        make_envs: Callable[[], HostEnvs],
    ):
        """`schedules` are the runs' schedule arrays; `make_envs` makes the copies of one run."""
        self.driver, self._make_envs = driver, make_envs
        self._seeds = [int(seed) for seed in seeds]
        self._schedules = schedules
        self._runs: list[HostRun] = []

    def _initial(self, run: int) -> HostRunState:
        arrays = jax.tree.map(lambda leaf: leaf[run], self._schedules)
        return self.driver.init(self._seeds[run], arrays)

    def template(self) -> HostRunState:
        """Runs before their first step, stacked."""
        return _stack_runs([self._initial(run) for run in range(len(self._seeds))])

    def begin(self, state: HostRunState | None, step: int) -> None:
        """Begin episodes in all environments."""
        for run, seed in enumerate(self._seeds):
            one = self._initial(run) if state is None else _pick_run(state, run)
            self._runs.append(HostRun(self.driver, one, self._make_envs(), seed, step))

    def advance(
        self, start: int, stop: int, learning: bool, interrupted: Callable[[], bool]
    ) -> StepInfo:
        """Run by run; an interruption takes effect at the same step in all of them."""
        del start, learning
        parts, failure = [], None
        for number, run in enumerate(self._runs):
            asked = interrupted if number == 0 else lambda: False
            try:
                infos = run.advance(stop, asked)
            except EnvironmentFailedError as error:
                if number:
                    raise
                infos, failure = error.infos, error
            if number == 0:
                stop = run.step
            parts.append(infos)
        infos = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *parts)
        if failure is not None:
            raise EnvironmentFailedError(str(failure), infos)
        return infos

    @property
    def step(self) -> int:
        """Steps that every run has taken."""
        return self._runs[0].step

    @property
    def state(self) -> HostRunState:
        """All runs, stacked."""
        return _stack_runs([run.state for run in self._runs])

    @property
    def episodes(self) -> np.ndarray:
        """Episodes that ended, per run."""
        return np.asarray([run.episodes for run in self._runs])

    @property
    def failed(self) -> np.ndarray:
        """Which runs diverged."""
        return np.asarray([bool(run.state.learner.failed) for run in self._runs])

    def policy_network(self, run: int) -> Any:
        """What a run has learned so far: a copy, since training donates its own arrays."""
        one = self._runs[run]
        start = jnp.asarray(one.start[0])
        network = self.driver.learner.policy_network(one.state.learner, start)
        return jax.tree.map(jnp.copy, network)

    def replay_states(self) -> list[Any]:
        """The replay buffer of each run."""
        return [run.state.learner.replay for run in self._runs]

    def close(self) -> None:
        """Close all environments."""
        for run in self._runs:
            run.envs.close()


def _stack_runs(runs: list[HostRunState]) -> HostRunState:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)


def _pick_run(runs: HostRunState, index: int) -> HostRunState:
    return jax.tree.map(lambda leaf: leaf[index], runs)
