"""A disk that is full, and folders that cannot be read: one sentence, and others are trained."""

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.experiments.small_grid import GRID, SETTINGS, content, run_small
from windvane import files
from windvane.errors import InputError
from windvane.experiments.runs import cluster, reproduce
from windvane.experiments.runs import jobs as module
from windvane.experiments.runs.completed import missing, summaries_in
from windvane.experiments.runs.jobs import ELAPSED, ERROR, make_jobs, run_job
from windvane.experiments.runs.reproduce import ReproduceResult
from windvane.experiments.runs.store import Store
from windvane.runs.stopping import TrainingStopped


def refuse(number: int, path: Path) -> NoReturn:
    raise OSError(number, os.strerror(number), str(path))


@pytest.fixture
def trained(whole: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Trainings take no time: they have the runs of the whole store. The jobs that were trained."""
    done = []

    def run(job: Any, store: Store, console: Any = None) -> None:
        done.append(str(job))
        for run in job.config.runs:
            relative = Store(whole).path(run).relative_to(whole)
            store.put(str(relative), (whole / relative).read_bytes())

    monkeypatch.setattr(reproduce, "run_job", run)
    return done


def test_an_error_that_cannot_be_written_down_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: list[str]
) -> None:
    real, run = reproduce.atomic_write, reproduce.run_job

    def write(path: Path, how: Any) -> None:
        if path.suffix == ERROR:
            refuse(errno.ENOSPC, path)
        real(path, how)

    def fail(job: Any, *rest: Any) -> None:
        if job.config.agent == "cn":
            raise RuntimeError("no memory is left")
        run(job, *rest)

    monkeypatch.setattr(reproduce, "atomic_write", write)
    monkeypatch.setattr(reproduce, "run_job", fail)
    result = run_small(tmp_path)
    assert result.failures == {"cn, standard: sparse and regular, seeds 0, 1": "no memory is left"}
    assert result.trained == 4


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_store_that_cannot_be_written_fails_one_job(
    what: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: list[str]
) -> None:
    number = errno.EACCES if what == "folder" else errno.ENOSPC
    with monkeypatch.context() as patch:
        if what == "folder":
            real = Path.mkdir

            def mkdir(path: Path, *rest: Any, **named: Any) -> None:
                if path.name.startswith("cn-"):
                    refuse(number, path)
                real(path, *rest, **named)

            patch.setattr(Path, "mkdir", mkdir)
        else:
            move = files.move

            def full(temporary: Path, path: Path) -> None:
                if path.parent.name.startswith("cn-"):
                    refuse(number, path)
                move(temporary, path)

            patch.setattr(files, "move", full)
        result = run_small(tmp_path)
    assert result.trained == 4
    (why,) = result.failures.values()
    assert why.startswith(f"cannot write {tmp_path / 'runs' / 'dst' / 'cn-'}")
    assert f": {os.strerror(number)}; what was written before is untouched; see " in why
    assert why.endswith(ERROR)
    assert "\n" not in why
    assert run_small(tmp_path).trained == 4
    assert content(tmp_path) == content(whole)


def test_ctrl_c_on_a_full_disk_still_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.atomic_write

    def write(path: Path, how: Any) -> None:
        if path.suffix == ELAPSED:
            raise InputError("cannot write: No space left on device")
        real(path, how)

    def stopped(*given: Any, **named: Any) -> None:
        raise TrainingStopped("stopped")

    monkeypatch.setattr(module, "atomic_write", write)
    monkeypatch.setattr(module, "train", stopped)
    with pytest.raises(TrainingStopped):
        run_small(tmp_path)


def test_a_task_whose_files_cannot_be_stored_is_listed(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ray:
        @staticmethod
        def get(task: Any) -> Any:
            return task

    (job, _) = make_jobs(GRID.runs(2, **SETTINGS))
    found = {str(path.relative_to(whole)): path.read_bytes() for path in Store(whole).paths()[:4]}
    result = ReproduceResult()
    (tmp_path / "runs").write_text("")
    cluster._collect(Ray, found, job, Store(tmp_path), result)
    assert result.trained == 0
    assert result.failures[str(job)].startswith(f"cannot write {tmp_path / 'runs'}")


def test_a_store_that_cannot_be_looked_at_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = GRID.runs(2, **SETTINGS)

    def stat(path: Path, **named: Any) -> NoReturn:
        refuse(errno.EACCES, path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", stat)
        with pytest.raises(InputError, match=r"cannot open .*: Permission denied"):
            missing(runs, Store(tmp_path))
    with pytest.raises(InputError, match="File name too long"):
        missing(runs, Store(tmp_path / ("long" * 99)))
    with pytest.raises(InputError, match="File name too long"):
        summaries_in(tmp_path / ("long" * 99))
    with pytest.raises(InputError, match="File name too long"):
        run_job(make_jobs(runs)[0], Store(tmp_path / ("long" * 99)))
