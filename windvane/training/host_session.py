"""Runs in progress in Gymnasium environments."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from windvane.agents.core import Iteration, Networks
from windvane.envs.host import HostEnvs
from windvane.errors import InputError
from windvane.training.fused import StepInfo
from windvane.training.host import HostDriver, HostRun
from windvane.training.host_loop import EnvironmentFailedError, HostLoop
from windvane.training.host_rollouts import HostRolloutDriver
from windvane.training.session import Session


class HostSession(Session):
    """Runs in progress in Gymnasium environments, one after another within a chunk."""

    resume_note = (
        "its environment cannot be saved: the episodes that were open begin anew, and what follows "
        "differs from an uninterrupted run"
    )
    returns_early = True

    def __init__(
        self,
        driver: HostDriver | HostRolloutDriver,
        seeds: np.ndarray,
        schedules: PyTree[Array],
        make_envs: Callable[[], HostEnvs],
    ):
        """`schedules` are the runs' schedule arrays; `make_envs` makes the copies of one run."""
        self.driver, self._make_envs = driver, make_envs
        self._seeds = [int(seed) for seed in seeds]
        self._schedules = schedules
        self._runs: list[HostLoop] = []

    def _initial(self, run: int, network: Any = None) -> Any:
        arrays = jax.tree.map(lambda leaf: leaf[run], self._schedules)
        return self.driver.init(self._seeds[run], arrays, network)

    def template(self) -> Any:
        """Runs before their first step, stacked."""
        return _stack_runs([self._initial(run) for run in range(len(self._seeds))])

    def begin(self, state: Any | None, step: int, network: Any = None) -> None:
        """Begin episodes in all environments."""
        for run, seed in enumerate(self._seeds):
            one = self._initial(run, network) if state is None else _pick_run(state, run)
            self._runs.append(self.driver.begin(one, self._make_envs(), seed, step))

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
                if number:  # the runs before it are ahead, so that nothing of this chunk counts
                    raise InputError(str(error)) from error
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
    def state(self) -> Any:
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

    def networks(self, run: int) -> Networks:
        """Copies, since training donates its own arrays."""
        return jax.tree.map(jnp.copy, self._runs[run].state.learner.networks)

    def adopt(self, run: int, iteration: Iteration) -> None:
        """Its weights hold from the next episode on."""
        one = self._runs[run]
        if isinstance(one, HostRun):
            one.adopt(iteration)

    def replay_states(self) -> list[Any]:
        """The replay buffer of each run that has one."""
        if self.driver.learner.replay is None:
            return []
        return [run.state.learner.replay for run in self._runs]

    def close(self) -> None:
        """Close all environments."""
        for run in self._runs:
            run.envs.close()


def _stack_runs(runs: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)


def _pick_run(runs: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], runs)
