"""A grid on a Ray cluster: every batch is a task, and its runs come back into the same store.

A task works in a folder of its own node and returns the files of its runs. A task whose node dies
is given to another, from its beginning.
"""

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from windvane.errors import InputError, in_one_line
from windvane.experiments.grid import Grid
from windvane.experiments.known import missing, places_in
from windvane.experiments.reproduce import TOGETHER, Batch, Outcome, batches, work
from windvane.experiments.store import Store
from windvane.files import make_folder
from windvane.progress import progress_display
from windvane.training.config import TrainConfig

RETRIES = 3
"""How often a task may begin again because its node, or its process, is gone."""
CORES = 2
"""Processor cores that a task without a GPU asks for."""


def reproduce_on(
    address: str,
    grid: Grid,
    out: str | Path,
    *,
    seeds: int | tuple[int, ...] = 10,
    together: int = TOGETHER,
    known: str | Path | None = None,
    console: Console | None = None,
    **settings: Any,
) -> Outcome:
    """Train every run of a grid that is not in the store at `out`, on the Ray cluster at `address`.

    Runs of another store at `known`, or of a digest of one, are not begun, either.
    A task asks for a GPU where the cluster has some. Results are stored as they come: the same call
    goes on after any stop with what is missing.
    """
    console = console or Console(quiet=True)
    store, runs = Store(Path(out)), grid.runs(seeds, **settings)
    lacking = missing(runs, store, places_in(known))
    make_folder(store.folder)
    outcome = Outcome(skipped=len(runs) - len(lacking))
    if not lacking:
        return outcome
    ray = _connect(address)
    try:
        todo = batches(lacking, together)
        tasks = {_submit(ray, batch): batch for batch in todo}
        waiting = list(tasks)
        with progress_display(console) as progress:
            while waiting:
                progress("batches", len(todo) - len(waiting), len(todo))
                done, waiting = ray.wait(waiting, timeout=1.0)
                for task in done:
                    _collect(ray, task, tasks[task], store, outcome)
    finally:
        ray.shutdown()
    return outcome


def train_batch(config: dict[str, Any]) -> dict[str, bytes]:
    """What a task does: the files of a batch's runs, by their places in a store."""
    with tempfile.TemporaryDirectory(prefix="windvane-") as folder:
        store = Store(make_folder(Path(folder)))
        work(Batch(TrainConfig.from_json(config)), store)
        return {str(path.relative_to(folder)): path.read_bytes() for path in store.files()}


def _connect(address: str) -> Any:
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


def _submit(ray: Any, batch: Batch) -> Any:
    wish = {"num_gpus": 1} if ray.cluster_resources().get("GPU") else {"num_cpus": CORES}
    task = ray.remote(max_retries=RETRIES, **wish)(train_batch)
    return task.remote(batch.config.to_json())


def _collect(ray: Any, task: Any, batch: Batch, store: Store, outcome: Outcome) -> None:
    try:
        files = ray.get(task)
    except Exception as error:  # whatever went wrong on the node, or the loss of too many nodes
        outcome.failures[str(batch)] = in_one_line(getattr(error, "cause", error))
        return
    for relative, data in files.items():
        store.put(relative, data)
    outcome.trained += len(batch.config.runs)
