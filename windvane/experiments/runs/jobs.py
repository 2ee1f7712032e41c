"""Jobs: runs that are trained in parallel in one compiled program, interruptible and resumable.

Runs share a program where they differ in seeds and schedules alone. A job under way is a file
`work/NAME.json` with its configuration, a training folder `work/NAME` and, after an interruption,
the seconds that it has taken; all are removed once its runs are in the store. A process holds the
file of its job locked, so that other processes skip it.
"""

import json
import math
import shutil
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console

from windvane.errors import InputError, shown
from windvane.experiments.runs.cells import (
    SCHEDULES,
    program_settings,
    rank,
    schedules_of,
    with_runs,
)
from windvane.experiments.runs.completed import missing
from windvane.experiments.runs.paths import short_hash, slug
from windvane.experiments.runs.provenance import MOST, provenance
from windvane.experiments.runs.store import Store
from windvane.files import (
    atomic_write,
    file_lock,
    make_folder,
    path_exists,
    read_text,
    remove_files,
    write_new,
)
from windvane.runs.folder import is_run_folder, load_config
from windvane.runs.records import describe_gaps
from windvane.runs.result import Result
from windvane.runs.runner import CONFIG, resume, train
from windvane.runs.tables import Records
from windvane.training.config import ADDED_LATER, PARTS, TrainConfig

WORK = "work"
ELAPSED = ".seconds"
"""Suffix of the file with the seconds that a job had taken when it was interrupted."""
ERROR = ".error"
"""Suffix of the file with the traceback of a job that failed."""
MAX_PARALLEL_RUNS = 20
"""Runs in one program; an accelerator gains little from more."""


@dataclass(frozen=True)
class Job:
    """Runs that are trained in parallel."""

    config: TrainConfig

    @property
    def name(self) -> str:
        """Readable, and unique."""
        config = self.config
        names = slug(f"{config.env}-{config.agent}-{config.replay}")
        defaults = TrainConfig().to_json()
        # Without settings that came later, so that a job keeps its name.
        values = {
            name: value
            for name, value in config.to_json().items()
            if name not in ADDED_LATER or value != defaults[name]
        }
        return f"{names}-{short_hash(values)}"

    def path(self, store: Store) -> Path:
        """The file of the job while it is under way; its training folder has the same stem."""
        return store.folder / WORK / f"{self.name}.json"

    def __str__(self) -> str:
        config = self.config
        seeds = ", ".join(map(str, config.seed_numbers))
        schedules = " and ".join(schedules_of(config))
        return f"{config.agent}, {config.replay}: {schedules}, seeds {seeds}"


def plan_jobs(
    store: Store,
    runs: Iterable[TrainConfig],
    max_parallel_runs: int = MAX_PARALLEL_RUNS,
    completed: Container[Path] = (),
) -> list[Job]:
    """The jobs that are left: unfinished ones, then new ones for all other runs that are missing
    from the store and from the `completed` relative paths.
    """
    runs = list(runs)
    unfinished = unfinished_jobs(store, runs)
    planned = {run for job in unfinished for run in job.config.runs}
    others = (run for run in missing(runs, store, completed) if run not in planned)
    return unfinished + make_jobs(others, max_parallel_runs)


def make_jobs(runs: Iterable[TrainConfig], max_parallel_runs: int = MAX_PARALLEL_RUNS) -> list[Job]:
    """Sort runs into jobs: schedules share one where they have the same seeds."""
    programs: dict[str, list[TrainConfig]] = defaultdict(list)
    for run in runs:
        programs[json.dumps(program_settings(run), sort_keys=True)].append(run)
    return [job for program in programs.values() for job in _jobs_of(program, max_parallel_runs)]


def _jobs_of(runs: list[TrainConfig], max_parallel_runs: int) -> Iterator[Job]:
    """The jobs of runs that can share a program."""
    seeds_by_schedule: dict[str, list[int]] = defaultdict(list)
    for run in runs:
        seeds_by_schedule[schedules_of(run)[0]].extend(run.seed_numbers)
    schedules_by_seeds: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for schedule, seeds in seeds_by_schedule.items():
        schedules_by_seeds[tuple(seeds)].append(schedule)
    for seeds, schedules in schedules_by_seeds.items():
        fit = len(schedules) <= max_parallel_runs
        for group in [schedules] if fit else [[schedule] for schedule in schedules]:
            ordered = sorted(group, key=lambda name: rank(SCHEDULES, name))
            size = max_parallel_runs // len(group)
            for first in range(0, len(seeds), size):
                yield Job(with_runs(runs[0], ordered, seeds[first : first + size]))


def unfinished_jobs(store: Store, runs: Iterable[TrainConfig]) -> list[Job]:
    """Jobs under way that have some of these runs. They are finished as they are: an interruption
    does not change which runs are trained in parallel.
    """
    wanted = set(runs)
    found = []
    for path in _job_files(store):
        try:
            job = _load_job(path)
        except InputError:  # another process has just finished it, or `strange_files` tells of it
            continue
        if wanted & set(job.config.runs):
            found.append(job)
            wanted -= set(job.config.runs)
    return found


def strange_files(store: Store) -> list[str]:
    """A sentence about each file that has the place of a job's and is not what was written."""
    said = []
    for path in _job_files(store):
        try:
            _load_job(path)
        except InputError as error:
            if path_exists(path):
                said.append(str(error))
    return said


def _job_files(store: Store) -> list[Path]:
    return sorted((store.folder / WORK).glob("*.json"))


def _load_job(path: Path) -> Job:
    """The job of a file, which is called after it: no other is trained in its place."""
    job = Job(TrainConfig.load(path))
    if job.name != path.stem:
        raise InputError(
            f"{path} has the settings of the job {job.name}: it was edited or written by an "
            "earlier version, and may be removed"
        )
    return job


def run_job(job: Job, store: Store, console: Console | None = None) -> None:
    """Train a job, or resume it, and put its runs into the store."""
    make_folder(store.folder / WORK)
    path = job.path(store)
    _require_own(path)
    if not path_exists(path):
        text = json.dumps(job.config.to_json(), indent=2) + "\n"
        write_new(path, lambda file: file.write(text.encode()))
    with file_lock(path):
        _require_same(path, TrainConfig.load(path), job.config, "file")
        if all(map(store.has, job.config.runs)):
            return _clean_up(store, job)
        began = time.monotonic() - _read_seconds(path.with_suffix(ELAPSED))
        try:
            result = _train(job, path.with_suffix(""), console)
        except KeyboardInterrupt:
            _write_seconds(path.with_suffix(ELAPSED), time.monotonic() - began)
            raise
        if result.gone:  # a store has whole runs alone
            raise InputError(
                f"the records of steps {describe_gaps(result.gone)} of this job are gone: remove "
                f"{path.with_suffix('')} to train it anew"
            )
        _store_runs(job, result, store, time.monotonic() - began)
        return _clean_up(store, job)


def _train(job: Job, folder: Path, console: Console | None) -> Result:
    """Train a job in its folder, or resume what is there if it is the job's."""
    if not is_run_folder(folder):
        return train(job.config, out=folder, console=console)
    _require_same(folder / CONFIG, load_config(folder), job.config, "folder")
    # Whoever asks for the job names its parts, which are trusted as far as they agree.
    named = {part: getattr(job.config, part) for part in PARTS}
    return resume(folder, console=console, **named)


def _require_own(path: Path) -> None:
    """Complain about links in the place of a job's file or folder."""
    for place, what in ((path, "file"), (path.with_suffix(""), "folder")):
        if place.is_symlink():
            raise InputError(
                f"{place} is a link, and what it leads to may be anything: remove it, or put the "
                f"{what} itself there"
            )


def _require_same(path: Path, found: TrainConfig, job: TrainConfig, what: str) -> None:
    """Complain about the first setting of a file under way that is not the job's."""
    # Which the machine decides that begins, and the policy to start from.
    open_ = {"precision": "auto", "start_checksum": None}
    for name in (field.name for field in fields(TrainConfig)):
        there, wanted = getattr(found, name), getattr(job, name)
        if there == wanted or (name in open_ and wanted == open_[name]):
            continue
        again = " to train the job anew" if what == "folder" else ""
        raise InputError(
            f"{path} has {name} {shown(there)}, and its job {shown(wanted)}: put that back, or "
            f"remove the {what}{again}"
        )


def _read_seconds(path: Path) -> float:
    """The seconds in a file; 0 without it, or where it holds something else."""
    try:
        seconds = float(read_text(path))
    except (InputError, ValueError):
        return 0.0
    return seconds if math.isfinite(seconds) and 0 <= seconds <= MOST else 0.0


def _write_seconds(path: Path, seconds: float) -> None:
    """Write them if that is possible: they are no reason to go on with what was stopped."""
    with suppress(InputError):
        atomic_write(path, lambda file: file.write(str(seconds).encode()))


def _store_runs(job: Job, result: Result, store: Store, seconds: float) -> None:
    runs = job.config.runs
    source = provenance(result.config)
    source |= {"parallel_runs": len(runs), "seconds": round(seconds, 1)}
    for number, run in enumerate(runs):
        if store.has(run):  # by another process, or before an interruption
            continue
        if result.content is not None:
            store.write_content(run, _rows_of(result.content, number))
        store.write(run, _rows_of(result.records, number), number in result.failed, source)


def _rows_of(records: Records, number: int) -> Records:
    """The rows of one run; without polars, as machines that only train need not have it."""
    mask = records["run"] == number
    return {name: column[mask] for name, column in records.items()}


def _clean_up(store: Store, job: Job) -> None:
    """Remove the files of a finished job; what a link leads to is not one of them."""
    path = job.path(store)
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)  # which follows no links
    remove_files([path.with_suffix(ERROR), path.with_suffix(ELAPSED), path])
