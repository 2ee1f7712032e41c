"""Intervals: right where they can be worked out by hand, and about as sure as they claim."""

import math

import numpy as np
import pytest
from scipy import stats

from windvane.experiments.report.statistics import (
    Estimate,
    band,
    change,
    difference,
    holm,
    mean,
    measured,
)


def runs(*values, first=0):
    return dict(enumerate(map(float, values), first))


def width(estimate):
    return estimate.high - estimate.low


# --- by hand


T1, T2, T3 = 12.7062, 4.30265, 3.18245
"""The 97.5% points of Student's t with one, two and three degrees of freedom, from a table."""


def test_the_interval_of_a_mean():
    """Of 1, 2, 4 and 8 the variance is 28.75 / 3."""
    got = mean(runs(1, 2, 4, 8))
    assert got is not None
    half = T3 * math.sqrt(28.75 / 3 / 4)
    expected = (3.75, 3.75 - half, 3.75 + half)
    assert (got.value, got.low, got.high) == pytest.approx(expected, rel=1e-4)
    two = mean(runs(1, 3))
    assert two is not None
    assert (two.low, two.high) == pytest.approx((2 - T1, 2 + T1), rel=1e-5)


def test_a_difference_on_common_seeds():
    """Differences are 1, 2 and 3; a seed that only one cell has does not count."""
    got = difference(runs(2, 4, 6), runs(1, 2, 3, 100))
    assert got is not None
    half = T2 / math.sqrt(3)
    assert (got.value, got.low, got.high) == pytest.approx((2, 2 - half, 2 + half), rel=1e-5)
    # t = 2 sqrt(3) with two degrees of freedom: p = 1 - t / sqrt(t^2 + 2).
    assert got.p == pytest.approx(1 - math.sqrt(12 / 14))


def test_a_difference_without_common_seeds_is_welchs():
    one, other = [3.0, 5.0, 10.0], [1.0, 2.0, 2.5, 1.5]
    got, reference = (
        difference(runs(*one), runs(*other, first=9)),
        stats.ttest_ind(one, other, equal_var=False),
    )
    assert got is not None
    interval = reference.confidence_interval()
    assert (got.p, got.low, got.high) == pytest.approx(
        (reference.pvalue, interval.low, interval.high)
    )


def test_a_change_is_in_percent_of_the_baseline():
    got = change(runs(3, 3, 3), runs(2, 2, 2))
    assert got is not None
    assert (got.value, got.low, got.high) == pytest.approx((50, 50, 50))


def test_the_ends_of_a_change_are_where_the_test_turns():
    one, base = np.asarray([1.0, 2.0, 2.5, 4.0]), np.asarray([3.0, 5.0, 4.0, 6.0])
    for first in (0, 7):
        got = change(runs(*one, first=first), runs(*base))
        assert got is not None
        assert got.low is not None
        assert got.high is not None
        assert got.value == pytest.approx(100 * (one.mean() / base.mean() - 1))
        if first == 0:
            for end in (got.low, got.high):
                turned = difference(runs(*one), runs(*((1 + end / 100) * base)))
                assert turned is not None
                assert turned.p == pytest.approx(0.05)
        assert got.low < got.value < got.high


def test_holm_by_hand():
    # 3 x 0.01 = 0.03, 2 x 0.02 = 0.04, 1 x 0.03 is less than the one before it.
    assert holm([0.02, None, 0.01, 0.03]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


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


def test_pairing_leaves_out_runs_without_a_number():
    """Whether a seed is missing on one side or on both."""
    noise = np.asarray([0.0, 5.0, 10.0, np.nan])
    both = difference(runs(*(noise + 1)), runs(*noise))
    one = difference(runs(*(noise + 1)), runs(0, 5, 10, 15))
    assert both is not None
    assert one is not None
    assert width(both) == pytest.approx(0, abs=1e-9)
    assert width(one) == pytest.approx(0, abs=1e-9)


# --- as sure as they claim


@pytest.mark.parametrize(
    ("draw", "truth", "number", "least", "most"),
    [
        ("normal", 0.0, 5, 0.93, 0.97),
        ("normal", 0.0, 10, 0.93, 0.97),
        # As skewed as the regrets of runs of which one went wrong.
        ("lognormal", math.exp(0.5), 5, 0.80, 0.85),
        ("lognormal", math.exp(0.5), 10, 0.80, 0.86),
    ],
)
def test_intervals_hold_the_truth_as_often_as_the_docs_say(draw, truth, number, least, most):
    generator = np.random.default_rng(1)
    samples = getattr(generator, draw)(size=(4_000, number))
    share = np.mean([estimate.contains(truth) for s in samples if (estimate := mean(runs(*s)))])
    assert least < share < most


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
    # The baseline may as well be 0.
    assert change(runs(1, 2), runs(0, 1)) == Estimate(200.0)


# --- bands


def test_a_band_is_an_interval_at_every_point():
    curves = np.asarray([[0.0, 1.0], [0.0, 3.0]])
    got = band(curves)
    assert got is not None
    low, high = got
    np.testing.assert_allclose(low, [0, 2 - T1], rtol=1e-5)
    np.testing.assert_allclose(high, [0, 2 + T1], rtol=1e-5)
    assert band(curves[:1]) is None
