"""A study on a Ray cluster: every task is a worker, as a process of its own is.

The tasks share the study's folder, which every node must reach under the same path. A task whose
node dies is started again, and what it had begun is begun anew.
"""

import os
from pathlib import Path

from rich.console import Console

from windvane.errors import InputError, in_one_line, require_positive_int
from windvane.experiments.runs.cluster import CORES, RETRIES, connect
from windvane.machine import use_compilation_cache
from windvane.progress import progress_display
from windvane.search.study import STUDY, Study, open_study


def search_on(
    address: str,
    study: Study,
    storage: str | None,
    trials: int,
    minutes: float | None,
    parallel_trials: int | None,
    tasks: int | None,
    console: Console,
) -> None:
    """Have tasks on the Ray cluster at `address` work on a study until its limits are reached; by
    default as many as the cluster has GPUs, or pairs of cores.
    """
    if tasks is not None:
        require_positive_int("tasks", tasks, 10_000)
    if study.begun - study.running >= trials:
        return
    ray = connect(address)
    failures = []
    try:
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        number = tasks or gpus or max(int(resources.get("CPU", 0)) // CORES, 1)
        needs = {"num_gpus": 1} if gpus else {"num_cpus": CORES}
        task = ray.remote(max_retries=RETRIES, **needs)(work)
        given = (os.path.abspath(study.folder), storage, trials, minutes, parallel_trials)
        waiting = [task.remote(*given) for _ in range(number)]
        with progress_display(console) as progress:
            while waiting:
                progress("trials", len(study.finished), trials)
                done, waiting = ray.wait(waiting, timeout=1.0)
                for one in done:
                    try:
                        ray.get(one)
                    except Exception as error:  # whatever went wrong on its node
                        failures.append(in_one_line(getattr(error, "cause", None) or error))
    finally:
        ray.shutdown()
    if failures:
        raise InputError(
            f"{len(failures)} of {number} tasks failed, and the same command goes on: "
            f"{'; '.join(sorted(set(failures)))}"
        )


def work(
    folder: str, storage: str | None, trials: int, minutes: float | None,
    parallel_trials: int | None,
) -> int:  # fmt: skip
    """What a task does: work on the study until its limits are reached. Returns the number of
    trials that are finished then.
    """
    from windvane.search.tune import search

    if not (Path(folder) / STUDY).exists():
        raise InputError(f"this node does not reach {folder}: a study's folder must be shared")
    use_compilation_cache()
    study = open_study(Path(folder), None, storage)
    search(study, trials, minutes, parallel_trials, Console(quiet=True))
    return len(study.finished)
