"""Nothing is lost, and nothing of another run or of another configuration is adopted."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs.crashes import stop_after
from tests.runs.small import files_of, results_of, same_records, small
from tests.runs.test_runner import same_outcome
from windvane import read_records, resume, train
from windvane.errors import InputError
from windvane.runs import checkpoint, runner
from windvane.runs import folder as run_folder
from windvane.runs.folder import create_run_folder, load_optimal, load_owner
from windvane.runs.result import Result, load_policies
from windvane.runs.stopping import TrainingStopped

Change = Callable[[Path], Any]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was stopped at step 240: three parts, two checkpoints."""
    folder = tmp_path_factory.mktemp("trust") / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, progress=False)
    return folder


@pytest.fixture
def stopped(interrupted: Path, tmp_path: Path) -> Path:
    """One of one's own."""
    return Path(shutil.copytree(interrupted, tmp_path / "stopped"))


@pytest.fixture
def copy(finished: Result, tmp_path: Path) -> Path:
    """A finished training of one's own."""
    assert finished.folder is not None
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes, indent=2) + "\n")


@pytest.mark.parametrize("name", ["records", "checkpoints"])
def test_nothing_behind_a_link_is_removed(name: str, copy: Path, stopped: Path) -> None:
    elsewhere = stopped / name
    before = files_of(elsewhere)
    (copy / name).symlink_to(elsewhere)
    resume(copy, progress=False)
    assert files_of(elsewhere) == before


def test_a_stray_file_is_left_alone(stopped: Path, finished: Result) -> None:
    strays = [
        stopped / "records" / "notes.txt",
        stopped / "records" / "steps-1-2.parquet",
        stopped / "checkpoints" / "step-x.npz",
    ]
    for path in strays:
        path.write_text("mine")
    (stopped / "records" / "steps-000000000960-000000001040.parquet").mkdir()
    assert same_outcome(resume(stopped, progress=False), finished)
    assert [path.read_text() for path in strays] == ["mine"] * 3


@pytest.mark.parametrize("kept", ["summary.json", "episodes.parquet", "records", "policies"])
def test_what_an_earlier_run_left_is_not_adopted(kept: str, copy: Path) -> None:
    if kept == "records":
        (copy / "records").mkdir()
        shutil.copy(copy / "episodes.parquet", copy / "records" / "steps-0-480.parquet")
    for path in list(copy.iterdir()):
        if path.name != kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = files_of(copy)
    with pytest.raises(InputError, match=rf"holds {kept}, which may be of an earlier training run"):
        train(small(), out=copy, progress=False)
    assert files_of(copy) == before


def test_an_empty_folder_and_files_of_others_are_no_run(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "notes.txt").touch()
    create_run_folder(tmp_path, small().resolved(), None)


@pytest.mark.parametrize(
    "changes",
    [
        {"gamma": 0.9}, {"learning_rate": 0.1}, {"seeds": [3, 6]}, {"schedule": "regular"},
        {"reward_scale": 1.0}, {"width": 9}, {"agent": "mo"}, {"steps": 960}, {"chunk": 40},
        {"env_args": {"map": "concave"}}, {"epsilon_end": 0.05},
    ],
)  # fmt: skip
def test_an_edited_configuration_is_refused(changes: dict[str, Any], stopped: Path) -> None:
    config = stopped / "config.json"
    edit(config, **changes)
    before = files_of(stopped)
    (name,) = changes
    with pytest.raises(InputError, match=rf"config\.json of this run has been changed .*\({name} "):
        resume(stopped, progress=False)
    assert files_of(stopped) == before


def test_put_back_it_resumes(stopped: Path, finished: Result) -> None:
    config = stopped / "config.json"
    good = config.read_text()
    edit(config, gamma=0.9)
    with pytest.raises(InputError, match=r"gamma is 0\.95 there and 0\.9 here"):
        resume(stopped, progress=False)
    config.write_text(good)
    # How often checkpoints are written may be changed.
    edit(config, checkpoint_seconds=60.0)
    assert same_outcome(resume(stopped, progress=False), finished)


def test_a_checkpoint_of_another_run_is_refused(stopped: Path, tmp_path: Path) -> None:
    other = create_run_folder(tmp_path / "other", small().resolved(), None)
    shutil.copytree(stopped / "checkpoints", other / "checkpoints")
    before = files_of(other)
    with pytest.raises(InputError, match=r"is of another training run than the config\.json"):
        resume(other, progress=False)
    assert files_of(other) == before


@pytest.mark.parametrize("run_id", [3, "", "x" * 32, "0" * 31])
def test_an_id_that_is_none(run_id: Any, stopped: Path) -> None:
    edit(stopped / "config.json", run_id=run_id)
    with pytest.raises(InputError, match="has no id of a run: run_id is"):
        load_owner(stopped)


def test_a_checkpoint_that_may_not_be_read_is_not_damaged(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def denied(self: Path, *rest: Any, **named: Any) -> Any:
        if self.suffix == ".npz":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *rest, **named)

    before = files_of(stopped)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", denied)
        with pytest.raises(InputError, match=r"cannot read .*\.npz: Permission denied"):
            resume(stopped, progress=False)
    assert files_of(stopped) == before


def part(folder: Path, number: int) -> Path:
    return sorted((folder / "records").glob("*.parquet"))[number]


def cut(folder: Path) -> None:
    path = part(folder, 1)
    path.write_bytes(path.read_bytes()[:-200])


def swap(folder: Path) -> None:
    """Sound records of the same run, of other steps."""
    part(folder, 1).write_bytes(part(folder, 2).read_bytes())


def flip(folder: Path) -> None:
    data = bytearray(part(folder, 1).read_bytes())
    data[len(data) // 2] ^= 4
    part(folder, 1).write_bytes(data)


@pytest.mark.parametrize("change", [lambda folder: part(folder, 1).unlink(), cut, swap, flip])
def test_lost_records_are_said_to_be_gone(change: Change, stopped: Path, finished: Result) -> None:
    change(stopped)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = resume(stopped, progress=False)
    sentences = [str(one.message) for one in said]
    assert any("the records of steps 81 to 160 of the training in" in one for one in sentences)
    kept = (finished.records["step"] <= 80) | (finished.records["step"] > 160)
    rest = {name: column[kept] for name, column in finished.records.items()}
    assert same_records(result.records, rest)
    assert result.gone == ((80, 160),)
    assert result.sentences == ["the records of steps 81 to 160 are gone"]
    again = resume(stopped, progress=False)
    assert again.gone == ((80, 160),)
    assert same_records(again.records, rest)
    aside = list((stopped / "records").glob("*.aside1")) if (stopped / "records").exists() else []
    assert len(aside) == (len(sentences) == 2)


def test_all_files_of_a_finished_run_are_its_own(copy: Path) -> None:
    names = [name for name in files_of(copy) if name != "summary.json"]
    assert len(names) == 5
    for name in names:
        path = copy / name
        good = path.read_bytes()
        for place in (len(good) // 3, len(good) - 5):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            with pytest.raises(InputError):
                resume(copy, progress=False)
        path.unlink()
        with pytest.raises(InputError):
            resume(copy, progress=False)
        path.write_bytes(good)
    resume(copy, progress=False)


def test_a_changed_file_is_named(copy: Path, tmp_path: Path) -> None:
    """Also where only that file is read, and where what it holds could be."""
    edit(copy / "config.json", gamma=0.9)
    with pytest.raises(InputError, match=r"config\.json has been changed or damaged since"):
        load_policies(copy)
    edit(copy / "config.json", gamma=0.95)
    policies = copy / "policies"
    (policies / "seed-3.safetensors").write_bytes((policies / "seed-5.safetensors").read_bytes())
    with pytest.raises(InputError, match=r"seed-3\.safetensors has been changed or damaged"):
        load_policies(copy)
    shutil.copy(copy / "replay-content.parquet", copy / "episodes.parquet")
    with pytest.raises(InputError, match=r"episodes\.parquet has been changed or damaged"):
        read_records(copy)


def test_no_sum_leads_out_of_the_folder(copy: Path) -> None:
    (copy.parent / "secret").write_text("1")
    edit(copy / "summary.json", sums={"../secret": "0"})
    with pytest.raises(InputError, match=r"lacks '\.\./secret', which its training has written"):
        resume(copy, progress=False)


def test_two_trainings_that_begin_at_once(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has looked for a run before the first claimed the folder."""
    before = files_of(stopped)
    monkeypatch.setattr(run_folder, "is_run_folder", lambda folder: False)
    monkeypatch.setattr(run_folder, "_OF_A_RUN", ())
    with pytest.raises(InputError, match=r"there is a training run in .* already"):
        create_run_folder(stopped, small().resolved(), None)
    assert files_of(stopped) == before


def test_every_checkpoint_says_whose_it_is(stopped: Path, finished: Result) -> None:
    owner = load_owner(stopped)
    assert owner.run_id is not None
    assert finished.folder is not None
    assert load_owner(finished.folder).run_id != owner.run_id
    assert resume(stopped, progress=False).config == owner.config
    assert results_of(stopped) == results_of(finished.folder)
    summary = json.loads((stopped / "summary.json").read_text())
    assert summary["run_id"] == owner.run_id
    assert not checkpoint.saved(stopped)


def test_what_cannot_be_read_now_is_not_damaged(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passing fault of the machine must not cost any records."""
    before = files_of(stopped)
    real = Path.open

    def failing(self: Path, *rest: Any, **named: Any) -> Any:
        if self.suffix == ".parquet":
            raise OSError(5, "Input/output error", str(self))
        return real(self, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", failing)
        with pytest.raises(InputError, match="Input/output error"):
            resume(stopped, progress=False)
    assert files_of(stopped) == before


def test_a_run_that_was_finished_meanwhile_is_read(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process finished it between the first look and the lock."""
    before, looks = files_of(copy), [False]
    monkeypatch.setattr(runner, "is_finished", lambda folder: looks.pop() if looks else True)
    resume(copy, progress=False)
    assert files_of(copy) == before


def test_checkpoints_behind_a_link_are_refused(stopped: Path, tmp_path: Path) -> None:
    (stopped / "checkpoints").rename(tmp_path / "elsewhere")
    (stopped / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="must be a folder of its own, not a link to another"):
        resume(stopped, progress=False)
    assert len(list((tmp_path / "elsewhere").iterdir())) == 2


def test_values_that_an_earlier_run_was_given_are_not_adopted(tmp_path: Path) -> None:
    (tmp_path / "optimal-values.json").write_text("[[1, 2]]")
    with pytest.raises(InputError, match=r"holds optimal-values\.json, which may be of an earlier"):
        create_run_folder(tmp_path, small().resolved(), None)
    create_run_folder(tmp_path, small().resolved(), [[3.0, 4.0]])
    assert load_optimal(tmp_path) == [[3.0, 4.0]]
