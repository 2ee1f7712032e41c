"""What a run in progress shows: true, gone in the end, and never in the way of training."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.runs.crashes import Crash
from tests.runs.small import same_records, small
from windvane import files
from windvane.errors import InputError
from windvane.policy import Policy
from windvane.runs import runner, status
from windvane.runs.records import read_records
from windvane.runs.result import Result
from windvane.runs.status import StatusWriter, is_fresh, read_status
from windvane.runs.stopping import TrainingStopped


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "FIRST", 0.0)
    monkeypatch.setattr(status, "EVERY", 0.0)
    monkeypatch.setattr(status, "SHARE", 0)


def stopped_at(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Train until a status of that step is written, and stop there as after Ctrl-C."""
    real = StatusWriter.update

    def update(self: StatusWriter, at: int, rows: object, session: object) -> None:
        real(self, at, rows, session)  # type: ignore[arg-type]
        if at == step:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StatusWriter, "update", update)
        go = partial(runner.train, small(), out=folder)
        if (folder / "config.json").exists():
            go = partial(runner.resume, folder)
        with pytest.raises(TrainingStopped):
            go(progress=False)


def test_a_run_in_progress_shows_its_curves_and_policies(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_at(folder, monkeypatch, 240)
    found = read_status(folder)
    assert found is not None
    assert found["step"] == 240
    assert found["steps"] == 480
    assert is_fresh(found)
    assert [run["name"] for run in found["runs"]] == ["seed-3", "seed-5"]
    assert sum(found["weights"]) == pytest.approx(1, abs=1e-5)
    assert found["weights_file"] is None
    for name in ("seed-3", "seed-5"):
        assert Policy.load(folder / f"policies/current/{name}.safetensors").step == 240


def test_a_resumed_run_shows_what_came_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_at(folder, monkeypatch, 160)
    known = read_records(folder)
    stopped_at(folder, monkeypatch, 320)
    found = read_status(folder)
    assert found is not None
    first = known["step"][known["run"] == 0]
    assert min(found["runs"][0]["steps"]) <= first.min() + 5
    later = runner.resume(folder, progress=False)
    mine = later.records["run"] == 0
    early = later.records["step"][mine] <= 320
    assert len(found["runs"][0]["steps"]) <= early.sum()
    weights = np.asarray([found["runs"][0]["utility"]])
    assert np.isfinite(weights).all()


def test_nothing_is_left_in_the_end(folder: Path, finished: Result) -> None:
    result = runner.train(small(), out=folder, progress=False)
    assert not (folder / "status.json").exists()
    assert not (folder / "policies/current").exists()
    assert same_records(result.records, finished.records)


def test_training_goes_on_where_nothing_can_be_shown(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise InputError("cannot write: no space left on device")

    monkeypatch.setattr(status, "atomic_write", full)
    result = runner.train(small(), out=folder, progress=False)
    assert same_records(result.records, finished.records)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 9])
def test_a_crash_while_it_is_written_changes_nothing(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real, left = files.move, [number]

    def move(temporary: Path, path: Path) -> None:
        if path.name == "status.json" or path.parent.name == "current":
            left[0] -= 1
            if left[0] == 0:
                raise Crash
        real(temporary, path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "move", move)
        with pytest.raises(Crash):
            runner.train(small(), out=folder, progress=False)
    result = runner.resume(folder, progress=False)
    assert same_records(result.records, finished.records)
    assert not (folder / "status.json").exists()
    assert not (folder / "policies/current").exists()


def test_an_agent_that_has_no_policy_yet_is_not_shown(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("not yet")

    monkeypatch.setattr(status, "trained_policy", fail)
    with pytest.warns(UserWarning, match="does not show how training goes on: not yet"):
        result = runner.train(small(), out=folder, progress=False)
    assert same_records(result.records, finished.records)


def test_a_training_without_a_folder_shows_nothing(finished: Result) -> None:
    result = runner.train(small(), progress=False)
    assert same_records(result.records, finished.records)
