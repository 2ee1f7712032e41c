"""A grid on a Ray cluster: every job is a task, and its runs come back into the same store.

A task works in a folder of its own node and returns the files of its runs. A task whose node dies
is given to another node, from its beginning.
"""

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from windvane.errors import InputError, in_one_line
from windvane.experiments.paper.grids import Grid
from windvane.experiments.runs.completed import completed_paths, missing
from windvane.experiments.runs.jobs import MAX_PARALLEL_RUNS, Job, make_jobs, run_job
from windvane.experiments.runs.reproduce import ReproduceResult, diverged_runs, exploded_runs
from windvane.experiments.runs.store import Store
from windvane.files import make_folder
from windvane.progress import progress_display
from windvane.training.config import TrainConfig

RETRIES = 3
"""How often a task is started again because its node, or its process, was lost."""
CORES = 2
"""Processor cores that a task without a GPU requests."""


def reproduce_on(
    address: str,
    grid: Grid,
    out: str | Path,
    *,
    seeds: int | tuple[int, ...] = 10,
    max_parallel_runs: int = MAX_PARALLEL_RUNS,
    completed: str | Path | None = None,
    console: Console | None = None,
    **settings: Any,
) -> ReproduceResult:
    """Train every run of a grid that is missing from the store at `out`, on the Ray cluster at
    `address`.

    Runs that the store or the summaries in the folder `completed` have are skipped, too. A task
    requests a GPU where the cluster has some. Runs are stored as their tasks finish: after any
    interruption the same call trains what is missing.
    """
    console = console or Console(quiet=True)
    store, runs = Store(Path(out)), grid.runs(seeds, **settings)
    todo = missing(runs, store, completed_paths(completed))
    make_folder(store.folder)
    result = ReproduceResult(skipped=len(runs) - len(todo))
    if not todo:
        return result
    ray = connect(address)
    try:
        tasks = {_submit(ray, job): job for job in make_jobs(todo, max_parallel_runs)}
        waiting = list(tasks)
        with progress_display(console) as progress:
            while waiting:
                progress("jobs", len(tasks) - len(waiting), len(tasks))
                done, waiting = ray.wait(waiting, timeout=1.0)
                for task in done:
                    _collect(ray, task, tasks[task], store, result)
    finally:
        ray.shutdown()
    return result


def train_job(config: dict[str, Any]) -> dict[str, bytes]:
    """What a task does: run a job, and return the files of its runs by their relative paths."""
    with tempfile.TemporaryDirectory(prefix="windvane-") as folder:
        store = Store(make_folder(Path(folder)))
        run_job(Job(TrainConfig.from_json(config)), store)
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in store.files()}


def connect(address: str) -> Any:
    """Ray, connected to the cluster at an address."""
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise InputError(
            "a cluster needs Ray: install windvane[cluster], here and on every node"
        ) from error
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        reason = in_one_line(error)
        raise InputError(f"cannot reach a Ray cluster at {address}: {reason}") from error
    return ray


def _submit(ray: Any, job: Job) -> Any:
    resources = {"num_gpus": 1} if ray.cluster_resources().get("GPU") else {"num_cpus": CORES}
    task = ray.remote(max_retries=RETRIES, **resources)(train_job)
    return task.remote(job.config.to_json())


def _collect(ray: Any, task: Any, job: Job, store: Store, result: ReproduceResult) -> None:
    try:
        files = ray.get(task)
    except Exception as error:  # whatever went wrong on the node, or the loss of too many nodes
        result.failures[str(job)] = in_one_line(getattr(error, "cause", error))
        return
    try:
        for relative, data in files.items():
            store.put(relative, data)
    except InputError as error:  # such as a full disk; there may be room for the next
        result.failures[str(job)] = in_one_line(error)
        return
    result.trained += len(job.config.runs)
    result.diverged += diverged_runs(store, job.config.runs)
    result.exploded += exploded_runs(store, job.config.runs)
