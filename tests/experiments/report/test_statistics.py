"""Intervals: right where they can be worked out by hand, and about as sure as they claim."""

from itertools import product

import numpy as np
import pytest

from windvane.experiments.report.statistics import (
    Estimate,
    band,
    change,
    difference,
    mean,
    measured,
)


def runs(*values, first=0):
    return dict(enumerate(map(float, values), first))


def width(estimate):
    return estimate.high - estimate.low


# --- by hand


def test_the_interval_of_a_mean_is_that_of_all_resamples():
    """Of four runs there are 256 resamples, few enough to list."""
    values = (1.0, 2.0, 4.0, 8.0)
    every = [np.mean(drawn) for drawn in product(values, repeat=4)]
    low, high = np.percentile(every, (2.5, 97.5))
    got = mean(runs(*values))
    assert got is not None
    assert got.value == 3.75
    # Only multiples of a quarter can come out; one next to the end of the interval may do, too.
    assert got.low == pytest.approx(low, abs=0.26)
    assert got.high == pytest.approx(high, abs=0.26)


def test_two_runs_reach_from_one_to_the_other():
    assert mean(runs(1, 3)) == Estimate(2.0, 1.0, 3.0)


def test_a_change_is_in_percent_of_the_baseline():
    got = change(runs(3, 3, 3), runs(2, 2, 2))
    assert got is not None
    assert (got.value, got.low, got.high) == pytest.approx((50, 50, 50))
    lower = change(runs(0.5, 1.5), runs(4, 4))
    assert lower is not None
    assert (lower.value, lower.low, lower.high) == pytest.approx((-75, -87.5, -62.5))


def test_a_difference_says_how_much_higher_the_first_is():
    got = difference(runs(5, 7), runs(1, 1))
    assert got is not None
    assert (got.value, got.low, got.high) == pytest.approx((5, 4, 6))


def test_runs_are_resampled_within_their_cell():
    """Were runs of both cells mixed, both ends would lie within 0 and 10."""
    got = difference(runs(10, 10), runs(0, 0, 0))
    assert got is not None
    assert (got.value, got.low, got.high) == pytest.approx((10, 10, 10))


# --- pairs


def test_what_is_the_same_for_both_cells_cancels_in_pairs():
    """The difference is 1 for every seed: paired it is sure, on their own it is not."""
    noise = np.asarray([0.0, 5.0, 10.0, 15.0, 20.0])
    paired = difference(runs(*(noise + 1)), runs(*noise))
    alone = difference(runs(*(noise + 1)), runs(*noise, first=5))
    assert paired is not None
    assert alone is not None
    assert paired.value == alone.value == 1
    assert width(paired) == pytest.approx(0, abs=1e-9)
    assert width(alone) > 10


def test_percents_are_paired_as_differences_are():
    """Every seed has twice its regret: paired that is sure, on their own it is not."""
    base = np.asarray([1.0, 5.0, 10.0, 15.0, 20.0])
    paired = change(runs(*(2 * base)), runs(*base))
    alone = change(runs(*(2 * base)), runs(*base, first=5))
    assert paired is not None
    assert alone is not None
    assert paired.value == alone.value == 100
    assert width(paired) == pytest.approx(0, abs=1e-9)
    assert width(alone) > 100


def test_pairs_are_by_seed_and_not_by_place():
    one, other = {0: 1.0, 1: 2.0, 2: 9.0}, {2: 8.0, 0: 0.0, 1: 1.0}
    got = difference(one, other)
    assert got is not None
    assert width(got) == pytest.approx(0, abs=1e-9)


def test_pairing_does_not_depend_on_runs_without_a_number():
    """A seed that is missing on one side only breaks the pairs; on both, it does not."""
    noise = np.asarray([0.0, 5.0, 10.0, np.nan])
    both = difference(runs(*(noise + 1)), runs(*noise))
    one = difference(runs(*(noise + 1)), runs(0, 5, 10, 15))
    assert both is not None
    assert one is not None
    assert width(both) == pytest.approx(0, abs=1e-9)
    assert width(one) > 1


# --- as sure as they claim


def test_intervals_hold_the_truth_about_as_often_as_they_should():
    generator = np.random.default_rng(1)
    samples = generator.normal(2.0, 0.5, (400, 20))
    hits = [estimate.contains(2.0) for s in samples if (estimate := mean(runs(*s)))]
    assert len(hits) == 400
    assert 0.88 < np.mean(hits) < 0.97


def test_intervals_of_differences_hold_the_truth_whether_paired_or_not():
    generator = np.random.default_rng(2)
    shared = generator.normal(0, 1, (300, 20))
    one, other = shared + generator.normal(1, 0.3, (300, 20)), shared
    for first in (0, 20):
        found = [
            difference(runs(*a), runs(*b, first=first)) for a, b in zip(one, other, strict=True)
        ]
        hits = [estimate.contains(1.0) for estimate in found if estimate]
        # Unpaired, the noise that both share is counted twice and the interval is too wide.
        assert np.mean(hits) > 0.88
        if first == 0:
            assert np.mean(hits) < 0.98


def test_the_same_runs_have_the_same_interval_whenever_it_is_asked_for():
    values = np.random.default_rng(3).normal(size=10)
    before = mean(runs(*values))
    difference(runs(1, 2, 3), runs(4, 5))
    assert mean(runs(*values)) == before == mean(dict(reversed(runs(*values).items())))


# --- too little to say


def test_a_single_run_has_no_interval():
    assert mean(runs(2)) == Estimate(2.0, None, None)
    assert difference(runs(2), runs(1)) == Estimate(1.0)
    assert difference(runs(2), runs(1, 3)) == Estimate(0.0)
    assert change(runs(2, 4), runs(2)) == Estimate(50.0)
    assert not Estimate(2.0).contains(2.0)


def test_of_nothing_there_is_nothing():
    nothing = runs(np.nan)
    for empty in ({}, nothing):
        assert mean(empty) is None
        assert difference(empty, runs(1, 2)) is None
        assert difference(runs(1, 2), empty) is None
        assert change(runs(1, 2), empty) is None
        assert change(empty, runs(1, 2)) is None


def test_runs_without_a_number_are_left_out():
    assert measured({3: 1.0, 1: np.nan, 2: 4.0, 0: np.inf}) == {2: 4.0, 3: 1.0}
    assert list(measured({3: 1.0, 2: 4.0})) == [2, 3]
    assert mean(runs(1, np.nan, 3)) == mean(runs(1, 3))


def test_percents_of_nothing_are_not_given():
    assert change(runs(1, 2), runs(0, 0)) is None
    # The baseline is 0 in a quarter of the resamples, and no percents of those are known.
    assert change(runs(1, 2), runs(0, 1)) == Estimate(200.0)


# --- bands


def test_a_band_is_an_interval_at_every_point():
    curves = np.asarray([[0.0, 1.0], [0.0, 3.0]])
    got = band(curves)
    assert got is not None
    low, high = got
    np.testing.assert_allclose(low, [0, 1])
    np.testing.assert_allclose(high, [0, 3])
    assert band(curves[:1]) is None
