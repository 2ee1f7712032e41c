"""Files under `work/` that were edited, or are links: no job is trained as another one."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.small_grid import GRID, SETTINGS, content, run_small
from tests.runs.crashes import stop_after
from windvane.errors import InputError
from windvane.experiments.runs import jobs as module
from windvane.experiments.runs.jobs import ELAPSED, Job, make_jobs, run_job, unfinished_jobs
from windvane.experiments.runs.store import Store
from windvane.runs.folder import CONFIG
from windvane.runs.stopping import TrainingStopped


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Job, Path]:
    """A job that was interrupted right after its folder was made."""
    job = make_jobs(GRID.runs(2, **SETTINGS))[0]
    declared = job.path(Store(tmp_path))
    declared.parent.mkdir()
    declared.write_text(json.dumps(job.config.to_json()))
    folder = declared.with_suffix("")
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps(job.config.resolved().to_json()))
    return job, folder


def no_training(*given: Any, **named: Any) -> None:
    raise AssertionError("nothing is to be trained")


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train", "resume"):
        monkeypatch.setattr(module, name, no_training)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"gamma": 0.5}, "gamma 0.5, and its job 0.95"),
        ({"agent": "mo"}, "agent 'mo', and its job 'cn'"),
        ({"seeds": [0, 7]}, "seeds (0, 7), and its job (0, 1)"),
        ({"steps": 960, "gamma": 0.5}, "steps 960, and its job 480"),
        ({"agent_args": {"kappa": 1}}, "agent_args {'kappa': 1}, and its job {}"),
    ],
)
def test_a_training_folder_with_other_settings_is_refused(
    changes: dict[str, Any], fault: str, begun: tuple[Job, Path], still: None
) -> None:
    job, folder = begun
    edit(folder / CONFIG, **changes)
    with pytest.raises(InputError) as error:
        run_job(job, Store(folder.parents[1]))
    assert str(error.value) == (
        f"{folder / CONFIG} has {fault}: put that back, or remove the folder to train the job anew"
    )


def test_the_precision_of_the_machine_that_began_is_kept(
    begun: tuple[Job, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, folder = begun
    edit(folder / CONFIG, precision="bfloat16")
    resumed = []

    def resume(folder: Path, **named: Any) -> Any:
        resumed.append(folder)
        raise TrainingStopped

    monkeypatch.setattr(module, "resume", resume)
    with pytest.raises(TrainingStopped):
        run_job(job, Store(folder.parents[1]))
    assert resumed == [folder]


def test_the_file_of_a_job_that_was_edited_is_refused(begun: tuple[Job, Path], still: None) -> None:
    job, folder = begun
    store = Store(folder.parents[1])
    edit(job.path(store), gamma=0.5)
    with pytest.raises(InputError) as error:
        run_job(job, store)
    assert str(error.value) == (
        f"{job.path(store)} has gamma 0.5, and its job 0.95: put that back, or remove the file"
    )
    job.path(store).write_text("{")
    with pytest.raises(InputError, match=f"{job.name}.json is not valid JSON"):
        run_job(job, store)


def test_a_file_with_the_settings_of_another_job_is_left_alone(
    begun: tuple[Job, Path], whole: Path
) -> None:
    """It asks for runs that are wanted, in the place of another job."""
    first, folder = begun
    out = folder.parents[1]
    second = make_jobs(GRID.runs(2, **SETTINGS))[1]
    path = first.path(Store(out)).rename(folder.with_name("other.json"))
    folder.rename(folder.with_name("other"))
    assert unfinished_jobs(Store(out), GRID.runs(2, **SETTINGS)) == []
    path.write_text(json.dumps(second.config.to_json()))
    result = run_small(out)
    assert (result.trained, result.failures) == (8, {})
    (said,) = result.ignored
    assert said == (
        f"{path} has the settings of the job {second.name}: it was edited or written by an earlier "
        "version, and may be removed"
    )
    assert content(out) == content(whole)
    assert path.exists()


@pytest.mark.parametrize("which", ["file", "folder"])
def test_links_are_not_followed(which: str, begun: tuple[Job, Path], tmp_path: Path) -> None:
    job, folder = begun
    store, outside = Store(folder.parents[1]), tmp_path / "outside"
    path = folder if which == "folder" else job.path(store)
    path.rename(outside)
    path.symlink_to(outside)
    with pytest.raises(InputError) as error:
        run_job(job, store)
    assert str(error.value) == (
        f"{path} is a link, and what it leads to may be anything: remove it, or put the {which} "
        "itself there"
    )
    assert outside.exists()


def test_what_links_lead_to_is_not_removed(whole: Path, tmp_path: Path) -> None:
    """All runs are stored, and only the files of the job are left, some of them links."""
    job = make_jobs(GRID.runs(2, **SETTINGS))[0]
    out, outside = Store(tmp_path / "out"), tmp_path / "outside"
    for path in Store(whole).paths():
        out.put(str(path.relative_to(whole)), path.read_bytes())
    declared = job.path(out)
    (declared.parent / job.name / "inner").mkdir(parents=True)
    declared.write_text(json.dumps(job.config.to_json()))
    (outside / "kept").mkdir(parents=True)
    (outside / "seconds").write_text("2.0")
    (declared.parent / job.name / "link").symlink_to(outside)
    declared.with_suffix(ELAPSED).symlink_to(outside / "seconds")
    run_job(job, out)
    assert list(declared.parent.iterdir()) == [declared.with_suffix(ELAPSED)]
    assert (outside / "kept").is_dir()
    assert (outside / "seconds").read_text() == "2.0"


@pytest.mark.parametrize("text", ["nan", "inf", "-3", "1e300"])
def test_seconds_that_cannot_be_meant_are_none(text: str, tmp_path: Path) -> None:
    """A run that was stored with them could not be read again."""
    (tmp_path / "a.seconds").write_text(text)
    assert module._read_seconds(tmp_path / "a.seconds") == 0


def test_a_job_that_has_lost_records_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, out = make_jobs(GRID.runs(2, **SETTINGS))[0], Store(tmp_path / "out")
    with monkeypatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            run_job(job, out)
    folder = job.path(out).with_suffix("")
    next(iter(sorted((folder / "records").iterdir()))).unlink()
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(
                InputError, match=rf"of this job are gone: remove {folder} to train"
            ):
                run_job(job, out)
        assert out.paths() == []
    shutil.rmtree(folder)
    run_job(job, out)
    assert len(out.paths()) == len(job.config.runs)
