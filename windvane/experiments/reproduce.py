"""Running a grid: what is missing is trained, what is there is skipped, what was cut goes on.

Runs that share a program (the same agent, replay and settings; other seeds and weight changes) are
trained side by side, as a batch. A batch at work is a file `work/NAME.json` that says what it is,
a training folder `work/NAME` and, after a stop, the seconds spent on it; all are gone once its runs
are in the store. Whoever works on a batch holds its file locked, so that others pass it over.
"""

import json
import shutil
import time
import traceback
from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich.console import Console

from windvane.errors import InputError, in_one_line
from windvane.experiments.grid import Grid
from windvane.experiments.known import missing, places_in
from windvane.experiments.origin import commit, origin
from windvane.experiments.store import Store, mark
from windvane.files import BusyError, atomic_write, file_lock, make_folder, write_new
from windvane.progress import say
from windvane.training.config import TrainConfig
from windvane.training.result import Result
from windvane.training.runner import CONFIG, resume, train
from windvane.training.settings import WeightsName
from windvane.training.stopping import TrainingStopped, stop_request

WORK = "work"
GO_ON = "stopped; the same command goes on where it was"
SPENT = ".seconds"
"""How the file of a batch ends that says how long it was at work before a stop."""
_KINDS = get_args(WeightsName)
TOGETHER = 20
"""Runs side by side; an accelerator gains little from more."""


@dataclass(frozen=True)
class Batch:
    """Runs that are trained side by side."""

    config: TrainConfig

    @property
    def name(self) -> str:
        """Readable, and another for every other batch."""
        config = self.config
        return f"{config.env}-{config.agent}-{config.replay}-{mark(config.to_json())}"

    def declared(self, store: Store) -> Path:
        """The file that says that it is at work; its training folder has the same stem."""
        return store.folder / WORK / f"{self.name}.json"

    def __str__(self) -> str:
        config = self.config
        seeds = ", ".join(map(str, config.seed_numbers))
        return f"{config.agent}, {config.replay}: {' and '.join(config.kinds)}, seeds {seeds}"


@dataclass
class Outcome:
    """What came of the batches of a grid, by their descriptions."""

    skipped: int = 0
    """Runs that were there before."""
    trained: int = 0
    """Runs that were trained now."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a batch could not be trained."""
    busy: list[str] = field(default_factory=list)
    """Batches that another process is at."""


def reproduce(
    grid: Grid,
    out: str | Path,
    *,
    seeds: int | tuple[int, ...] = 10,
    together: int = TOGETHER,
    known: str | Path | None = None,
    console: Console | None = None,
    **settings: Any,
) -> Outcome:
    """Train every run of a grid that is not in the store at `out`; `settings` change the preset's.

    Runs of another store at `known`, or of a digest of one, are not begun, either.
    A stop (Ctrl-C, SIGTERM) leaves a checkpoint, and the same call goes on from it, or after a
    crash from the last one. A batch that fails is told of in the outcome, and the others go on.
    """
    console = console or Console(quiet=True)
    store, runs, elsewhere = Store(Path(out)), grid.runs(seeds, **settings), places_in(known)
    make_folder(store.folder / WORK)
    commit()  # before anything is trained, as the files may change meanwhile
    planned = {run for batch in plan(store, runs, together, elsewhere) for run in batch.config.runs}
    there = sum(store.has(run) or run not in planned for run in runs)
    outcome, tried = Outcome(skipped=there), set()
    with stop_request() as stop:
        # Planned anew before every batch: other processes may have done some of it.
        while todo := [b for b in plan(store, runs, together, elsewhere) if b.name not in tried]:
            if stop.asked:
                raise TrainingStopped(GO_ON)
            batch, number = todo[0], len(tried) + 1
            tried.add(batch.name)
            of = len(tried) + len(todo) - 1
            say(console, f"batch {number} of {of}: {batch}")
            _try(batch, store, console, outcome)
    return outcome


def _try(batch: Batch, store: Store, console: Console, outcome: Outcome) -> None:
    """Train a batch; whatever comes of it goes into the outcome."""
    lacking = len(missing(batch.config.runs, store))
    try:
        work(batch, store, console)
    except TrainingStopped as stop:
        raise TrainingStopped(GO_ON) from stop
    except BusyError:
        outcome.busy.append(str(batch))
    except Exception as error:
        reason = in_one_line(error)
        outcome.failures[str(batch)] = f"{reason}; see {_write_error(store, batch)}"
        say(console, f"failed: {reason}")
    else:
        outcome.trained += lacking


def plan(
    store: Store,
    runs: Iterable[TrainConfig],
    together: int = TOGETHER,
    elsewhere: Container[Path] = (),
) -> list[Batch]:
    """What is to be done now: batches that were begun, then new ones of what else is missing from
    the store and has no place `elsewhere`.
    """
    found = begun(store, runs)
    theirs = {run for batch in found for run in batch.config.runs}
    others = (run for run in missing(runs, store, elsewhere) if run not in theirs)
    return found + batches(others, together)


def batches(runs: Iterable[TrainConfig], together: int = TOGETHER) -> list[Batch]:
    """Runs sorted into batches: sparse and regular weights share one where their seeds do."""
    programs: dict[str, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    examples: dict[str, TrainConfig] = {}
    for run in runs:
        apart = {"weights", "seeds"} if run.weights_every is None else {"seeds"}
        shared = {f.name: getattr(run, f.name) for f in fields(run) if f.name not in apart}
        program = json.dumps(shared, sort_keys=True)
        programs[program][run.weights].extend(run.seed_numbers)
        examples.setdefault(program, run)
    found = []
    for program, kinds in programs.items():
        shared = defaultdict(list)
        for kind, seeds in kinds.items():
            shared[tuple(seeds)].append(kind)
        for seeds, alike in shared.items():
            for kinds_together in [alike] if len(alike) <= together else [[kind] for kind in alike]:
                size = together // len(kinds_together)
                side_by_side = tuple(sorted(kinds_together, key=_KINDS.index))
                for first in range(0, len(seeds), size):
                    these = {"weights": side_by_side, "seeds": seeds[first : first + size]}
                    found.append(Batch(replace(examples[program], **these)))
    return found


def begun(store: Store, runs: Iterable[TrainConfig]) -> list[Batch]:
    """Batches at work that have to do with some of these runs: they are finished as they are, so
    that a stop changes nothing about what is trained beside what.
    """
    wanted = set(runs)
    found = []
    for path in sorted((store.folder / WORK).glob("*.json")):
        try:
            batch = Batch(TrainConfig.load(path))
        except InputError:  # another process has just finished it
            continue
        if wanted & set(batch.config.runs):
            found.append(batch)
            wanted -= set(batch.config.runs)
    return found


def work(batch: Batch, store: Store, console: Console | None = None) -> None:
    """Train a batch, or go on with it, and put its runs into the store."""
    make_folder(store.folder / WORK)
    declared = batch.declared(store)
    if not declared.exists():
        text = json.dumps(batch.config.to_json(), indent=2) + "\n"
        write_new(declared, lambda file: file.write(text.encode()))
    with file_lock(declared):
        if all(map(store.has, batch.config.runs)):
            return _tidy(store, batch)
        folder, spent = declared.with_suffix(""), declared.with_suffix(SPENT)
        began = time.monotonic() - _seconds(spent)
        try:
            if (folder / CONFIG).exists():
                result = resume(folder, console=console)
            else:
                result = train(batch.config, out=folder, console=console)
        except KeyboardInterrupt:
            seconds = str(time.monotonic() - began)
            atomic_write(spent, lambda file: file.write(seconds.encode()))
            raise
        _keep(batch, result, store, time.monotonic() - began)
        return _tidy(store, batch)


def _seconds(path: Path) -> float:
    """What a file says that was spent; without it, or where it says something else, nothing."""
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return 0.0


def _keep(batch: Batch, result: Result, store: Store, seconds: float) -> None:
    runs = batch.config.runs
    made = origin(result.config) | {"side_by_side": len(runs), "seconds": round(seconds, 1)}
    for number, run in enumerate(runs):
        if store.has(run):  # by another process, or before a stop
            continue
        mine = result.records["run"] == number
        records = {name: np.asarray(column)[mine] for name, column in result.records.items()}
        if result.content is not None:
            held = result.content["run"] == number
            store.write_content(run, {n: column[held] for n, column in result.content.items()})
        store.write(run, records, number in result.failed, made)


def _write_error(store: Store, batch: Batch) -> Path:
    """Keep all that is known of the error at hand, for whoever looks into it."""
    path = batch.declared(store).with_suffix(".error")
    text = traceback.format_exc()
    atomic_write(path, lambda file: file.write(text.encode()))
    return path


def _tidy(store: Store, batch: Batch) -> None:
    """Remove what a finished batch worked with."""
    declared = batch.declared(store)
    shutil.rmtree(declared.with_suffix(""), ignore_errors=True)
    for suffix in (".error", SPENT):
        declared.with_suffix(suffix).unlink(missing_ok=True)
    declared.unlink(missing_ok=True)
