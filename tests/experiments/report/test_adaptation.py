"""What a change of weights costs: means just after it and later, and their difference."""

import csv

import numpy as np
import pytest

from tests.experiments.synthetic import make_cell
from windvane.experiments.report.adaptation import (
    COLUMNS,
    adaptations,
    adaptations_to_csv,
    after_changes,
)
from windvane.experiments.report.statistics import difference
from windvane.experiments.report.summary import POINTS
from windvane.experiments.report.tables import sections

EVERY = 10
"""Points between two of DST's sparse changes."""


def after_each(soon, later, **names):
    """A cell whose regret per window is `soon` in the first after a change, and then `later`; in
    the second it is something else, which counts as neither.
    """
    runs = make_cell([0.1] * len(soon), **names)
    for run, first, rest in zip(runs, soon, later, strict=True):
        period = [first, 99.0, *[rest] * (EVERY - 2)]
        windows = np.tile(period, POINTS // EVERY)
        windows[: POINTS // 2] = 7.0  # the first half of the training does not count
        run.curve[:] = np.cumsum(windows)
    return runs


def test_means_just_after_a_change_and_later():
    """A window is of 500 steps, so the regret of 1,000 steps is twice that of a window."""
    runs = after_each([3.0, 5.0, 4.0], [1.0, 2.0, 0.5])
    [section] = sections(runs)
    assert after_changes(section, runs[0]) == pytest.approx([6.0, 198.0, *[2.0] * 8])
    [found] = adaptations(section)
    assert (found.seeds, found.soon, found.later) == (3, pytest.approx(8), pytest.approx(7 / 3))
    expected = difference({0: 6, 1: 10, 2: 8}, {0: 2, 1: 4, 2: 1})
    assert expected is not None
    assert found.difference.value == pytest.approx(expected.value)
    assert found.difference.p == pytest.approx(expected.p)


def test_they_are_written_with_all_digits():
    runs = [
        *after_each([3.0, 5.0, 4.0], [1.0, 2.0, 0.5]),
        *after_each([3.0, 4.0], [3.0, 4.5], agent="mo", replay="standard"),
        *make_cell([0.1, 0.2], schedule="regular"),
    ]
    lines = list(csv.DictReader(adaptations_to_csv(sections(runs)).splitlines()))
    assert tuple(lines[0]) == COLUMNS
    assert [(line["agent"], line["seeds"]) for line in lines] == [("cn", "2"), ("mo", "2")]
    raw, corrected = ([float(line[name]) for line in lines] for name in ("p", "corrected_p"))
    assert corrected[0] == pytest.approx(2 * raw[0])
    assert adaptations_to_csv(sections(make_cell([0.1], schedule="regular"))) == ""
