"""Files of runs that hold something else: the sentence names the file and the fault."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.runs.small import small
from windvane.errors import InputError
from windvane.experiments.report.summarise import summarise_run
from windvane.experiments.runs import frames
from windvane.experiments.runs.provenance import usable_cores
from windvane.experiments.runs.store import Store, read_run, read_summary
from windvane.training.config import TrainConfig

RECORDS = {
    "run": np.zeros(4, np.int32),
    "seed": np.full(4, 3),
    "episode": np.arange(4),
    "step": np.asarray([100, 200, 300, 460], np.int32),
    "length": np.asarray([100, 100, 100, 160], np.int32),
    "weights_0": np.asarray([0.5, 0.5, 1.0, 0.0]),
    "weights_1": np.asarray([0.5, 0.5, 0.0, 1.0]),
    "return_0": np.asarray([1.0, 2.0, 3.0, 4.0]),
    "return_1": np.asarray([-1.0, -2.0, -3.0, -4.0]),
    "regret": np.asarray([1.0, 0.5, 0.25, 0.125]),
    "loss": np.asarray([np.nan, 0.1, 0.1, 0.1]),
}
PROVENANCE = {"version": "1", "commit": None, "seconds": 1.5, "parallel_runs": 4}


def run() -> TrainConfig:
    return small(seeds=(3,))


def written(folder: Path) -> Path:
    return Store(folder).write(run(), RECORDS, False, PROVENANCE)


def rewrite(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Replace a table, but for its metadata."""
    metadata = pl.read_parquet_metadata(path)["windvane"]
    table = change(pl.read_parquet(path, memory_map=False))
    table.write_parquet(path, metadata={"windvane": metadata})


def put(name: str, *values: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Values in place of a column."""
    return lambda table: table.with_columns(pl.Series(name, values, strict=False))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda t: t.drop("step"), "it has no column 'step'"),
        (lambda t: t.drop("regret"), "it has no column 'regret'"),
        (put("step", "a", "b", "c", "d"), "the column 'step' must be of numbers, not of String"),
        (put("regret", "a", "b", "c", "d"), "the column 'regret' must be of numbers"),
        (put("step", 1.5, 2.0, 3.0, 4.0), "the column 'step' must be of whole numbers"),
        (put("step", 100, 200, None, 460), "the column 'step' has 1 empty places"),
        (put("regret", 1.0, None, 1.0, 1.0), "the column 'regret' has 1 empty places"),
        (lambda t: t.reverse(), "the column 'step' must increase from row to row"),
        (lambda t: pl.concat([t, t]), "the column 'step' must increase from row to row"),
        (put("step", 100, 200, 300, 481), "the column 'step' must be from 1 to 480, not 481"),
        (put("step", -1, 200, 300, 460), "the column 'step' must be from 1 to 480, not -1"),
        (put("regret", 1.0, np.nan, 1.0, 1.0), "the column 'regret' is NaN in 1 of 4 rows"),
        (put("regret", 1.0, np.inf, 1.0, 1.0), "the column 'regret' must be of numbers between"),
        (put("regret", 1.0, 1e300, 1.0, 1.0), "the column 'regret' must be of numbers between"),
        (put("return_0", 1.0, np.nan, 1.0, 1.0), "the column 'return_0' must be of numbers betw"),
        (put("utility", "a", "b", "c", "d"), "the column 'utility' must be of numbers"),
        (put("utility", 1.0, np.nan, 1.0, 1.0), "the column 'utility' must be of numbers between"),
        (put("length", -5, 1, 1, 1), "the column 'length' must be from 0"),
        (put("seed", 3, 3, 4, 3), "the column 'seed' must be 3"),
        (lambda t: t.drop("return_1"), "2 columns of weights and 1 of returns"),
        (lambda t: t.rename({"return_1": "return_2"}), "must be numbered from 0 on"),
        (
            lambda t: t.with_columns(regret=pl.lit(np.nan)).drop(
                "weights_0", "weights_1", "return_0", "return_1"
            ),
            "it has neither a regret nor a utility",
        ),
    ],
)
def test_columns_that_hold_something_else_are_named(
    change: Callable[[pl.DataFrame], pl.DataFrame], fault: str, tmp_path: Path
) -> None:
    path = written(tmp_path)
    rewrite(path, change)
    for read in (read_run, read_summary):
        with pytest.raises(InputError) as error:
            read(path)
        assert str(error.value).startswith(f"{path} is not a run of a results store: ")
        assert fault in str(error.value)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"format": "1"}, "its format must be a whole number, not '1'"),
        ({"format": 99}, "it was written by a newer Windvane"),
        ({"failed": "no"}, "'failed' must be true or false, not 'no'"),
        ({"config": [1]}, "is no configuration of a training run"),
        ({"provenance": None}, "its provenance must be names with values"),
        ({"provenance": "here"}, "its provenance must be names with values, not 'here'"),
        ({"provenance": {"commit": ["a"]}}, "the provenance 'commit' must be text or a number"),
        ({"provenance": {"seconds": "many"}}, "the provenance 'seconds' must be a number from 0"),
        ({"provenance": {"seconds": -1}}, "the provenance 'seconds' must be a number from 0"),
        ({"provenance": {"seconds": float("nan")}}, "the provenance 'seconds' must be a number"),
        ({"provenance": {"parallel_runs": 1e300}}, "the provenance 'parallel_runs' must be a num"),
        ({"provenance": {"device": "x" * 2000}}, "'device' is longer than 1000 characters"),
    ],
)
def test_metadata_that_holds_something_else_is_named(
    change: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    path = written(tmp_path)
    metadata = json.loads(pl.read_parquet_metadata(path)["windvane"]) | change
    table = pl.read_parquet(path, memory_map=False)
    table.write_parquet(path, metadata={"windvane": json.dumps(metadata)})
    with pytest.raises(InputError) as error:
        read_run(path)
    assert str(error.value).startswith(f"{path} is not a run of a results store: ")
    assert fault in str(error.value)


@pytest.mark.parametrize("metadata", [None, "{", "[]"])
def test_metadata_that_is_no_object_is_named(metadata: str | None, tmp_path: Path) -> None:
    path = written(tmp_path)
    table = pl.read_parquet(path, memory_map=False)
    table.write_parquet(path, metadata=None if metadata is None else {"windvane": metadata})
    with pytest.raises(InputError, match=r"is not a run of a results store: (its|the) metadata"):
        read_run(path)


@pytest.mark.parametrize(
    "error", [pl.exceptions.PanicException("index out of range"), pl.exceptions.ComputeError("bad")]
)
def test_a_reader_that_gives_up_is_one_sentence(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)

    def give_up(*given: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr(frames.pl, "read_parquet", give_up)
    with pytest.raises(InputError, match=f"is not a run of a results store: {error}"):
        read_run(path)


def test_columns_of_unequal_length_are_named() -> None:
    records = RECORDS | {"regret": np.ones(3)}
    with pytest.raises(InputError, match=r"its columns must have equal lengths, not .*'regret': 3"):
        summarise_run(run(), records, False, {})


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They call the schedule weights, the provenance origin, and have no utility."""
    path = written(tmp_path)
    metadata = json.loads(pl.read_parquet_metadata(path)["windvane"])
    metadata["origin"] = {"seconds": 2.0, "side_by_side": 5}
    del metadata["provenance"]
    table = pl.read_parquet(path, memory_map=False).rename({"schedule": "weights"})
    table.write_parquet(path, metadata={"windvane": json.dumps(metadata)})
    assert read_run(path).provenance == {"seconds": 2.0, "parallel_runs": 5}
    summary = read_summary(path)
    assert summary.schedule == "sparse"
    assert summary.overall_utility == pytest.approx((0 + 0 + 3 - 4) / 4)


def test_cores_are_counted_on_any_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable_cores() >= 1
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert usable_cores() == 6
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert usable_cores() == 1
