"""TensorBoard's event files, as TensorBoard reads them."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.runs.crashes import stop_after
from tests.runs.lives import live, start
from tests.runs.small import STEPS, results_of, small
from tests.tracking.readers import Values, read_tensorboard
from windvane import TrainingProgress, TrainingStopped, read_records, resume, train
from windvane.runs.greedy import read_evaluations
from windvane.runs.result import Result
from windvane.tracking.points import Curves
from windvane.training.config import TrainConfig

pytest.importorskip("tensorboard", reason="it needs the extra windvane[tensorboard]")
TRACK = "tensorboard"


def expected(folder: Path) -> Values:
    """The curves that the records of a finished training are."""
    config = TrainConfig.load(folder / "config.json")
    greedy = folder / "evaluations.parquet"
    evaluations = read_evaluations(greedy, config) if greedy.exists() else None
    objectives = ("treasure", "time")
    told = TrainingProgress(
        config, folder, objectives, 0, config.steps, read_records(folder), evaluations
    )
    return {
        (config.run_names[point.run], name, point.step): [value]
        for point in Curves(config.steps, objectives).add(told)
        for name, value in point.values.items()
    }


def curves(folder: Path) -> Values:
    """What is read back, without the numbers at the end."""
    found = read_tensorboard(folder)
    return {key: values for key, values in found.items() if not key[1].startswith("final/")}


def test_event_files_hold_the_curves(folder: Path) -> None:
    result = train(small(), out=folder, track=TRACK, progress=False)
    assert curves(folder) == expected(folder)
    found = read_tensorboard(folder)
    assert found["seed-5", "final/regret", STEPS] == [pytest.approx(result.regret.overall[1])]
    assert len(list((folder / "tensorboard").rglob("events.*"))) == 2


def test_settings_and_final_numbers_stand_on_the_page_of_hyperparameters(folder: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    train(small(steps=80), out=folder, track=TRACK, progress=False)
    events = EventAccumulator(str(folder / "tensorboard" / "seed-3"))
    events.Reload()
    content = events.PluginTagToContent("hparams")
    begun = metadata.parse_session_start_info_plugin_data(content[metadata.SESSION_START_INFO_TAG])
    assert begun.hparams["env"].string_value == "dst"
    assert begun.hparams["batch_size"].number_value == 8
    assert begun.hparams["oracle"].bool_value is True
    ended = metadata.parse_session_end_info_plugin_data(content[metadata.SESSION_END_INFO_TAG])
    assert ended.status == 1, "success"


def test_resuming_replaces_what_is_trained_again(
    finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill: there is a checkpoint at step 240, and points up to 400."""
    with monkeypatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, track=TRACK, progress=False)
    shutil.copytree(folder, folder.with_name("earlier"))
    with monkeypatch.context() as patch:
        stop_after(patch, [400])
        with pytest.raises(TrainingStopped):
            resume(folder, progress=False)
    for name in ("checkpoints", "records"):
        shutil.rmtree(folder / name)
        shutil.copytree(folder.with_name("earlier") / name, folder / name)
    assert {step for *_, step in curves(folder)} == {200, 400}
    resume(folder, progress=False)
    assert curves(folder) == expected(folder)


def test_a_folder_that_becomes_unwritable_halfway(finished: Result, folder: Path) -> None:
    def spoil(progress: TrainingProgress) -> None:
        if progress.step == 320:
            shutil.rmtree(folder / "tensorboard" / "seed-3")
            (folder / "tensorboard" / "seed-3").write_text("in the way")

    with pytest.warns(UserWarning, match="tensorboard is off .* goes on: .*Not a directory"):
        train(small(), out=folder, track=TRACK, progress=False, callbacks=spoil)
    assert finished.folder is not None
    shutil.rmtree(folder / "tensorboard")
    (folder / "tracking.json").unlink()
    assert results_of(folder) == results_of(finished.folder)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("how", ["read-only", "full"])
def test_a_disk_of_the_tracker_that_fails(
    how: str, finished: Result, folder: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk may be mounted here")

    def spoil(progress: TrainingProgress) -> None:
        if progress.step == 320 and how == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

    if how == "full":  # from the beginning: a few points fit into the last block of a file
        free = os.statvfs(disk)
        (disk / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize))
    folder.mkdir()
    (folder / "tensorboard").symlink_to(disk)
    try:
        with pytest.warns(UserWarning, match=r"tensorboard is off .* (Read-only|No space left)"):
            train(small(evaluate_every=80), out=folder, track=TRACK, progress=False,
                  callbacks=spoil)  # fmt: skip
        assert (folder / "summary.json").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


PROGRAM = """
import sys
from pathlib import Path
from windvane import TrainConfig, resume, train

for folder in map(Path, sys.argv[2:]):
    config = TrainConfig.preset(
        "quick-dst", agent="mo", replay="standard", steps=int(sys.argv[1]), chunk=20,
        learning_starts=20, width=8, depth=1, capacity=200, batch_size=8, seeds=2,
        schedule_args={"every": 100}, checkpoint_seconds=0.2,
    )
    if (folder / "config.json").exists():
        resume(folder, progress=False)
    else:
        train(config, out=folder, track="tensorboard", progress=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("renames", [False, True])
def test_killed_and_resumed_it_has_every_point_once(renames: bool, tmp_path: Path) -> None:
    lives, cache, draw = 5, tmp_path / "cache", random.Random(int(renames))
    folder, steps = tmp_path / "run", 8_000
    for _ in range(lives):
        code = live(PROGRAM, cache, folder, steps, folder, renames=renames, draw=draw)
        assert code == -9, "it must be killed before it is finished"
    assert start(PROGRAM, cache, steps, folder).wait() == 0
    assert curves(folder) == expected(folder)
    assert any(key[1].startswith("final/") for key in read_tensorboard(folder))
