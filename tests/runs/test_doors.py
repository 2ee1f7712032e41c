"""What a run folder holds is checked before it is used, and nothing but our own is removed."""

import builtins
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import jax.numpy as jnp
import numpy as np
import pytest

from tests.runs.small import files_of, small, without_sums
from windvane.errors import InputError
from windvane.evaluation import check_values, optimal_value_fn
from windvane.policy import Policy
from windvane.runs import checkpoint, records
from windvane.runs.checkpoint import Checkpoint
from windvane.runs.folder import Owner
from windvane.runs.records import RecordWriter, check_episodes, check_finite, read_records
from windvane.runs.result import Result, policy_path
from windvane.runs.runner import resume, train
from windvane.runs.tables import read_table, write_table
from windvane.training.build import build


@pytest.fixture
def copy(finished: Result, tmp_path: Path) -> Path:
    """A finished training of one's own."""
    assert finished.folder is not None
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


def test_leftovers_of_kills_are_swept_and_nothing_else(copy: Path, tmp_path: Path) -> None:
    before = files_of(copy)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    name = f"a.parquet.{uuid4().hex}.writing"
    (elsewhere / name).touch()
    (copy / "checkpoints").symlink_to(elsewhere)
    for folder in (copy, copy / "policies"):
        (folder / name).touch()
        (folder / f"b.json.{uuid4().hex}.new.writing").touch()
    (copy / "mine.writing").write_text("mine")
    resume(copy, progress=False)
    assert files_of(copy) == before | {"mine.writing": b"mine"}
    assert (elsewhere / name).exists()


def test_parts_and_checkpoints_of_others_stay(tmp_path: Path) -> None:
    elsewhere = tmp_path.with_name("elsewhere")
    elsewhere.write_bytes(b"PAR1, and PK")
    for folder, begins, ours in (
        ("records", b"PAR1", "steps-{:012d}-000000000030.parquet"),
        ("checkpoints", b"PK", "step-{:012d}.npz"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ours.format(10)).write_bytes(begins)
        # What has the name of one, but is none.
        (tmp_path / folder / ours.format(11)).write_bytes(b"mine")
        (tmp_path / folder / ours.format(12)).symlink_to(elsewhere)
        (tmp_path / folder / "notes.txt").touch()
        (tmp_path / folder / "steps-1.parquet").mkdir()
    records.remove_parts(tmp_path)
    checkpoint.remove(tmp_path)
    left = sorted(path.name for path in tmp_path.rglob("*") if path.parent != tmp_path)
    assert left == [
        "notes.txt", "notes.txt", "step-000000000011.npz", "step-000000000012.npz",
        "steps-000000000011-000000000030.parquet", "steps-000000000012-000000000030.parquet",
        "steps-1.parquet", "steps-1.parquet",
    ]  # fmt: skip
    assert elsewhere.exists()


def test_records_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "records").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="a folder of its own, not a link"):
        RecordWriter(tmp_path, 0)


def test_a_missing_part_is_noticed(finished: Result, tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path, 0)
    for stop in (160, 320, 480):
        inside = (finished.records["step"] > stop - 160) & (finished.records["step"] <= stop)
        writer.add({name: column[inside] for name, column in finished.records.items()})
        writer.write(stop)
    assert len(read_records(tmp_path)["step"]) == len(finished.records["step"])
    next(iter(sorted((tmp_path / "records").iterdir()))).unlink()
    with pytest.warns(UserWarning, match="the records of steps 1 to 160 of the training in"):
        assert (read_records(tmp_path)["step"] > 160).all()
    with pytest.warns(UserWarning, match="the records of steps 1 to 160 of the training in"):
        assert RecordWriter(tmp_path, 480).gone == ((0, 160),)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("utility", 5.0, "'utility' must be weights times returns"),
        ("regret", 5.0, "'regret' must be the optimal value less the utility"),
        ("regret", np.nan, "NaN in the same rows"),
        ("run", 2, "'run' must be from 0 to 1, not 2"),
        ("seed", 4, "'seed' has others than the training"),
        ("step", 481, "'step' must be from 1 to 480, not 481"),
        ("epsilon", 1.5, "'epsilon' must be of finite numbers from 0 to 1, and one is 1.5"),
        ("length", 0, "'length' must be from 1"),
        ("episode", 10**6, "'episode' must increase"),
    ],
)
def test_records_that_cannot_be_are_refused(
    name: str, value: Any, sentence: str, finished: Result
) -> None:
    column = finished.records[name].copy()
    column[1] = value
    with pytest.raises(InputError, match=sentence):
        check_episodes(finished.records | {name: column}, finished.config)


def test_unknown_optima_of_some_episodes_are_good(finished: Result) -> None:
    table = dict(finished.records)
    for name in ("optimal", "regret"):
        table[name] = table[name].copy()
        table[name][3:] = np.nan
    assert np.isnan(check_episodes(table, finished.config)["regret"][3:]).all()


def test_a_torn_table_is_one_sentence_with_pyarrow_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    write_table(path, {"a": np.arange(1000)})
    path.write_bytes(path.read_bytes()[:60])  # nothing of the checksum, either
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("polars"):
            raise ImportError(name)
        return real(name, *rest, **named)

    for patched in (False, True):
        with monkeypatch.context() as patch:
            if patched:
                patch.setattr(builtins, "__import__", without)
            with pytest.raises(InputError, match=r"a\.parquet is not a table \(Parquet\)"):
                read_table(path)


def test_fewer_records_than_the_summary_says(copy: Path, finished: Result) -> None:
    without_sums(copy)
    half = {name: column[:10] for name, column in finished.records.items()}
    write_table(copy / "episodes.parquet", half)
    with pytest.raises(InputError, match=r"summary\.json is not usable: it is of .* records of 10"):
        resume(copy, progress=False)


def test_a_checkpoint_of_too_many_steps_is_passed_over(tmp_path: Path) -> None:
    state = {"a": jnp.arange(5)}
    owner = Owner(small(), None)
    path = checkpoint.save(tmp_path, Checkpoint(484, state, owner))
    with pytest.warns(UserWarning, match="it is of step 484, and the run has 480"):
        assert checkpoint.load(tmp_path, state, owner) is None
    path = checkpoint.save(tmp_path, Checkpoint(7, state, owner))
    path.rename(path.with_name("step-000000000009.npz"))
    with pytest.warns(UserWarning, match="it is of step 7, not of 9 as its name says"):
        assert checkpoint.load(tmp_path, state) is None


def test_a_policy_with_a_changed_number_is_damaged(copy: Path) -> None:
    path = policy_path(copy, "seed-3")
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # a digit of the last number
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"seed-3\.safetensors is damaged"):
        Policy.load(path)


def test_a_policy_is_not_used_on_another_environment(finished: Result) -> None:
    first = finished.policies[0]
    config = small(env_args={"map": "concave"})
    other = Policy(first.spec, first.agent, first.network, config, 3)
    with pytest.raises(InputError, match="trained on another dst than its configuration"):
        _ = other.world


@pytest.mark.parametrize("name", ["chunk", "learning_starts"])
def test_chunks_that_memory_cannot_hold(name: str) -> None:
    config = small(steps=2**31 - 8, **{name: 2**31 - 8})
    with pytest.raises(InputError, match=rf"{name} must be at most .* GiB"):
        build(config)


def test_optimal_values_from_outside(finished: Result) -> None:
    for values in ([["1", "2"]], [[True, False]], [[1.0], [1.0, 2.0]], [[10**400, 1]], 3):
        with pytest.raises(InputError, match="optimal values must be rows of finite numbers"):
            check_values(values)
    best = optimal_value_fn(finished.policies[0].world, 0.9, 1.0, lambda weights: float("nan"))
    with pytest.raises(InputError, match="must return a finite number, and for the weights"):
        best(np.full((1, 2), 0.5))
    with pytest.raises(InputError, match="must be of 2 objectives, and these are of 3"):
        train(small(), optimal=[[1.0, 2.0, 3.0]], progress=False)


def test_rewards_that_are_not_finite(finished: Result) -> None:
    check_finite(finished.records)
    column = finished.records["return_0"].copy()
    column[4] = np.inf
    with pytest.raises(InputError, match=r"return_0 of the episode that ended at step .* is inf"):
        check_finite(finished.records | {"return_0": column})


def test_a_file_that_may_not_be_read(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def denied(self: Path, *rest: Any, **named: Any) -> Any:
        if self.name == "config.json":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *rest, **named)

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InputError, match=r"cannot read the file .*config\.json: Permission denied"):
        resume(copy, progress=False)
