"""Intervals of means over runs: 95% bootstrap intervals, the same on every call.

Runs are resampled within their cell (cells are the strata), and intervals are percentiles of the
resampled means. For few runs such intervals are too narrow: of ten they hold the true mean in
about 90 of 100 cases rather than 95, of five in 85, of three in 74 and of two in 51.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

RESAMPLES = 10_000
BAND_RESAMPLES = 2_000
"""Fewer for the bands of curves, which have an interval at each of their points."""
PERCENTILES = (2.5, 97.5)

Runs = Mapping[int, float]
"""A number for each of a cell's runs, by seed: runs with the same seed have the same weights."""


@dataclass(frozen=True)
class Estimate:
    """A number and its interval, which a single run does not have."""

    value: float
    low: float | None = None
    high: float | None = None

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
    return _estimate(values.mean(), _resamples(values.size, 0) @ values)


def difference(one: Runs, other: Runs) -> Estimate | None:
    """How much higher the mean of `one` is than that of `other`, or None if one of them is empty.

    Runs with the same seed have the same weights, which is noise that both share: where the seeds
    of both are the same, seeds are resampled for both at once.
    """
    first, second = _values(one), _values(other)
    if not first.size or not second.size:
        return None
    value = first.mean() - second.mean()
    resampled = _resampled(one, other)
    if resampled is None:
        return Estimate(float(value))
    return _estimate(value, resampled[0] - resampled[1])


def change(runs: Runs, baseline: Runs) -> Estimate | None:
    """How many percent higher the mean of `runs` is than the baseline's, resampled as a difference.

    It is None where one of them is empty or percents of the baseline mean nothing, and has no
    interval where they mean nothing in some of the resamples.
    """
    first, base = _values(runs), _values(baseline)
    if not first.size or not base.size or base.mean() <= 0:
        return None
    resampled = _resampled(runs, baseline)
    with np.errstate(all="ignore"):  # a baseline next to 0
        value = 100 * (first.mean() / base.mean() - 1)
        if not math.isfinite(value):
            return None
        if resampled is None or (resampled[1] <= 0).any():
            return Estimate(float(value))
        ratios = 100 * (resampled[0] / resampled[1] - 1)
    return _estimate(value, ratios) if np.isfinite(ratios).all() else Estimate(float(value))


def band(
    curves: Float[np.ndarray, "runs points"],
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]] | None:
    """Lower and upper end of the mean curve's interval at each point; None for a single run."""
    if len(curves) < 2:
        return None
    resampled = _resamples(len(curves), 0)[:BAND_RESAMPLES] @ curves
    low, high = np.percentile(resampled, PERCENTILES, axis=0)
    return low, high


def _values(runs: Runs) -> Float[np.ndarray, " runs"]:
    return np.asarray(list(measured(runs).values()), dtype=float)


def _estimate(value: float, resampled: Float[np.ndarray, " resamples"]) -> Estimate:
    low, high = np.percentile(resampled, PERCENTILES)
    return Estimate(float(value), float(low), float(high))


def _resampled(
    one: Runs, other: Runs
) -> tuple[Float[np.ndarray, " resamples"], Float[np.ndarray, " resamples"]] | None:
    """Both means in every resample; None where one of them has too few runs to resample."""
    first, second = _values(one), _values(other)
    if min(first.size, second.size) < 2:
        return None
    paired = measured(one).keys() == measured(other).keys()
    shares = _resamples(first.size, 0)
    others = shares if paired else _resamples(second.size, 1)
    return shares @ first, others @ second


@lru_cache(maxsize=64)
def _resamples(runs: int, stratum: int) -> Float[np.ndarray, "resamples runs"]:
    """The share of every run in every resample: a mean of all resamples is then one product."""
    generator = np.random.default_rng((runs, stratum))
    counts = generator.multinomial(runs, np.full(runs, 1 / runs), RESAMPLES)
    return counts / runs
