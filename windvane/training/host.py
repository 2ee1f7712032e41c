"""The host driver: a Python loop around the same compiled learner, for any Gymnasium environment.

Each run has its own copies of the environment. A step of all copies is one call into a compiled
program, which observes what happened, learns where that is due, and chooses the next actions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from windvane.envs.host import HostEnvs, HostStep
from windvane.errors import InputError
from windvane.learning.learner import Learner, LearnerState, StepDraws, weights_key
from windvane.live import LiveWeights
from windvane.schedules import WeightSchedule
from windvane.training.fused import StepInfo
from windvane.training.session import Session
from windvane.transition import Transition
from windvane.weights import check_weights

STAGED = 64
"""Transitions of a finished trajectory that enter the replay buffer in one call, at most."""


class WeightFunction(Protocol):
    """Weights from anywhere: called when an episode begins."""

    def __call__(self, episode: int, step: int) -> Any:
        """The weights of the episode that begins now."""
        ...


WeightSource = WeightSchedule | LiveWeights | Callable[[int, int], Any]


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
        number = driver.num_envs
        children = np.random.SeedSequence([seed, step]).spawn(number)
        self.start = envs.reset([int(child.generate_state(1)[0]) for child in children])
        self._seen = self.start
        self._weights = np.asarray(state.learner.active_weights, np.float32).copy()
        self._returns = np.zeros((number, learner.spec.num_objectives), np.float32)
        self._lengths = np.zeros(number, int)
        self._staged: list[list[tuple[Any, ...]]] = [[] for _ in range(number)]
        self._staging = learner.replay.whole_trajectories and number > 1
        self._actions = self._programs.act(self._leaves, self._seen, self._number(step))

    @property
    def state(self) -> HostRunState:
        """All that can be saved."""
        learner = self._programs.open(self._leaves)
        return HostRunState(learner, jnp.asarray(self.episodes), self.schedule)

    def advance(self, stop: int, interrupted: Callable[[], bool]) -> StepInfo:
        """Take steps up to `stop`, or fewer if interrupted; axes are steps and environments.

        An environment that fails ends this early with an `EnvironmentFailedError`, which holds
        what was recorded before.
        """
        infos: list[StepInfo] = []
        try:
            while self.step < stop and not (interrupted() and infos):
                infos.append(self._one_step())
        except InputError as error:
            raise EnvironmentFailedError(str(error), _stack(infos, self.driver)) from error
        return _stack(infos, self.driver)

    def _one_step(self) -> StepInfo:
        driver, h, number = self.driver, self.driver.learner.hyperparameters, self.driver.num_envs
        outcome = self.envs.step(np.asarray(self._actions))
        ended = outcome.terminated | outcome.truncated
        discount = np.power(np.float32(h.gamma), self._lengths.astype(np.float32))[:, None]
        scale = np.float32(h.reward_scale)
        self._returns = self._returns + discount.astype(np.float32) * (outcome.rewards * scale)
        self._lengths += 1
        loss = self._programs.loss(self._leaves) if ended.any() else np.float32(0)
        info = StepInfo(
            ended, self._lengths.copy(), self._weights.copy(), self._returns.copy(),
            np.full(number, self._epsilon(self.step), np.float32),
            np.full(number, loss, np.float32),
        )  # fmt: skip
        step, self.step = self.step, self.step + number
        self._next_weights(ended)
        if self._staging:
            self._stage(outcome, ended)
        end = self.step
        updates = 0
        if end % driver.cycle == 0 and end - driver.cycle >= driver.learning_starts:
            updates = driver.cycle // h.update_interval
        self._leaves, self._actions = self._programs.step(
            self._leaves, self._seen, self._actions, outcome, self._weights,
            self._number(step), updates, self._staging,
        )  # fmt: skip
        self._seen = outcome.observations
        self._returns[ended], self._lengths[ended] = 0, 0
        return info

    def _next_weights(self, ended: np.ndarray) -> None:
        live = self.driver.schedule
        if isinstance(live, LiveWeights) and live.immediately:
            self._weights[:] = live.current()
        for index in np.flatnonzero(ended):
            self.episodes += 1
            self._weights[index] = self.driver.weights(
                self.schedule, self._key, self.episodes, self.step
            )

    def _epsilon(self, step: int) -> float:
        h = self.driver.learner.hyperparameters
        share = min(step / h.epsilon_steps, 1.0)
        return h.epsilon_start + share * (h.epsilon_end - h.epsilon_start)

    def _stage(self, outcome: HostStep, ended: np.ndarray) -> None:
        """Keep transitions until their trajectory is whole, and then add it at once."""
        parts = (self._seen, np.asarray(self._actions), outcome.rewards, outcome.reached,
                 outcome.terminated, outcome.truncated)  # fmt: skip
        for index, rows in enumerate(self._staged):
            rows.append(tuple(part[index] for part in parts))
            if ended[index]:
                for first in range(0, len(rows), STAGED):
                    self._leaves = self._programs.add(self._leaves, rows[first : first + STAGED])
                rows.clear()

    @staticmethod
    def _number(step: int) -> np.int32:
        return np.int32(step)


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
        self._learner, self._num_envs = learner, num_envs
        self._observe = jax.jit(self._traced_observe, donate_argnums=0, static_argnums=5)
        self._learn = jax.jit(self._traced_learn, donate_argnums=0, static_argnums=3)
        self._act = jax.jit(self._traced_act)
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

    def act(self, leaves: Any, seen: np.ndarray, step: np.int32) -> Array:
        """Actions of all environments."""
        return self._act(leaves, seen, step)

    def step(
        self,
        leaves: Any,
        seen: np.ndarray,
        actions: Any,
        outcome: HostStep,
        weights: Float[np.ndarray, "envs objectives"],
        step: np.int32,
        updates: int,
        staged: bool,
    ) -> tuple[tuple[Array, ...], Array]:
        """Observe a step of all environments, learn `updates` times, and act."""
        flags = np.stack([outcome.terminated, outcome.truncated], 1).astype(np.float32)
        numbers = np.concatenate([outcome.rewards, weights, flags], axis=1)
        frames = (seen, outcome.reached, outcome.observations)
        leaves, actions = self._observe(leaves, frames, actions, numbers, step, staged)
        if updates:
            leaves, actions = self._learn(leaves, outcome.observations, step, updates)
        return leaves, actions

    def add(self, leaves: Any, rows: list[tuple[Any, ...]]) -> tuple[Array, ...]:
        """Add transitions to the replay buffer, at most `STAGED`."""
        columns = [np.stack(column) for column in zip(*rows, strict=True)]
        padded = [
            np.concatenate([c, np.zeros((STAGED - len(c), *c.shape[1:]), c.dtype)]) for c in columns
        ]
        return self._add(leaves, padded, np.int32(len(rows)))

    def _draws(self, state: LearnerState, step: Any) -> StepDraws:
        steps = step + jnp.arange(self._num_envs)
        return jax.vmap(self._learner.sample_draws, (None, 0))(state.key, steps)

    def _traced_act(self, leaves: Any, seen: Any, step: Any) -> Array:
        state = self.open(leaves)
        draws = self._draws(state, step)

        def act(weights: Any, one: Any, draw: StepDraws) -> Array:
            alone = eqx.tree_at(lambda s: s.active_weights, state, weights[None])
            return self._learner.act(alone, one, step, draw)

        return jax.vmap(act)(state.active_weights, seen, draws)

    def _traced_observe(
        self, leaves: Any, frames: Any, actions: Any, numbers: Any, step: Any, staged: bool
    ) -> tuple[Any, Array]:
        seen, reached, starts = frames
        learner, state = self._learner, self.open(leaves)
        objectives = learner.spec.num_objectives
        rewards, weights = numbers[:, :objectives], numbers[:, objectives:-2]
        terminated, truncated = numbers[:, -2] > 0, numbers[:, -1] > 0
        draws = self._draws(state, step)

        def one(plain: Any, env: Any) -> tuple[Any, None]:
            state = self.open(plain)
            if not staged:
                transition = Transition(
                    seen[env], actions[env], rewards[env], reached[env],
                    terminated[env], truncated[env],
                )  # fmt: skip
                state = learner.remember(state, transition, env)
            draw = jax.tree.map(lambda leaf: leaf[env], draws)
            state = learner.adopt_weights(state, starts[env], weights[env], draw, env)
            return self.close_traced(state), None

        plain = self.close_traced(state)
        if self._num_envs == 1:
            plain, _ = one(plain, 0)
        else:
            plain, _ = jax.lax.scan(one, plain, jnp.arange(self._num_envs))
        return plain, self._traced_act(plain, starts, step + self._num_envs)

    def _traced_learn(self, leaves: Any, seen: Any, step: Any, updates: int) -> tuple[Any, Array]:
        """Learn after the step of all environments that began at `step`, and act anew."""
        learner, state, end = self._learner, self.open(leaves), step + self._num_envs
        interval = learner.hyperparameters.update_interval
        for number in range(updates):
            at = end - interval * (updates - 1 - number)
            state = learner.learn(state, at)
            state = learner.copy_target(state, at // interval)
        plain = self.close_traced(state)
        return plain, self._traced_act(plain, seen, end)

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


def _stack(infos: list[StepInfo], driver: HostDriver) -> StepInfo:
    """Step infos with a leading axis of steps: environment by environment within a step."""
    if not infos:
        number, none = driver.learner.spec.num_objectives, np.zeros(0, np.float32)
        rows = np.zeros((0, number), np.float32)
        return StepInfo(none.astype(bool), none.astype(int), rows, rows, none, none)
    return jax.tree.map(lambda *parts: np.concatenate(parts), *infos)
