"""Runs that diverge are stored, and named when their job ends and in the end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.experiments.small_grid import GRID, SETTINGS, run_small
from windvane.cli import main
from windvane.experiments.runs import cluster, processes, reproduce
from windvane.experiments.runs.jobs import Job, make_jobs
from windvane.experiments.runs.reproduce import ReproduceResult
from windvane.experiments.runs.store import Store
from windvane.training.config import TrainConfig

NOTHING = {"step": np.zeros(0, np.int32), "regret": np.zeros(0), "utility": np.zeros(0)}


def store_runs(store: Store, runs: tuple[TrainConfig, ...]) -> None:
    """Runs without episodes; those of seed 1 diverged."""
    for run in runs:
        store.write(run, NOTHING, run.seed_numbers == (1,), {})


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(job: Job, store: Store, console: Any = None) -> None:
        store_runs(store, job.config.runs)

    monkeypatch.setattr(reproduce, "run_job", run)


def test_what_diverged_is_told_after_each_job(untrained: None, tmp_path: Path) -> None:
    console = Console(record=True, width=300, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    result = run_small(tmp_path, console=console)
    console.file.close()
    cells = ("cn-standard-sparse", "cn-standard-regular", "mo-standard-sparse",
             "mo-standard-regular")  # fmt: skip
    assert result.diverged == [f"{cell} seed 1" for cell in cells]
    assert (result.trained, result.failures) == (8, {})
    said = console.export_text().splitlines()
    assert said[1].startswith("2 runs diverged (cn-standard-sparse seed 1, cn-standard-regular se")
    assert said[3].startswith("2 runs diverged (mo-standard-sparse seed 1, mo-standard-regular se")
    assert run_small(tmp_path).diverged == []  # a result is not trained again


@pytest.mark.parametrize("number", ["1", "2"])
def test_the_command_ends_with_a_warning(
    number: str, untrained: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    line = f"reproduce dst --cells cn-der-* --steps 8 --seeds 2 --out {tmp_path}"

    def spawn(arguments: Any, processes: int) -> None:
        assert main([*arguments, "--processes", "1"]) == 0
        capsys.readouterr()

    monkeypatch.setattr(processes, "spawn_processes", spawn)
    assert main([*line.split(), "--processes", number]) == 0
    assert capsys.readouterr().err == (
        "windvane: 2 runs diverged (cn-der-sparse seed 1, cn-der-regular seed 1): a loss or "
        "gradient was not finite, and learning stopped there; they are stored as diverged, and "
        "reports say so\n"
    )
    assert main([*line.split(), "--processes", number]) == 0
    assert capsys.readouterr().err == ""


def test_runs_with_a_finite_loss_are_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """One run has a loss of a thousand times its returns."""
    rows = {"step": np.asarray([4, 8]), "regret": np.ones(2), "utility": np.asarray([0.1, 0.2])}
    loss = np.asarray([0.01, 200.0])

    def run(job: Job, store: Store, console: Any = None) -> None:
        for run in job.config.runs:
            lost = loss if run.seed_numbers == (1,) else loss[:1].repeat(2)
            store.write(run, rows | {"loss": lost, "return_0": rows["utility"]}, False, {})

    monkeypatch.setattr(reproduce, "run_job", run)
    line = f"reproduce dst --cells cn-der-sparse --steps 8 --seeds 2 --out {tmp_path}"
    assert main([*line.split(), "--processes", "1"]) == 0
    said = capsys.readouterr()
    sentence = (
        "1 run diverged with a finite loss (cn-der-sparse seed 1): it was above 10 times what "
        "their returns allow; they went on learning, and reports mark them\n"
    )
    assert said.err == f"windvane: {sentence}"
    assert "1 run diverged with a finite loss" in said.out
    assert main([*line.split(), "--processes", "1"]) == 0
    assert capsys.readouterr().err == ""


def test_tasks_of_a_cluster_tell_it_too(tmp_path: Path) -> None:
    class Ray:
        @staticmethod
        def get(task: Any) -> Any:
            return task

    (job, _) = make_jobs(GRID.runs(2, **SETTINGS))
    node, store, result = Store(tmp_path / "node"), Store(tmp_path / "out"), ReproduceResult()
    store_runs(node, job.config.runs)
    files = {str(path.relative_to(node.folder)): path.read_bytes() for path in node.files()}
    cluster._collect(Ray, files, job, store, result)
    assert result.diverged == ["cn-standard-sparse seed 1", "cn-standard-regular seed 1"]


def test_a_run_that_cannot_be_read_is_not_said_to_have_diverged(tmp_path: Path) -> None:
    store, run = Store(tmp_path), GRID.runs(2, **SETTINGS)[1]
    assert not store.diverged(run)
    store_runs(store, (run,))
    assert store.diverged(run)
    path = store.path(run)
    data = path.read_bytes()
    for place in (60, len(data) - 20):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert not store.diverged(run)
