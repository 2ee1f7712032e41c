"""Summaries and contents of buffers that hold something else: the sentence names file and fault."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.experiments.synthetic import make_cell, make_run
from windvane.errors import InputError
from windvane.experiments.report.content import content_figures, read_content
from windvane.experiments.report.summary_files import (
    SUMMARIES,
    read_summaries,
    write_summaries,
)

Change = Callable[[pl.DataFrame], pl.DataFrame]


def put(name: str, *values: Any) -> Change:
    return lambda table: table.with_columns(pl.Series(name, values, strict=False))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda t: t.drop("overall"), "it has no column 'overall'"),
        (lambda t: t.drop("k017"), "it has no column 'k017'"),
        (lambda t: t.drop("config"), "it has no column 'config'"),
        (lambda t: t.drop("provenance"), "it has no column 'origin'"),
        (lambda t: t.drop("u003"), "it has no column 'u003'"),
        (put("overall", "a", "b"), "the column 'overall' must be of numbers, not of String"),
        (put("k001", "a", "b"), "the column 'k001' must be of numbers, not of String"),
        (put("config", 1, 2), "the column 'config' must be of text, not of Int64"),
        (put("config", "{", "{"), "a configuration is not JSON"),
        (put("config", "[]", "[]"), "a configuration must be a JSON object"),
        (put("provenance", "[]", "[]"), "a provenance must be a JSON object"),
        (put("provenance", '{"a": [1]}', "{}"), "the provenance 'a' must be text or a number"),
        (put("provenance", "{}", None), "the column 'provenance' must be of text"),
        (put("failed", 0.5, 2.0), "the column 'failed' must be of truth values"),
        (put("episodes", -1, 100), "the column 'episodes' must be from 0"),
        (put("episodes", 1.5, 100.0), "the column 'episodes' must be of whole numbers"),
        (put("episodes", None, 100), "the column 'episodes' has 1 empty places"),
        (put("overall", np.inf, 0.1), "the column 'overall' must be of numbers between"),
        (put("last", 0.1, -1e200), "the column 'last' must be of numbers between"),
        (put("k200", np.inf, 0.1), "the column 'k200' must be of numbers between"),
        (put("overall_utility", np.inf, 0.1), "the column 'overall_utility' must be of numbers"),
        (put("last_over_time", "a", "b"), "the column 'last_over_time' must be of numbers"),
        (lambda t: pl.concat([t, t]), "seed-0.parquet twice"),
    ],
)
def test_summaries_that_hold_something_else_are_named(
    change: Change, fault: str, tmp_path: Path
) -> None:
    write_summaries(make_cell([0.1, 0.2]), tmp_path)
    path = tmp_path / SUMMARIES
    change(pl.read_parquet(path, memory_map=False)).write_parquet(path)
    with pytest.raises(InputError) as error:
        read_summaries(tmp_path)
    assert str(error.value).startswith(f"{path} is not a summary of runs: ")
    assert fault in str(error.value)


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    write_summaries(make_cell([0.1, 0.2]), tmp_path)
    path = tmp_path / SUMMARIES
    pl.read_parquet(path, memory_map=False).reverse().write_parquet(path)
    assert [(s.seed, s.overall) for s in read_summaries(tmp_path)] == [(1, 0.2), (0, 0.1)]


def test_summaries_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They call the schedule weights, the provenance origin, and have no utility and no means over
    time.
    """
    write_summaries([make_run(0.1, provenance={"seconds": 3.0})], tmp_path)
    path = tmp_path / SUMMARIES
    table = pl.read_parquet(path, memory_map=False)
    old = table.select(
        c for c in table.columns if "utility" not in c and "over_time" not in c and c[0] != "u"
    )
    old = old.rename({"schedule": "weights", "provenance": "origin"})
    old = old.with_columns(origin=pl.lit(json.dumps({"seconds": 3.0, "side_by_side": 2})))
    old.write_parquet(path)
    [summary] = read_summaries(tmp_path)
    assert (summary.schedule, summary.overall) == ("sparse", 0.1)
    assert summary.provenance == {"seconds": 3.0, "parallel_runs": 2}
    assert np.isnan(summary.overall_utility)
    assert np.isnan([summary.overall_over_time, summary.last_over_time]).all()
    assert summary.utility_curve is None


CONTENT = {"diverse": [0, 1, 1], "return_0": [0.1, 0.2, 0.3], "return_1": [-1.0, -2.0, -3.0]}


def content_file(folder: Path, table: pl.DataFrame) -> Path:
    path = folder / "content" / "dst" / "cn-der-sparse" / "abc-seed-0.parquet"
    path.parent.mkdir(parents=True)
    table.write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda t: t.drop("diverse"), "it has no column 'diverse'"),
        (lambda t: t.drop("return_0", "return_1"), "it has no column 'return_0'"),
        (lambda t: t.drop("return_0"), "it has no column 'return_0'"),
        (put("diverse", "a", "b", "c"), "the column 'diverse' must be of numbers, not of String"),
        (put("diverse", 0, 1, 7), "the column 'diverse' must be from 0 to 1, not 7"),
        (put("return_1", "a", "b", "c"), "the column 'return_1' must be of numbers"),
        (put("return_1", 0.0, np.nan, 1.0), "the column 'return_1' must be of numbers between"),
        (put("return_1", 0.0, np.inf, 1.0), "the column 'return_1' must be of numbers between"),
        (put("return_1", 0.0, 1e300, 1.0), "the column 'return_1' must be of numbers between"),
        (put("return_1", 0.0, None, 1.0), "the column 'return_1' has 1 empty places"),
    ],
)
def test_contents_that_hold_something_else_are_named(
    change: Change, fault: str, tmp_path: Path
) -> None:
    path = content_file(tmp_path, change(pl.DataFrame(CONTENT)))
    with pytest.raises(InputError) as error:
        content_figures(tmp_path)
    assert str(error.value).startswith(f"{path} is not the content of a buffer: ")
    assert fault in str(error.value)


def test_a_content_that_is_no_table_is_named(tmp_path: Path) -> None:
    path = content_file(tmp_path, pl.DataFrame(CONTENT))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="is not the content of a buffer"):
        read_content(path)


@pytest.mark.parametrize(("objectives", "panels"), [(1, None), (2, 1), (3, 3), (7, 6)])
def test_contents_of_any_number_of_objectives(
    objectives: int, panels: int | None, tmp_path: Path
) -> None:
    returns = {f"return_{i}": [0.0, 1.0] for i in range(objectives)}
    content_file(tmp_path, pl.DataFrame({"diverse": [False, True], **returns}))
    figures = content_figures(tmp_path)
    if panels is None:
        assert figures == {}
    else:
        assert len(figures["abc"]["replay-content"].axes) == panels
