"""All trackers: what they are told, resuming, and that no failure of theirs reaches a training."""

import io
import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.runs.crashes import stop_after
from tests.runs.small import STEPS, results_of, small
from tests.tracking import fakes
from windvane import TrainingProgress, TrainingStopped, resume, train
from windvane.cli import main
from windvane.errors import InputError
from windvane.runs import runner
from windvane.runs.result import Result
from windvane.tracking import TRACKERS, check_trackers, thread
from windvane.tracking import tracking as module
from windvane.tracking.points import Curves
from windvane.tracking.tracking import flat_settings

LISTENING = "tests.tracking.fakes:Listening"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    fakes.SEEN.clear()
    fakes.RELEASE.clear()
    yield
    fakes.RELEASE.set()
    for one in threading.enumerate():
        if one.name.startswith("windvane-"):
            one.join(10)


def expected(result: Result) -> list[Any]:
    """The points of a training, from its records."""
    curves = Curves(STEPS, ("treasure", "time"))
    found = TrainingProgress(
        result.config, None, ("treasure", "time"), 0, STEPS, result.records, result.evaluations
    )
    return curves.add(found)


def test_a_tracker_is_told_all_and_changes_nothing(finished: Result, folder: Path) -> None:
    console = Console(record=True, width=200, file=io.StringIO())
    result = train(small(), out=folder, track=LISTENING, console=console)
    assert finished.folder is not None
    found = results_of(folder)
    del found["tracking.json"]
    assert found == results_of(finished.folder)
    (training,) = fakes.of_kind("begin")
    assert (training.folder, training.group, training.steps) == (folder, "run", STEPS)
    assert (training.resumed, training.written) == (0, 0)
    assert [run.name for run in training.runs] == ["seed-3", "seed-5"]
    assert [run.settings["seeds"] for run in training.runs] == ["[3]", "[5]"]
    assert len({run.id for run in training.runs}) == 2
    assert fakes.points() == expected(result)
    ((first, second),) = fakes.of_kind("finish")
    assert first["final/regret"] == np.float32(result.regret.overall[0])
    assert second["final/utility_last_quarter"] == np.float32(result.utility.last_quarter[1])
    assert fakes.of_kind("close") == [True]
    assert "tracked: a list" in console.export_text()


def test_resuming_continues_without_a_point_twice_or_missing(
    finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, track=[LISTENING], progress=False)
    assert {point.step for point in fakes.points()} == {200}
    assert fakes.of_kind("close") == [False]
    # What only the folder names is not imported, and nothing may be tracked.
    with pytest.raises(
        InputError, match=r"--track tests.tracking.fakes:Listening\) or add --trust"
    ):
        resume(folder, progress=False)
    with monkeypatch.context() as patch:
        stop_after(patch, [320])
        with pytest.raises(TrainingStopped):
            resume(folder, track=(), progress=False)
    assert {point.step for point in fakes.points()} == {200}
    resume(folder, trust=True, progress=False)
    assert fakes.points() == expected(finished)
    assert [(t.resumed, t.written) for t in fakes.of_kind("begin")] == [(0, 0), (320, 200)]
    ids = [[run.id for run in training.runs] for training in fakes.of_kind("begin")]
    assert ids[0] == ids[1]


def test_a_tracker_that_is_new_gets_what_was_before(
    finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [400])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, progress=False)
    resume(folder, track=LISTENING, progress=False)
    assert fakes.points() == expected(finished)


def test_files_of_trackers_are_neither_needed_nor_in_the_way(
    finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    (folder / "tensorboard").mkdir()
    (folder / "tracking.json").write_text('{"run_id": "another", "written": {"mlflow": 3}}')
    with monkeypatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, track=LISTENING, progress=False)
    known = json.loads((folder / "tracking.json").read_text())
    assert known["written"] == {LISTENING: 200}
    (folder / "tracking.json").unlink()
    told = len(fakes.SEEN)
    resume(folder, progress=False)
    assert len(fakes.SEEN) == told
    assert finished.folder is not None
    assert results_of(folder) == results_of(finished.folder)


@pytest.mark.parametrize(
    "text",
    ["{", "3", '{"written": 3}', '{"run_id": ID, "written": {"x": 1}}',
     '{"run_id": ID, "written": {"wandb": -1}}'],
)  # fmt: skip
def test_what_is_damaged_is_one_sentence_and_harms_nothing(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not folder.exists():
        with monkeypatch.context() as patch:
            stop_after(patch, [80])
            with pytest.raises(TrainingStopped):
                train(small(), out=folder, progress=False)
    run_id = json.loads((folder / "config.json").read_text())["run_id"]
    (folder / "tracking.json").write_text(text.replace("ID", json.dumps(run_id)))
    with pytest.warns(UserWarning, match="unless it is named again: .*tracking.json") as said:
        stop_and_resume(folder, monkeypatch)
    assert "\n" not in str(said[0].message)


def stop_and_resume(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [160])
        with pytest.raises(TrainingStopped):
            resume(folder, progress=False)


FAILURES = {
    "NeverBegun": r"\[Errno 28\] No space left on device",
    "FailsLater": "the server says no",
    "Exits": "3",
    "FailsInTheEnd": "no more room",
    "not_a_tracker": "'int' object has no attribute",
    "Hangs": "it has not answered for 2 s",
}


@pytest.mark.parametrize("name", FAILURES)
def test_one_that_fails_is_off_and_the_others_go_on(
    name: str, finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "Hangs":
        monkeypatch.setattr(thread, "PATIENCE", 2)
    failing = f"tests.tracking.fakes:{name}"
    with pytest.warns(UserWarning, match=f"{failing} is off .* goes on: {FAILURES[name]}") as said:
        train(small(), out=folder, track=(failing, LISTENING), progress=False)
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    found = results_of(folder)
    del found["tracking.json"]
    assert finished.folder is not None
    assert found == results_of(finished.folder)
    own = [what for what in fakes.SEEN if what in [("point", p) for p in expected(finished)]]
    assert len(own) >= len(expected(finished)), "the other was told everything"
    assert ("close", True) in fakes.SEEN


def test_it_goes_on_where_warnings_are_errors(
    finished: Result, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(small(), out=folder, track="tests.tracking.fakes:NeverBegun", progress=False)
    assert "NeverBegun is off for the rest of this training" in capsys.readouterr().err
    assert (folder / "summary.json").exists()


def test_imports_that_fail_halfway_are_off(
    finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> Any:
        raise ImportError("cannot import name 'x' from partially initialised module")

    monkeypatch.setattr(module, "_factory", broken)
    with pytest.warns(UserWarning, match="is off .* cannot import name 'x'"):
        train(small(), out=folder, track=LISTENING, progress=False)
    assert (folder / "summary.json").exists()


def test_an_interruption_does_not_wait_for_what_hangs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LAST_PATIENCE", 0.2)
    stop_after(monkeypatch, [240])
    with (
        pytest.warns(UserWarning, match="it was not done when the training was interrupted"),
        pytest.raises(TrainingStopped, match="stopped at step 240"),
    ):
        train(small(), out=folder, track="tests.tracking.fakes:Hangs", progress=False)


def test_one_that_is_slow_is_waited_for(finished: Result, folder: Path) -> None:
    train(small(), out=folder, track="tests.tracking.fakes:Slow", progress=False)
    assert fakes.points() == expected(finished)


@pytest.mark.parametrize(
    ("track", "message"),
    [
        ("tensorbored", "unknown tracker 'tensorbored'; choose one of: tensorboard, mlflow, wandb"),
        (("wandb", "wandb"), "trackers must differ from one another"),
        (3, "track must be names"),
        ((3,), "unknown tracker 3"),
        ("custom:the-one", "must be given by name"),
        ("tests.tracking.nowhere:Mine", "cannot import 'tests.tracking.nowhere:Mine'"),
        ("tests.tracking.fakes:OTHER", "must be something to call, not 3"),
    ],
)
def test_what_is_no_tracker_is_refused_first(track: Any, message: str, folder: Path) -> None:
    with pytest.raises(InputError) as complaint:
        train(small(), out=folder, track=track, progress=False)
    assert message in str(complaint.value)
    assert not folder.exists()


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_extra_is_one_sentence_and_code_2(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("windvane.tracking.find_spec", lambda package: None)
    line = f"train --preset quick-dst --track {name} --out {folder}"
    assert main(line.split()) == 2
    assert capsys.readouterr().err == (
        f"windvane: the tracker {name} needs packages that are not installed: "
        f"pip install 'windvane[{name}]'\n"
    )
    assert not folder.exists()


def test_a_folder_of_a_package_s_name_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strange_tracker").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    entry = TRACKERS["wandb"]
    monkeypatch.setitem(entry.about, "packages", ("strange_tracker",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not installed"):
        check_trackers("wandb")


def test_a_missing_extra_on_resuming_says_how_to_go_on_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [80])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, progress=False)
    run_id = json.loads((folder / "config.json").read_text())["run_id"]
    state = {"run_id": run_id, "written": {"wandb": 0}}
    (folder / "tracking.json").write_text(json.dumps(state))
    monkeypatch.setattr("windvane.tracking.find_spec", lambda package: None)
    with pytest.raises(InputError, match=rf"or track nothing: windvane resume {folder} --track\)"):
        resume(folder, progress=False)


def test_trackers_need_a_folder() -> None:
    with pytest.raises(InputError, match="a tracker needs a run folder"):
        train(small(), track=LISTENING, progress=False)


def test_settings_without_levels() -> None:
    config = small(env_args={"map": "concave"}, seeds=(3,))
    flat = flat_settings(config)
    assert flat["env_args.map"] == "concave"
    assert flat["steps"] == STEPS
    assert flat["oracle"] is True
    assert flat["evaluate_every"] == "null"
    assert all(isinstance(value, str | int | float) for value in flat.values())
    assert all(math.isfinite(value) for value in flat.values() if not isinstance(value, str))


def test_the_commands_take_trackers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def stop(*_: Any, track: Any, **__: Any) -> None:
        seen.append(track)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train", stop)
    monkeypatch.setattr(runner, "resume", stop)
    for line in (
        "train --track tensorboard mlflow --steps 400",
        "train",
        f"resume {folder} --track wandb",
        f"resume {folder} --track",
        f"resume {folder}",
    ):
        assert main(line.split()) == 130
    assert seen == [("tensorboard", "mlflow"), (), ("wandb",), (), None]
