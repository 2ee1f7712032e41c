"""Means over runs, their 95% intervals and tests of their differences, all by Student's t.

Cells have five or ten runs. For so few, percentiles of a bootstrap are too narrow: of five normal
numbers they hold the mean in 84 of 100 cases. Student's intervals hold it in 95, whatever the
number, and that of very skewed numbers (lognormal) in about 83. Where one run of ten is lost, five
runs hold it in half of the cases, whatever the method (`scripts/check_intervals.py`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

LEVEL = 0.95

Runs = Mapping[int, float]
"""A number for each of a cell's runs, by seed: runs with the same seed have the same weights."""


@dataclass(frozen=True)
class Estimate:
    """A number and its interval, which a single run does not have."""

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    """Of a difference: how likely one as large is where there is none."""

    def contains(self, number: float) -> bool:
        """Whether the interval does; no interval contains nothing."""
        return self.low is not None and self.high is not None and self.low <= number <= self.high


def measured(runs: Runs) -> dict[int, float]:
    """The runs that have a number, in the order of their seeds; one without an episode has none."""
    return {seed: runs[seed] for seed in sorted(runs) if math.isfinite(runs[seed])}


def mean(runs: Runs) -> Estimate | None:
    """The mean over the measured runs, or None if there is none."""
    values = _values(runs)
    if not values.size:
        return None
    if values.size < 2:
        return Estimate(float(values.mean()))
    return _estimate(values.mean(), _variance(values), values.size - 1)


def difference(one: Runs, other: Runs) -> Estimate | None:
    """How much higher the mean of `one` is than that of `other`, or None if one of them is empty.

    Runs with the same seed have the same weights, which is noise that both share: where at least
    two seeds are common to both, these alone count, pair by pair. Otherwise all runs do, and their
    variances need not be equal (Welch).
    """
    sample = _sample(one, other)
    if sample is None:
        return None
    value = sample.first - sample.second
    if sample.variances is None:
        return Estimate(float(value))
    return _tested(value, *sample.of(1.0))


def change(runs: Runs, baseline: Runs) -> Estimate | None:
    """How many percent higher the mean of `runs` is than the baseline's, on the same seeds as a
    difference, with Fieller's interval of a ratio.

    It is None where one of them is empty or percents of the baseline mean nothing, and has no
    interval where the baseline may as well be 0.
    """
    sample = _sample(runs, baseline)
    if sample is None or sample.second <= 0:
        return None
    a, b = sample.first, sample.second
    with np.errstate(all="ignore"):  # a baseline next to 0
        ratio = a / b
    if not math.isfinite(ratio):
        return None
    value = float(100 * (ratio - 1))
    if sample.variances is None:
        return Estimate(value)
    # All ratios r for which a - r b does not differ from 0: the roots of a square.
    quantile = _quantile(sample.of(ratio)[1]) ** 2
    of_a, of_b, both = sample.variances
    square, middle, rest = b * b - quantile * of_b, a * b - quantile * both, a * a - quantile * of_a
    if square <= 0:
        return Estimate(value)
    root = math.sqrt(max(middle * middle - square * rest, 0.0))
    ends = (100 * ((middle + sign * root) / square - 1) for sign in (-1, 1))
    return Estimate(value, *map(float, ends))


def band(
    curves: Float[np.ndarray, "runs points"],
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]] | None:
    """Lower and upper end of the mean curve's interval at each point; None for a single run."""
    number = len(curves)
    if number < 2:
        return None
    half = _quantile(number - 1) * curves.std(axis=0, ddof=1) / math.sqrt(number)
    return curves.mean(axis=0) - half, curves.mean(axis=0) + half


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction for as many comparisons as there are p-values, in the order given."""
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min((len(known) - rank) * p, 1.0))
        corrected[index] = largest
    return corrected


@dataclass(frozen=True)
class _Sample:
    """Means of two cells, and how sure they are."""

    first: float
    second: float
    variances: tuple[float, float, float] | None = None
    """Of both means, and their covariance; None where one of them has a single run."""
    sizes: tuple[int, int] = (0, 0)
    paired: bool = False

    def of(self, ratio: float) -> tuple[float, float]:
        """The variance of first - ratio * second, and its degrees of freedom."""
        assert self.variances is not None
        of_first, of_second, both = self.variances
        scaled = ratio * ratio * of_second
        variance = max(of_first + scaled - 2 * ratio * both, 0.0)
        if self.paired:
            return variance, self.sizes[0] - 1
        n, m = self.sizes
        parts = of_first**2 / (n - 1) + scaled**2 / (m - 1)
        return variance, (of_first + scaled) ** 2 / parts if parts > 0 else n + m - 2


def _sample(one: Runs, other: Runs) -> _Sample | None:
    first, second = measured(one), measured(other)
    if not first or not second:
        return None
    common = [seed for seed in first if seed in second]
    paired = len(common) >= 2
    if paired:
        first, second = ({seed: runs[seed] for seed in common} for runs in (first, second))
    x, y = _values(first), _values(second)
    means = float(x.mean()), float(y.mean())
    if min(x.size, y.size) < 2:
        return _Sample(*means)
    both = float(np.cov(x, y)[0, 1]) / x.size if paired else 0.0
    variances = (_variance(x), _variance(y), both)
    return _Sample(*means, variances, (x.size, y.size), paired)


def _values(runs: Runs) -> Float[np.ndarray, " runs"]:
    return np.asarray(list(measured(runs).values()), dtype=float)


def _variance(values: Float[np.ndarray, " runs"]) -> float:
    """Of the mean."""
    return float(values.var(ddof=1)) / values.size


def _quantile(freedom: float) -> float:
    return float(stats.t.ppf(0.5 + LEVEL / 2, freedom))


def _estimate(value: float, variance: float, freedom: float) -> Estimate:
    half = _quantile(freedom) * math.sqrt(variance)
    return Estimate(float(value), float(value - half), float(value + half))


def _tested(value: float, variance: float, freedom: float) -> Estimate:
    found = _estimate(value, variance, freedom)
    # What is left of a sum of numbers that cancel is rounding, no variance.
    if variance <= (1e-12 * value) ** 2:
        p = 1.0 if value == 0 else 0.0
    else:
        p = float(2 * stats.t.sf(abs(value) / math.sqrt(variance), freedom))
    return Estimate(found.value, found.low, found.high, p)
