"""Running a grid: missing runs are trained, completed ones skipped, interrupted ones resumed."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from windvane.errors import InputError, in_one_line
from windvane.experiments.paper.grids import Grid
from windvane.experiments.runs.cells import cell_of
from windvane.experiments.runs.completed import completed_paths, missing
from windvane.experiments.runs.jobs import (
    ERROR,
    MAX_PARALLEL_RUNS,
    WORK,
    Job,
    plan_jobs,
    run_job,
    strange_files,
)
from windvane.experiments.runs.provenance import commit
from windvane.experiments.runs.store import Store
from windvane.files import BusyError, atomic_write, make_folder
from windvane.progress import say
from windvane.runs.divergence import FACTOR
from windvane.runs.stopping import TrainingStopped, stop_request
from windvane.training.config import TrainConfig

RESUME_HINT = "stopped; the same command resumes where it was"


@dataclass
class ReproduceResult:
    """How many runs of a grid were trained, and which jobs failed; jobs by their descriptions."""

    skipped: int = 0
    """Runs that were completed before."""
    trained: int = 0
    """Runs that were trained now."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a job failed."""
    diverged: list[str] = field(default_factory=list)
    """Runs that were trained now and diverged; they are stored as such."""
    exploded: list[str] = field(default_factory=list)
    """Runs that were trained now and diverged although their loss stayed finite."""
    busy: list[str] = field(default_factory=list)
    """Jobs that another process is running."""
    ignored: list[str] = field(default_factory=list)
    """What is wrong with files that are in the places of jobs under way, and were left alone."""


def reproduce(
    grid: Grid,
    out: str | Path,
    *,
    seeds: int | tuple[int, ...] = 10,
    max_parallel_runs: int = MAX_PARALLEL_RUNS,
    completed: str | Path | None = None,
    console: Console | None = None,
    **settings: Any,
) -> ReproduceResult:
    """Train every run of a grid that is missing from the store at `out`.

    `settings` replace those of the grid's preset. Runs that the store or the summaries in the
    folder `completed` have are skipped, too. An interruption (Ctrl-C, SIGTERM) writes a checkpoint,
    and the same call resumes from it, or after a crash from the last one. A job that fails is
    listed in the result, and the others are run.
    """
    console = console or Console(quiet=True)
    store, runs = Store(Path(out)), grid.runs(seeds, **settings)
    skipped = completed_paths(completed)
    make_folder(store.folder / WORK)
    commit()  # before anything is trained, as the files may change meanwhile
    jobs = plan_jobs(store, runs, max_parallel_runs, skipped)
    planned = {run for job in jobs for run in job.config.runs}
    there = sum(store.has(run) or run not in planned for run in runs)
    result, tried = ReproduceResult(skipped=there, ignored=strange_files(store)), set()
    for said in result.ignored:
        say(console, f"left alone: {said}")
    with stop_request(RESUME_HINT) as stop:
        # Planned again before every job: other processes may have finished some.
        while jobs := [
            job
            for job in plan_jobs(store, runs, max_parallel_runs, skipped)
            if job.name not in tried
        ]:
            if stop.asked:
                raise TrainingStopped(RESUME_HINT)
            job = jobs[0]
            tried.add(job.name)
            say(console, f"job {len(tried)} of {len(tried) + len(jobs) - 1}: {job}")
            _try_job(job, store, console, result)
    return result


def diverged_runs(store: Store, runs: Sequence[TrainConfig]) -> list[str]:
    """The names of those runs in a store that diverged."""
    return [f"{cell_of(run)} seed {run.seed_numbers[0]}" for run in runs if store.diverged(run)]


def exploded_runs(store: Store, runs: Sequence[TrainConfig]) -> list[str]:
    """The names of those runs in a store that diverged although their loss stayed finite."""
    return [f"{cell_of(run)} seed {run.seed_numbers[0]}" for run in runs if store.exploded(run)]


def about_exploded(names: Sequence[str]) -> str:
    """A sentence about runs that diverged although their loss stayed finite."""
    runs = "1 run" if len(names) == 1 else f"{len(names)} runs"
    return (
        f"{runs} diverged with a finite loss ({', '.join(names)}): it was above {FACTOR:g} times "
        "what their returns allow; they went on learning, and reports mark them"
    )


def about_diverged(names: Sequence[str]) -> str:
    """A sentence about runs that diverged."""
    runs = "1 run" if len(names) == 1 else f"{len(names)} runs"
    return (
        f"{runs} diverged ({', '.join(names)}): a loss or gradient was not finite, and learning "
        "stopped there; they are stored as diverged, and reports say so"
    )


def _try_job(job: Job, store: Store, console: Console, result: ReproduceResult) -> None:
    """Run a job; whatever comes of it goes into the result."""
    new = missing(job.config.runs, store)
    try:
        run_job(job, store, console)
    except TrainingStopped as stop:
        raise TrainingStopped(RESUME_HINT) from stop
    except BusyError:
        result.busy.append(str(job))
    except Exception as error:
        reason = in_one_line(error)
        path = _write_error(store, job)
        result.failures[str(job)] = f"{reason}; see {path}" if path else reason
        say(console, f"failed: {reason}")
    else:
        result.trained += len(new)
        diverged = diverged_runs(store, new)
        if diverged:
            result.diverged += diverged
            say(console, about_diverged(diverged))
        exploded = exploded_runs(store, new)
        if exploded:
            result.exploded += exploded
            say(console, about_exploded(exploded))


def _write_error(store: Store, job: Job) -> Path | None:
    """Write the traceback of the error that is being handled, if the disk has room for it."""
    path = job.path(store).with_suffix(ERROR)
    text = traceback.format_exc()
    try:
        atomic_write(path, lambda file: file.write(text.encode(errors="replace")))
    except (InputError, OSError):
        return None
    return path
