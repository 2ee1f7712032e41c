"""Means in which every stretch of time counts the same."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.runs.small import small
from windvane.runs.result import read_summary, run_means
from windvane.runs.runner import train
from windvane.runs.stretches import STRETCH, mean_over_time


def test_by_hand() -> None:
    """Of the first 200 steps the mean is 2, of the next 5, and of the last 10 none ends."""
    ends, values = np.asarray([10, 150, 200, 201]), np.asarray([1.0, 2.0, 3.0, 5.0])
    assert STRETCH == 200
    assert mean_over_time(ends, values) == pytest.approx(3.5)
    assert mean_over_time(ends, values, 1_000) == pytest.approx(11 / 4)
    assert mean_over_time(ends, values, 1) == pytest.approx(11 / 4)


def test_of_nothing_and_of_the_unknown() -> None:
    assert np.isnan(mean_over_time(np.zeros(0, int), np.zeros(0)))
    assert np.isnan(mean_over_time(np.asarray([1, 2]), np.asarray([1.0, np.nan])))


def test_runs_and_their_summary_have_both_means(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = train(small(steps=240), out=folder)
    records, means = result.records, result.regret_over_time
    for run in range(2):
        mask = records["run"] == run
        ends, regrets = records["step"][mask], records["regret"][mask]
        stretches = [regrets[(ends - 1) // STRETCH == k] for k in (0, 1)]
        by_hand = np.mean([part.mean() for part in stretches if part.size])
        assert means.overall[run] == pytest.approx(by_hand)
    late = run_means(records, "regret", 2, 240, over_time=True).last_quarter
    np.testing.assert_array_equal(means.last_quarter, late)
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    assert summary["regret_over_time"] == pytest.approx(means.overall.tolist())
    for name in ("regret_over_time", "regret_over_time_last_quarter"):
        del summary[name]  # as it was written before
    path.write_text(json.dumps(summary))
    assert read_summary(folder, result.config).failed == ()
