"""Runs in progress in native environments: one compiled chunk after another."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from windvane.agents.core import Iteration, Networks
from windvane.learning.learner import LearnerState
from windvane.live import LiveWeights
from windvane.schedules import with_chosen
from windvane.training.fused import FusedDriver, RunState, StepInfo
from windvane.training.parallel import ParallelDriver, ParallelState
from windvane.training.session import Session

POLL = 0.005
"""Seconds between two looks at whether a chunk is done."""


class FusedSession(Session):
    """Runs in one compiled program, sharded over the devices where they can be."""

    def __init__(
        self,
        driver: FusedDriver | ParallelDriver,
        seeds: Int[np.ndarray, " runs"],
        schedules: PyTree[Array],
        live: LiveWeights | None = None,
        numbers: dict[str, Float[Array, " runs"]] | None = None,
    ):
        """`schedules` are the runs' schedule arrays; `live` replaces them before every chunk.
        `numbers` are settings in which runs of the replay learner differ.
        """
        self.driver, self._seeds, self._live = driver, seeds, live
        self._inputs = (jnp.asarray(seeds, jnp.int32), schedules)
        self._numbers = () if numbers is None else (numbers,)
        self._runs: Any = None

    def template(self) -> RunState | ParallelState:
        """Shapes of all runs."""
        return eqx.filter_eval_shape(self._init, *self._inputs, None, *self._numbers)

    @property
    def _init(self) -> Any:
        """Begins all runs, from seeds, schedules, a network and perhaps numbers."""
        axes = (0, eqx.if_array(0), None, *(0 for _ in self._numbers))
        return eqx.filter_vmap(self.driver.init, in_axes=axes)

    def begin(self, state: RunState | ParallelState | None, step: int, network: Any = None) -> None:
        """Place all runs on the devices."""
        del step
        runs: Any = state
        if state is None:
            initial = eqx.filter_jit(self._init)(*self._inputs, network, *self._numbers)
            # Copied, since one array may stand for two, and each is donated on its own.
            runs = jax.tree.map(jnp.copy, initial)
        self._runs = shard_runs(runs, len(self._seeds))
        if isinstance(self.driver, ParallelDriver) and len(self._seeds) == 1:
            self._runs = shard_envs(self._runs, self.driver.num_envs)

    def advance(
        self, start: int, stop: int, learning: bool, interrupted: Callable[[], bool]
    ) -> StepInfo:
        """One compiled chunk; it is never interrupted."""
        del interrupted
        if self._live is not None:
            vector = jnp.asarray(self._live.current())
            every = jnp.broadcast_to(vector, (len(self._seeds), vector.size))
            self._runs = eqx.tree_at(lambda r: r.schedule.vector, self._runs, every)
        self._runs, infos = self.driver.advance(self._runs, start, stop, learning)
        wait_for(infos)
        return infos

    def keep(self, runs: Sequence[int]) -> None:
        """Continue with some of the runs alone, in this order; one may be there several times."""
        rows = np.asarray(runs, np.int32)
        self._seeds = self._seeds[rows]
        self._runs = shard_runs(_rows_of(self._runs, jnp.asarray(rows)), len(rows))

    @property
    def state(self) -> RunState | ParallelState:
        """All runs."""
        return self._runs

    @property
    def episodes(self) -> np.ndarray:
        """Episodes that ended, per run."""
        return np.asarray(self._runs.episodes)

    @property
    def failed(self) -> np.ndarray:
        """Which runs diverged."""
        return np.asarray(self._runs.learner.failed)

    def policy_network(self, run: int) -> Any:
        """What a run has learned so far, on one device."""
        state = jax.tree.map(lambda leaf: leaf[run], self._runs.learner)
        env = self.driver.env
        start = env.observe(env.reset(jax.random.key(0)))
        network = self.driver.learner.policy_network(state, start)
        return jax.device_put(network, jax.local_devices()[0])

    def networks(self, run: int) -> Networks:
        """Copies, on one device."""
        networks = jax.tree.map(lambda leaf: leaf[run], self._runs.learner.networks)
        return jax.device_put(networks, jax.local_devices()[0])

    def adopt(self, run: int, iteration: Iteration) -> None:
        """Its weights hold from the next episode on."""

        def parts(runs: RunState) -> Any:
            return runs.learner.agent_state, runs.schedule

        schedule = jax.tree.map(lambda leaf: leaf[run], self._runs.schedule)
        new = iteration.agent_state, with_chosen(schedule, iteration.weights)
        # Through the host, since the runs may be shared out over devices.
        rows = jax.tree.map(
            lambda every, one: every.at[run].set(np.asarray(one)), parts(self._runs), new
        )
        self._runs = eqx.tree_at(parts, self._runs, rows, is_leaf=lambda node: node is None)

    def replay_states(self) -> list[Any]:
        """The replay buffer of each run that has one."""
        if self.driver.learner.replay is None:
            return []
        states = self._runs.learner.replay
        return [
            jax.tree.map(lambda leaf, run=run: leaf[run], states) for run in range(len(self._seeds))
        ]


@jax.jit
def _rows_of(tree: Any, rows: Int[Array, " n"]) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def wait_for(tree: Any) -> None:
    """Wait until arrays are computed, open to signals: a plain wait hears none before its end."""
    for leaf in jax.tree.leaves(tree):
        while not leaf.is_ready():
            time.sleep(POLL)


def shard_runs(runs: Any, number: int) -> Any:
    """Share the runs out over the devices, where they can be shared evenly."""
    sharding = _sharding(number, "runs")
    return runs if sharding is None else eqx.filter_shard(runs, sharding)


def shard_envs(runs: ParallelState, num_envs: int) -> ParallelState:
    """Share the environments of one run out over the devices; all have the learner."""
    sharding = _sharding(num_envs, None, "envs")
    everywhere = _sharding(num_envs, None)
    if sharding is None or everywhere is None:
        return runs

    def parts(runs: ParallelState) -> Any:
        return runs.episode, runs.env_episodes, runs.weights, runs.returns

    runs = eqx.filter_shard(runs, everywhere)
    return eqx.tree_at(parts, runs, eqx.filter_shard(parts(runs), sharding))


def _sharding(number: int, *axes: str | None) -> jax.sharding.NamedSharding | None:
    """Over as many devices as divide `number`; None if that is one."""
    devices = jax.local_devices()
    share = max(n for n in range(1, len(devices) + 1) if number % n == 0)
    if share == 1:
        return None
    mesh = jax.sharding.Mesh(np.asarray(devices[:share]), (axes[-1] or "envs",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))


def to_format_1(runs: RunState) -> tuple[Any, ...]:
    """The parts of all runs in the order in which the first format of checkpoints has them."""
    s = runs.learner
    active = s.active_weights
    first = jax.eval_shape(lambda a: a[:, 0], active)
    return (
        s.key, s.online, s.target, s.agent_state, s.optimiser, s.replay, runs.episode,
        runs.episodes, runs.schedule, first, s.history, runs.returns, s.loss, s.failed,
    )  # fmt: skip


def from_format_1(parts: tuple[Any, ...]) -> RunState:
    """The runs whose parts a checkpoint of the first format holds."""
    return eqx.filter_vmap(_run_from_format_1)(parts)


def _run_from_format_1(parts: tuple[Any, ...]) -> RunState:
    (key, online, target, agent_state, optimiser, replay, episode, episodes, schedule, active,
     history, returns, loss, failed) = parts  # fmt: skip
    learner = LearnerState(
        key, online, target, agent_state, optimiser, replay, active[None], history, loss, failed
    )
    return RunState(learner, episode, episodes, schedule, returns)
