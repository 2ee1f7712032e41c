"""The simulation behind the intervals of reports: repeatable, and right where it is known."""

import math

import numpy as np
import pytest

from scripts.check_intervals import (
    DISTRIBUTIONS,
    METHODS,
    coverage,
    false_positives,
    main,
    report,
)


def test_distributions_have_the_means_and_deviations_that_they_state() -> None:
    generator = np.random.default_rng(0)
    for drawn in DISTRIBUTIONS.values():
        values = drawn.draw(generator, (400_000, 1))
        assert values.mean() == pytest.approx(drawn.mean, abs=0.02 * drawn.deviation)
        assert values.std() == pytest.approx(drawn.deviation, rel=0.1)


def test_student_holds_a_normal_mean_and_percentiles_are_too_narrow() -> None:
    held = coverage(DISTRIBUTIONS["normal"], 5, 600, 300, np.random.default_rng(1))
    assert tuple(held) == METHODS
    student, percentiles, accelerated = held.values()
    assert 0.92 < student < 0.98
    assert 0.76 < percentiles < 0.88
    assert 0.76 < accelerated < 0.88


def test_a_lost_run_that_is_not_there_is_in_no_interval() -> None:
    """Of five runs none is lost in 59% of the cells, and these cannot tell."""
    held = coverage(DISTRIBUTIONS["one lost run in ten"], 5, 400, 200, np.random.default_rng(2))
    assert max(held.values()) < 0.6
    assert pytest.approx(0.59, abs=0.001) == 0.9**5


def test_the_paired_test_finds_a_difference_of_normal_cells_as_often_as_it_says() -> None:
    shares = false_positives(DISTRIBUTIONS["normal"], 5, 2_000, np.random.default_rng(3))
    assert shares == pytest.approx((0.05, 0.05), abs=4 * math.sqrt(0.05 * 0.95 / 2_000))


def test_the_page_is_the_same_for_the_same_seed(tmp_path, monkeypatch) -> None:
    out = tmp_path / "new" / "intervals.md"
    line = ["check_intervals", "--samples", "20", "--resamples", "20", "--out", str(out)]
    monkeypatch.setattr("sys.argv", line)
    main()
    text = out.read_text()
    assert text == report(20, 20, 0) != report(20, 20, 1)
    tables = [line for line in text.splitlines() if line.startswith("| one lost run in ten | 5 |")]
    assert len(tables) == 2
    assert tables[0].count("%") == 3
