"""Callbacks: what they are told, and that stopping by them loses nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs.crashes import Crash, crash_at_files
from tests.runs.small import STEPS, results_of, same_records, small
from windvane import TrainingProgress, TrainingStopped, read_records, resume, train
from windvane.errors import InputError
from windvane.runs import checkpoint
from windvane.runs.result import Result
from windvane.runs.tables import concatenate


class Seen(list[TrainingProgress]):
    """Keeps what it is called with."""

    def __call__(self, progress: TrainingProgress) -> int:
        self.append(progress)
        return 1  # only True stops

    @property
    def records(self) -> dict[str, np.ndarray]:
        return concatenate([dict(progress.episodes) for progress in self])


def test_every_chunk_is_told_once(finished: Result, folder: Path) -> None:
    seen = Seen()
    result = train(small(evaluate_every=240), out=folder, progress=False, callbacks=[seen])
    assert [(p.start, p.step) for p in seen] == [(at, at + 80) for at in range(0, STEPS, 80)]
    assert same_records(seen.records, result.records)
    assert same_records(seen.records, finished.records)
    assert [None if p.evaluations is None else set(p.evaluations["step"].tolist()) for p in seen] \
        == [None, None, {240}, None, None, {480}]  # fmt: skip
    last = seen[-1]
    assert (last.steps, last.step, last.folder) == (STEPS, STEPS, folder)
    assert last.run_names == ("seed-3", "seed-5")
    assert last.objectives == ("treasure", "time")
    assert not any(p.resumed for p in seen)


def test_nothing_of_it_can_be_changed() -> None:
    def change(progress: Any) -> None:
        with pytest.raises(ValueError, match="read-only"):
            progress.episodes["regret"][:] = 0
        with pytest.raises(TypeError):
            progress.episodes["regret"] = 0
        with pytest.raises(AttributeError):
            progress.step = 0

    train(small(steps=80), progress=False, callbacks=change)


@pytest.mark.parametrize("answer", [True, np.True_])
def test_one_that_returns_true_stops_and_the_rest_is_the_same(
    answer: Any, finished: Result, folder: Path
) -> None:
    def enough(progress: TrainingProgress) -> Any:
        return answer if progress.step >= 160 else None

    config = small(checkpoint_seconds=1e6)
    with pytest.raises(TrainingStopped, match=r"stopped at step 160; resume with: windvane resume"):
        train(config, out=folder, progress=False, callbacks=[enough])
    seen = Seen()
    resumed = resume(folder, progress=False, callbacks=[seen])
    assert (seen[0].resumed, seen[0].start, seen[0].step) == (True, 0, 160)
    assert [p.start for p in seen[1:]] == [160, 240, 320, 400]
    assert same_records(seen.records, finished.records)
    assert same_records(resumed.records, finished.records)


def test_what_one_raises_comes_out_after_a_checkpoint(finished: Result, folder: Path) -> None:
    class OwnError(Exception):
        pass

    def fail(progress: TrainingProgress) -> None:
        if progress.step == 240:
            raise OwnError("no")

    after = Seen()
    with pytest.raises(OwnError, match="no") as raised:
        train(
            small(checkpoint_seconds=1e6), out=folder, progress=False, callbacks=[fail, after]
        )  # fmt: skip
    assert raised.value.__notes__ == [f"stopped at step 240; resume with: windvane resume {folder}"]
    assert after[-1].step == 160, "those after it are not called any more"
    assert checkpoint.saved(folder)[-1].name == "step-000000000240.npz"
    assert same_records(resume(folder, progress=False).records, finished.records)
    assert same_records(read_records(folder), finished.records)


def test_the_last_step_cannot_be_stopped(finished: Result, folder: Path) -> None:
    train(small(), out=folder, progress=False, callbacks=[lambda p: p.step == STEPS])
    assert finished.folder is not None
    assert results_of(folder) == results_of(finished.folder)


def test_without_a_folder_nothing_is_kept() -> None:
    with pytest.raises(TrainingStopped, match="stopped at step 80; nothing was kept"):
        train(small(), progress=False, callbacks=[lambda _: True])


def test_a_crash_is_resumed_with_what_was_recorded(
    finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        left = crash_at_files(patch)
        left[0] = 6
        with pytest.raises(Crash):
            train(small(), out=folder, progress=False)
    seen = Seen()
    resume(folder, progress=False, callbacks=[seen])
    assert seen[0].resumed
    assert same_records(seen.records, finished.records)


def test_a_stop_of_what_was_recorded_stops_at_once(folder: Path) -> None:
    def stop(progress: TrainingProgress) -> bool:
        return progress.step >= 160

    with pytest.raises(TrainingStopped, match="stopped at step 160"):
        train(small(), out=folder, progress=False, callbacks=[stop])
    with pytest.raises(TrainingStopped, match="stopped at step 160"):
        resume(folder, progress=False, callbacks=[stop])


@pytest.mark.parametrize("callbacks", [3, [3], ["print"]])
def test_what_cannot_be_called_is_refused(callbacks: Any, folder: Path) -> None:
    with pytest.raises(InputError, match="callbacks must be functions of the training's progress"):
        train(small(), out=folder, progress=False, callbacks=callbacks)
    assert not folder.exists()
