"""Training from the outside: chunks one after another, records, checkpoints, stopping, resuming.

A run folder holds `config.json`, and while training is in progress `records/` and `checkpoints/`;
in the end `episodes.parquet`, `policies/`, `summary.json` and, with DER, `replay-content.parquet`.
With greedy evaluations there are `evaluations.parquet` and `policies/best/`, too.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console

from windvane.agents import AGENTS
from windvane.agents.core import Agent
from windvane.envs.environment import Environment, require_observation
from windvane.envs.resolve import GymnasiumEnv, check_env, describe_env
from windvane.errors import InputError, is_number, shown
from windvane.evaluation import check_values, optimal_value_fn
from windvane.files import file_lock, make_folder, path_exists, sweep
from windvane.live import LiveWeights
from windvane.machine import use_compilation_cache
from windvane.oracle import SEARCHING
from windvane.policy import given_again, trained_policy
from windvane.progress import progress_display, say
from windvane.registry import Arguments
from windvane.replay.buffer import ReplayBuffer
from windvane.runs import checkpoint, records
from windvane.runs.checkpoint import Checkpoint, Part
from windvane.runs.compiling import Compiling
from windvane.runs.display import training_display
from windvane.runs.folder import (
    CHECKPOINTS,
    CONFIG,
    CONTENT,
    Owner,
    create_run_folder,
    is_finished,
    load_config,
    load_optimal,
    load_owner,
)
from windvane.runs.greedy import GreedyEvaluations
from windvane.runs.iterations import iterate_agent
from windvane.runs.records import (
    OptimalValue,
    RecordWriter,
    Steps,
    episode_rows,
    replay_content,
)
from windvane.runs.result import Result, load_policies, read_summary, written_folders
from windvane.runs.starting import (
    architecture_of,
    check_start,
    describe_start,
    open_start,
    start_network,
)
from windvane.runs.status import StatusWriter, remove_status
from windvane.runs.stopping import StopRequest, TrainingStopped, stop_request
from windvane.runs.sums import check_files
from windvane.runs.tables import Records, concatenate
from windvane.schedules import WeightSchedule
from windvane.tracking import check_recorded, check_trackers
from windvane.tracking.state import TrackingState
from windvane.tracking.tracking import Tracking
from windvane.training.build import Training, build, describe_custom
from windvane.training.callbacks import (
    Answer,
    Callback,
    TrainingProgress,
    call_back,
    check_callbacks,
    read_only,
)
from windvane.training.config import PARTS, TrainConfig
from windvane.training.fused import StepInfo
from windvane.training.host_loop import EnvironmentFailedError
from windvane.training.presets import preset_for
from windvane.training.session import Session


def train(
    env: Any = "minecart",
    agent: Any = None,
    *,
    replay: Any = None,
    schedule: Any = None,
    weights: Any = None,
    start_from: Any = None,
    out: str | Path | None = None,
    optimal: Any = None,
    track: Any = (),
    callbacks: Any = (),
    progress: bool = True,
    console: Console | None = None,
    **settings: Any,
) -> Result:
    """Train one or many runs and return their records, regret, utility and policies.

    `env` is a name (`"minecart"`, `"dst"`, `"mo:four-room-v0"`, a Gymnasium id, an import path), a
    native `Environment`, a Gymnasium environment with a vector reward, or a whole `TrainConfig`.
    `agent` and `replay` are names or objects. `schedule` is a name, several names (every seed is
    then trained with each), a `WeightSchedule`, `LiveWeights`, or a function of the episode and the
    step; `weights` is a fixed vector. `settings` are any others of `TrainConfig`, such as `steps`
    and `seeds`. `start_from` is a policy, or the path of a saved one, whose network the runs start
    with; the network's sizes are then the policy's. `optimal` are optimal values for environments
    without an oracle: a coverage set of discounted, unscaled value vectors, or a function of
    weights.

    With `out`, a folder, everything is written there and can be resumed after any interruption (see
    `resume`). Progress is shown on standard error, or on `console`.

    `track` are names of trackers that get the curves: `"tensorboard"`, `"mlflow"`, `"wandb"`, or
    the import path of another. `callbacks` are functions that are called between chunks with the
    `TrainingProgress`. If one returns True, a checkpoint is written and `TrainingStopped` raised;
    what one raises comes out after a checkpoint, too.
    """
    console = console or Console(stderr=True, quiet=not progress)
    track, callbacks = check_trackers(track), check_callbacks(callbacks)
    if track and out is None:
        raise InputError("a tracker needs a run folder: give one, such as out='out/first'")
    use_compilation_cache()
    if start_from is None and isinstance(env, TrainConfig):
        start_from = env.start_from
    start = None if start_from is None else open_start(start_from)
    if start is not None:
        check_start(getattr(env, "start_checksum", None), start)
        sizes = {} if isinstance(env, TrainConfig) else architecture_of(start)
        settings = sizes | settings | describe_start(start_from, start)
    config, custom = _configure(env, settings, agent, replay, _schedule(schedule, weights))
    config = config.resolved()
    training = build(config, trusted=PARTS, **custom)
    network = start_network(training, start)
    if optimal is not None and not callable(optimal):
        optimal = check_values(optimal, training.spec.num_objectives).tolist()
    run = _Run(training, None, console, optimal, lambda: network, callbacks)
    if out is None:
        return run.run()
    run.folder = create_run_folder(Path(out), config, optimal)
    with file_lock(run.folder / CONFIG):
        return _run_tracked(run, run.folder, track, True)


def resume(
    folder: str | Path,
    *,
    trust: bool = False,
    start_from: Any = None,
    optimal: Any = None,
    track: Any = None,
    callbacks: Any = (),
    progress: bool = True,
    console: Console | None = None,
    **given: Any,
) -> Result:
    """Resume a training that was interrupted; its outcome is the same as without the interruption,
    except in Gymnasium environments, whose open episodes begin anew.

    Parts that were objects made in Python (`env`, `agent`, `replay`, `schedule`) must be given
    again. Parts that are import paths are imported only with `trust`, or if they are given again by
    name. A policy that runs start with is needed only before the first checkpoint; `start_from`
    says where it is now. A training that is finished is only read.

    The trackers are those that the run was begun with; `track` names others, or none: `()`.
    `callbacks` are as in `train`; they were not kept, so give them again.
    """
    console = console or Console(stderr=True, quiet=not progress)
    folder = Path(folder)
    track = None if track is None else check_trackers(track)
    callbacks = check_callbacks(callbacks)
    config = load_config(folder)
    objects, trusted = given_again(config, given, trust)
    if is_finished(folder):
        return _read_finished(folder, trust=trust, **given)
    use_compilation_cache()
    make_folder(folder)
    with file_lock(folder / CONFIG):
        if is_finished(folder):  # by another process, meanwhile
            return _read_finished(folder, trust=trust, **given)
        sweep(*written_folders(folder))
        training = build(config, trusted=trusted, **objects)
        objectives = training.spec.num_objectives
        if optimal is None:
            optimal = load_optimal(folder, objectives)
        elif not callable(optimal):
            optimal = check_values(optimal, objectives).tolist()
        if start_from is not None:
            start_from = open_start(start_from)
            start_network(training, start_from)
        run = _Run(
            training, folder, console, optimal, lambda: start_network(training, start_from),
            callbacks,
        )  # fmt: skip
        return _run_tracked(run, folder, track, trust)


def _run_tracked(run: "_Run", folder: Path, track: tuple[str, ...] | None, trust: bool) -> Result:
    """Train to the end with trackers, which are callbacks; None for those that the folder names."""
    if track == ():
        return run.run()
    owner = load_owner(folder)
    state = TrackingState.read(folder, owner.run_id)
    if track is None:
        track = check_recorded(state.names, trust, f"windvane resume {folder} --track")
    if not track:
        return run.run()
    if owner.run_id is None:
        raise InputError("a training of an earlier version has no id that trackers could know")
    with Tracking(track, run.config, folder, owner.run_id, run.console, state) as tracking:
        run.callbacks = (tracking, *run.callbacks)
        result = run.run()
        tracking.finish(result.means)
    return result


def _read_finished(folder: Path, **given: Any) -> Result:
    """The result of a finished training, whose folder may hold what it needs no more."""
    result = read_result(folder, **given)
    checkpoint.remove(folder)
    records.remove_parts(folder)
    remove_status(folder)
    sweep(*written_folders(folder))
    return result


def read_result(folder: Path, **given: Any) -> Result:
    """The result of a finished training, from its folder."""
    config = load_config(folder)
    check_files(folder)
    found = records.read_records(folder)
    policies = load_policies(folder, **given)
    summary = read_summary(folder, config, len(found["step"]))
    content = None
    if path_exists(folder / CONTENT):
        content = records.read_content(folder / CONTENT, len(config.runs))
    greedy = GreedyEvaluations.read(folder, config, given)
    return Result(
        config, found, policies, summary.failed, folder, content, greedy.rows, greedy.best,
        summary.gone,
    )  # fmt: skip


class Chunk(NamedTuple):
    """Steps from `start` on, up to but without `stop`."""

    start: int
    stop: int
    learning: bool


def chunks(config: TrainConfig) -> Iterator[Chunk]:
    """The steps before learning starts, then pieces of equal length, then perhaps a rest.

    Every length is compiled anew, so one without a rest is taken unless it would be very short.
    """
    cycle = config.cycle_steps
    start = min(-(-config.learning_starts // cycle) * cycle, config.steps)
    if config.rollout:  # what is learned from is there as soon as it is needed
        start = 0
    yield Chunk(0, start, False)
    cycles = (config.steps - start) // cycle
    most = max(min(config.chunk // cycle, cycles), 1)
    least = max(most // 8, min(most // 2, 32))
    near = (size for size in range(most, least, -1) if cycles % size == 0)
    length = next(near, most) * cycle
    for first in range(start, config.steps, length):
        yield Chunk(first, min(first + length, config.steps), True)


@dataclass
class _Run:
    """A training in progress."""

    training: Training
    folder: Path | None
    console: Console
    optimal: Any
    start_network: Callable[[], Any]
    """What the runs start with, for training that has no checkpoint; None for random networks."""
    callbacks: tuple[Callback, ...] = ()
    greedy: GreedyEvaluations = field(init=False)

    @property
    def config(self) -> TrainConfig:
        return self.training.config

    def run(self) -> Result:
        """Train to the end."""
        optimal_value = self._optimal_value()
        session = self.training.session()
        try:
            with stop_request(self._resume_hint(None)) as stop:
                return self._run(session, optimal_value, stop)
        except TrainingStopped:
            raise
        except KeyboardInterrupt:
            raise TrainingStopped(self._resume_hint(None)) from None
        finally:
            session.close()

    def _run(self, session: Session, optimal_value: OptimalValue, stop: StopRequest) -> Result:
        # Config and id as the folder has them: a resumed run must find them again.
        owner = None if self.folder is None else load_owner(self.folder)
        with stop.chunk("start", learning=False):
            found = self._restore_or_init(session, owner)
        step, steps = found.step, self.config.steps
        seeds = np.asarray([run.seed_numbers[0] for run in self.config.runs])
        writer: RecordWriter | InMemoryWriter = InMemoryWriter()
        if self.folder is not None:
            writer = RecordWriter(self.folder, step, found.parts)
        self.greedy = GreedyEvaluations.resume(self.training, self.folder, step, self.optimal)
        earlier = writer.earlier()
        status = StatusWriter(self.training, self.folder, earlier)
        if earlier and self.callbacks:
            answer = self._call_back(0, step, concatenate(earlier), self.greedy.rows, resumed=True)
            self._obey(answer, step)
        compiling = Compiling(self.training)
        with training_display(self.console, step, steps, len(seeds), compiling) as show:
            saved_at = time.monotonic()
            for chunk in chunks(self.config):
                if chunk.stop <= step:
                    continue
                # A version with other lengths may have stopped within this one.
                start = max(chunk.start, step)
                before, evaluations = session.episodes, len(self.greedy.tables)
                infos, failure = self._advance(session, start, chunk, stop)
                step = start + infos.steps
                rows = episode_rows(infos, start, seeds, before, optimal_value)
                records.check_finite(rows)
                writer.add(rows)
                show(step, rows)
                status.update(step, rows, session)
                if failure is None:
                    failure = self._iterate(session, start, step)
                self.greedy.consider(session, start, step)
                evaluated = self.greedy.since(evaluations)
                answer = self._call_back(start, step, rows, evaluated)
                asked = stop.asked or answer.stop
                due = time.monotonic() - saved_at >= self.config.checkpoint_seconds
                if self.folder is not None and (due or asked or failure or step == steps):
                    writer.write(step)
                    self.greedy.write()
                    parts = tuple(writer.parts)
                    checkpoint.save(self.folder, Checkpoint(step, session.state, owner, parts))
                    stop.saved()
                    saved_at = time.monotonic()
                if failure is not None:
                    raise InputError(f"{failure} ({self._resume_hint(step)})")
                self._obey(answer._replace(stop=asked), step)
        return self._finish(session, writer)

    def _call_back(
        self, start: int, step: int, rows: Records, evaluated: Records | None, resumed: bool = False
    ) -> Answer:
        """Tell the callbacks what is new; what one raises waits for the checkpoint."""
        if not self.callbacks:
            return Answer()
        progress = TrainingProgress(
            self.config, self.folder, self.training.spec.objectives, start, step, read_only(rows),
            None if evaluated is None else read_only(evaluated), resumed,
        )  # fmt: skip
        return call_back(self.callbacks, progress)

    def _obey(self, answer: Answer, step: int) -> None:
        """End a training that a callback or a signal wants to end."""
        if answer.error is not None:
            answer.error.add_note(self._resume_hint(step))
            raise answer.error
        if answer.stop and step < self.config.steps:
            raise TrainingStopped(self._resume_hint(step))

    def _restore_or_init(self, session: Session, owner: Owner | None) -> Checkpoint:
        """Start from the newest checkpoint, or from nothing; where that is."""
        found = None
        if self.folder is not None and path_exists(self.folder / CHECKPOINTS):
            found = checkpoint.load(self.folder, session.template(), owner)
        if found is None:
            session.begin(None, 0, self.start_network())
            return Checkpoint(0, None)
        if session.resume_note:
            say(self.console, f"resuming at step {found.step:,}; {session.resume_note}")
        session.begin(found.runs, found.step)
        return found._replace(runs=None)  # which the session holds now, and gives away

    def _advance(
        self, session: Session, start: int, chunk: Chunk, stop: StopRequest
    ) -> tuple[StepInfo, InputError | None]:
        # A session that returns early where it is interrupted needs no end in the middle.
        kind = None if session.returns_early else (chunk.stop - start, chunk.learning)
        try:
            with stop.chunk(kind, learning=chunk.learning):
                infos = session.advance(start, chunk.stop, chunk.learning, lambda: stop.asked)
        except EnvironmentFailedError as failure:
            return failure.infos, failure
        return infos, None

    def _iterate(self, session: Session, start: int, stop: int) -> InputError | None:
        """What the agent does between chunks; what fails then must not lose the chunk."""
        try:
            iterate_agent(self.training, session, start, stop)
        except InputError as error:
            return error
        return None

    def _resume_hint(self, step: int | None) -> str:
        at = "stopped at once" if step is None else f"stopped at step {step:,}"
        if self.folder is None:
            return f"{at}; nothing was kept, since no folder was given for it"
        where = "from its last checkpoint " if step is None else ""
        return f"{at}; resume {where}with: windvane resume {self.folder}"

    def _finish(self, session: Session, writer: "RecordWriter | InMemoryWriter") -> Result:
        rows = writer.finish()
        failed = tuple(np.flatnonzero(session.failed).tolist())
        policies = tuple(
            trained_policy(self.training, session.policy_network(run), run)
            for run in range(len(self.config.runs))
        )
        content = replay_content(self.training.learner.replay, session.replay_states())
        greedy = self.greedy
        result = Result(
            self.config, rows, policies, failed, self.folder, content, greedy.rows, greedy.best,
            writer.gone,
        )  # fmt: skip
        if self.folder is not None:
            greedy.write()
            remove_status(self.folder)
            result.save(self.folder)
            checkpoint.remove(self.folder)
            records.remove_parts(self.folder)
        return result

    def _optimal_value(self) -> OptimalValue:
        """The best scaled value for rows of weights; NaN where it is not known."""
        config, given = self.config, self.optimal
        if given is not None and not callable(given):
            given = check_values(given, self.training.spec.num_objectives)
        with progress_display(self.console, SEARCHING) as progress:
            return optimal_value_fn(
                self.training.world, config.gamma, config.reward_scale, given, progress,
                oracle=config.oracle,
            )  # fmt: skip


class InMemoryWriter:
    """Rows of a training that is not written anywhere."""

    def __init__(self) -> None:
        """No rows yet."""
        self._tables: list[Records] = []
        self.parts: list[Part] = []
        self.gone: tuple[Steps, ...] = ()

    def add(self, rows: Records) -> None:
        """Keep rows."""
        self._tables.append(rows)

    def write(self, step: int) -> None:
        """There is nowhere to write to."""

    def earlier(self) -> list[Records]:
        """Nothing is resumed."""
        return []

    def finish(self) -> Records:
        """All rows."""
        return concatenate(self._tables)


def _schedule(schedule: Any, weights: Any) -> Any:
    """One of `schedule` and `weights`, with a fixed vector as its text."""
    if weights is not None and schedule is not None:
        raise InputError("give a schedule or fixed weights, not both")
    given = schedule if weights is None else weights
    vector = _vector(given)
    if vector is not None:
        return ",".join(map(repr, vector))
    if weights is not None:
        raise InputError(f"weights must be one vector of numbers, not {shown(weights)}")
    return given


def _vector(given: Any) -> list[float] | None:
    """The numbers of a list or of an array with one axis; None of anything else."""
    if isinstance(given, np.ndarray | jax.Array):
        plain = given.ndim == 1 and np.asarray(given).dtype.kind in "iuf"
        return np.asarray(given, float).tolist() if plain else None
    listed = isinstance(given, list | tuple) and len(given) > 0
    numbers = listed and all(is_number(x) for x in given)
    return [float(x) for x in given] if numbers else None


def _configure(
    env: Any, settings: dict[str, Any], agent: Any, replay: Any, schedule: Any
) -> tuple[TrainConfig, dict[str, Any]]:
    """The configuration of all that has a name, and the parts that are objects."""
    named: dict[str, Any] = {}
    custom: dict[str, Any] = {}
    for kind, part, types in (
        ("agent", agent, Agent),
        ("replay", replay, ReplayBuffer),
        ("schedule", schedule, WeightSchedule | LiveWeights),
    ):
        if part is None:
            continue
        if isinstance(part, str) or (kind == "schedule" and isinstance(part, list | tuple)):
            named[kind] = part
        elif isinstance(part, types) or (kind == "schedule" and callable(part)):
            custom[kind] = part
        else:
            raise InputError(f"{kind} must be a name or an object of its class, not {shown(part)}")
    base: dict[str, Any] = {}
    if isinstance(env, TrainConfig):
        base = {f.name: getattr(env, f.name) for f in fields(env)}
        preset = "paper-minecart"
    elif isinstance(env, str):
        base, preset = {"env": check_env(env)}, preset_for(env, _kind_of(agent))
    else:
        base = _describe(env, custom)
        preset = preset_for(base.get("env", ""), _kind_of(agent))
        wanted = settings.get("observation")
        if isinstance(env, Environment) and wanted not in (None, "auto"):
            require_observation(env, str(wanted))
    changes = base | settings | named
    changes |= describe_custom(custom) if custom else {}
    return TrainConfig.preset(preset, **changes), custom


def _kind_of(agent: Any) -> str | None:
    """The name of an agent, for what suits it: of an object, that of one of its class."""
    if not isinstance(agent, Agent):
        return agent
    home = f"{type(agent).__module__}:{type(agent).__qualname__}"
    return next((name for name, entry in AGENTS.items() if entry.home == home), None)


def _describe(env: Any, custom: dict[str, Any]) -> dict[str, Any]:
    """Settings for an environment that is an object; one that no name rebuilds is custom."""
    native = isinstance(env, Environment)
    gymnasium = isinstance(env, GymnasiumEnv) or hasattr(env, "observation_space")
    if not native and not gymnasium:
        raise InputError(
            "env must be a configuration, a name, a native environment or a Gymnasium environment, "
            f"not {shown(env)}"
        )
    seen = {"observation": env.observation} if native else {"observation": "auto"}
    described = None if isinstance(env, GymnasiumEnv) else describe_env(env)
    if described is None:
        custom["env"] = env
        return seen
    name, args = described
    return seen | {"env": name, "env_args": Arguments(args)}


__all__ = ["InMemoryWriter", "chunks", "read_result", "resume", "train"]
