"""Training from the outside: chunks one after another, records, checkpoints, stopping, going on.

A run folder holds `config.json`, and while training goes on `records/` and `checkpoints/`; in the
end `episodes.parquet`, `policies/`, `summary.json` and, with DER, `replay-content.parquet`.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int
from rich.console import Console

from windvane.agents.core import Agent
from windvane.envs.checking import check_environment
from windvane.envs.environment import Environment, require_observation
from windvane.errors import InputError
from windvane.files import atomic_write, file_lock, make_folder
from windvane.oracle import coverage_set
from windvane.policy import Policy, trained_network
from windvane.progress import progress_display
from windvane.replay.buffer import ReplayBuffer
from windvane.training import checkpoint, records
from windvane.training.checkpoint import Checkpoint
from windvane.training.config import TrainConfig
from windvane.training.display import training_display
from windvane.training.loop import RunState, Step, Trainer, run_chunk
from windvane.training.parts import run_schedules
from windvane.training.records import (
    Optimal,
    Records,
    RecordWriter,
    episode_rows,
    replay_content,
)
from windvane.training.result import CONTENT, SUMMARY, Result, load_policies, read_failed
from windvane.training.stopping import TrainingStopped, stop_request, wait_for
from windvane.weights import WeightSchedule

CONFIG = "config.json"
_OWN = "own-parts.json"


def train(
    env: TrainConfig | Environment[Any] | str,
    agent: Agent | str | None = None,
    *,
    replay: ReplayBuffer[Any] | str | None = None,
    weights: WeightSchedule | str | Sequence[str] | None = None,
    out: str | Path | None = None,
    console: Console | None = None,
    **settings: Any,
) -> Result:
    """Train one or many runs and return their records, regret and policies.

    `env` is a whole configuration, the name of a problem (whose paper preset is the base) or an
    environment; `agent`, `replay` and `weights` are names or objects, `weights` also two names, for
    every seed with either; `settings` are any others of `TrainConfig`, such as `steps` and `seeds`.
    With `out`, a folder, all of it is written there and can be gone on with after any stop (see
    `resume`). Progress is shown on `console`.
    """
    config, own = _configure(env, settings, agent=agent, replay=replay, weights=weights)
    config = config.resolved()
    trainer = config.build(**own)
    if out is None:
        return _Run(config, trainer, None, console).go()
    folder = _claim(Path(out), config, own)
    with file_lock(folder / CONFIG):
        return _Run(config, trainer, folder, console).go()


def resume(folder: str | Path, *, console: Console | None = None, **own: Any) -> Result:
    """Go on with a training that was stopped; its outcome is the same as without the stop.

    Parts that were objects of the user's own (`env`, `agent`, `replay`, `weights`) must be given
    again. A training that is finished is only read.
    """
    folder = Path(folder)
    if not (folder / CONFIG).exists():
        raise InputError(f"there is no training run in {folder}")
    config = TrainConfig.load(folder / CONFIG)
    _check_own(folder, own)
    if (folder / SUMMARY).exists():
        checkpoint.remove(folder)
        records.remove_parts(folder)
        found, policies = records.read_records(folder), load_policies(folder, **own)
        content = records.read_table(folder / CONTENT) if (folder / CONTENT).exists() else None
        return Result(config, found, policies, read_failed(folder), folder, content)
    make_folder(folder)
    with file_lock(folder / CONFIG):
        return _Run(config, config.build(**own), folder, console).go()


class Chunk(NamedTuple):
    """Steps from `first` on, up to but without `last`."""

    first: int
    last: int
    learning: bool


def chunks(config: TrainConfig) -> Iterator[Chunk]:
    """The steps before learning starts, then pieces of equal length, then perhaps a rest.

    Every length is compiled anew, so one without a rest is taken unless it would be very short.
    """
    interval = config.update_interval
    start = min(-(-config.learning_starts // interval) * interval, config.steps)
    yield Chunk(0, start, False)
    cycles = (config.steps - start) // interval
    most = max(min(config.chunk // interval, cycles), 1)
    least = max(most // 8, min(most // 2, 32))
    near = (size for size in range(most, least, -1) if cycles % size == 0)
    length = next(near, most) * interval
    for first in range(start, config.steps, length):
        yield Chunk(first, min(first + length, config.steps), True)


@dataclass
class _Run:
    """A training on its way."""

    config: TrainConfig
    trainer: Trainer
    folder: Path | None
    console: Console | None

    def go(self) -> Result:
        """Train to the end."""
        seeds = np.asarray([run.seed_numbers[0] for run in self.config.runs])
        optimal = _optimal(self.trainer, self.console)
        step, runs = self._begin(seeds)
        steps, number = self.config.steps, len(seeds)
        kept: RecordWriter | _Memory
        kept = _Memory() if self.folder is None else RecordWriter(self.folder, step)
        with (
            stop_request() as stop,
            training_display(self.console, step, steps, number) as show,
        ):
            saved_at = time.monotonic()
            for chunk in chunks(self.config):
                if chunk.last <= step:
                    continue
                # A version with other lengths may have stopped within this one.
                chunk = chunk._replace(first=max(chunk.first, step))
                before = np.asarray(runs.episodes)
                runs, told = self._advance(runs, chunk)
                rows = episode_rows(told, chunk.first, seeds, before, optimal)
                kept.add(rows)
                show(chunk.last, rows["regret"])
                due = time.monotonic() - saved_at >= self.config.checkpoint_seconds
                if self.folder is not None and (due or stop.asked or chunk.last == steps):
                    kept.write(chunk.last)
                    checkpoint.save(self.folder, Checkpoint(chunk.last, runs))
                    saved_at = time.monotonic()
                if stop.asked and chunk.last < steps:
                    raise TrainingStopped(self._how_to_go_on(chunk.last))
        return self._finish(runs, kept)

    def _begin(self, seeds: Int[np.ndarray, " runs"]) -> tuple[int, RunState]:
        """The newest checkpoint, or runs before their first step."""
        init = eqx.filter_vmap(self.trainer.init)
        what = (jnp.asarray(seeds, jnp.int32), run_schedules(self.config, self.trainer.schedule))
        found = None
        if self.folder is not None:
            found = checkpoint.load(self.folder, eqx.filter_eval_shape(init, *what))
        if found is None:
            # Copied, since one array may stand for two, and each is given up on its own.
            runs = jax.tree.map(jnp.copy, eqx.filter_jit(init)(*what))
            found = Checkpoint(0, runs)
        return found.step, _spread(found.runs, len(seeds))

    def _advance(self, runs: RunState, chunk: Chunk) -> tuple[RunState, Step]:
        cycles = (chunk.last - chunk.first) // self.config.update_interval
        what = (self.trainer, jnp.asarray(chunk.first), cycles, chunk.learning)
        try:
            runs, told = run_chunk(what, runs)
            wait_for(told)
        except KeyboardInterrupt:
            raise TrainingStopped(self._how_to_go_on(None)) from None
        return runs, told

    def _how_to_go_on(self, step: int | None) -> str:
        at = "stopped at once" if step is None else f"stopped at step {step:,}"
        if self.folder is None:
            return f"{at}; nothing was kept, since no folder was given for it"
        where = "from its last checkpoint " if step is None else ""
        return f"{at}; go on {where}with: windvane resume {self.folder}"

    def _finish(self, runs: RunState, kept: "RecordWriter | _Memory") -> Result:
        rows = kept.finish()
        failed = tuple(np.flatnonzero(np.asarray(runs.failed)).tolist())
        policies = tuple(self._policy(runs, run) for run in range(len(self.config.runs)))
        content = replay_content(self.trainer.replay, runs.replay)
        result = Result(self.config, rows, policies, failed, self.folder, content)
        if self.folder is not None:
            result.save(self.folder)
            checkpoint.remove(self.folder)
            records.remove_parts(self.folder)
        return result

    def _policy(self, runs: RunState, run: int) -> Policy:
        agent, env = self.trainer.agent, self.trainer.env
        one = jax.tree.map(lambda leaf: leaf[run], runs)
        network = jax.device_put(trained_network(agent, env, one), jax.local_devices()[0])
        config = self.config.runs[run]
        return Policy(config, env, agent, network, config.seed_numbers[0])


class _Memory:
    """Rows of a training that is not written anywhere."""

    def __init__(self) -> None:
        self._tables: list[Records] = []

    def add(self, rows: Records) -> None:
        self._tables.append(rows)

    def write(self, step: int) -> None:
        """Nowhere to write to."""

    def finish(self) -> Records:
        return records.concatenate(self._tables)


def _configure(
    env: TrainConfig | Environment[Any] | str, settings: dict[str, Any], **parts: Any
) -> tuple[TrainConfig, dict[str, Any]]:
    """The configuration of all that has a name, and the parts that are objects."""
    by_name = str | list | tuple
    own = {name: part for name, part in parts.items() if not isinstance(part, by_name | None)}
    named = {name: part for name, part in parts.items() if isinstance(part, by_name)}
    changes = settings | named
    if isinstance(env, TrainConfig):
        base = {name: value for name, value in env.to_json().items() if name != "format"}
        return TrainConfig.preset("paper-minecart", **(base | changes)), own
    if isinstance(env, str):
        if env not in ("minecart", "dst"):
            raise InputError(f"unknown env {env!r}; choose one of: minecart, dst")
        return TrainConfig.preset(f"paper-{env}", **changes), own
    if not isinstance(env, Environment):
        raise InputError(f"env must be a configuration, a name or an environment, not {env!r}")
    base = "paper-dst" if type(env).__name__ == "DeepSeaTreasure" else "paper-minecart"
    check_environment(env)
    config = TrainConfig.preset(base, **({"observation": env.observation} | changes))
    require_observation(env, config.observation)
    return config, own | {"env": env}


def _claim(folder: Path, config: TrainConfig, own: dict[str, Any]) -> Path:
    """Make a run folder, unless there is a run in it."""
    if (folder / CONFIG).exists():
        raise InputError(
            f"there is a training run in {folder} already: choose another folder, or go on with: "
            f"windvane resume {folder}"
        )
    make_folder(folder)
    if own:
        names = {name: type(part).__name__ for name, part in own.items()}
        atomic_write(folder / _OWN, lambda file: file.write(json.dumps(names).encode()))
    text = json.dumps(config.to_json(), indent=2) + "\n"
    atomic_write(folder / CONFIG, lambda file: file.write(text.encode()))
    return folder


def _check_own(folder: Path, own: dict[str, Any]) -> None:
    path = folder / _OWN
    names = json.loads(path.read_text()) if path.exists() else {}
    given = {name: type(part).__name__ for name, part in own.items()}
    if names != given:
        raise InputError(
            f"the training run in {folder} has parts of the user's own, {names or 'none'}, and "
            f"resume must be given the same, not {given or 'none'}"
        )


def _optimal(trainer: Trainer, console: Console | None) -> Optimal:
    """The best scaled value for rows of weights; not a number where there is no oracle."""
    quiet = console or Console(quiet=True)
    try:
        with progress_display(quiet) as progress:
            values = coverage_set(trainer.env, trainer.settings.gamma, progress).values
    except InputError:
        return lambda weights: np.full(len(weights), np.nan)
    scaled = np.asarray(values, float) * trainer.settings.reward_scale
    return lambda weights: (weights.astype(float) @ scaled.T).max(-1)


def _spread(runs: RunState, number: int) -> RunState:
    """Share the runs out over the devices, where they can be shared evenly."""
    devices = jax.local_devices()
    share = max(n for n in range(1, len(devices) + 1) if number % n == 0)
    if share == 1:
        return runs
    mesh = jax.sharding.Mesh(np.asarray(devices[:share]), ("runs",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("runs"))
    return eqx.filter_shard(runs, sharding)
