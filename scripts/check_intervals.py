# ruff: noqa: E501 (the lines of the report are as long as they are)
"""How often intervals hold the true mean, by simulation (`make check-intervals`).

Reports give Student's intervals of five or ten runs and paired t-tests. This draws as many numbers
from distributions whose mean is known, and counts how often each kind of interval holds it, and how
often a test finds a difference where there is none. Nothing is trained.
"""

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from rich.console import Console
from scipy import stats

from windvane.experiments.report.markdown import pipes
from windvane.experiments.report.statistics import LEVEL, difference, mean

SIZES = (5, 10)
"""Runs of a cell."""
LOST, USUAL, SPREAD, BAD = 0.1, 0.12, 0.04, 0.86
"""Share of lost runs; regrets of the others, normal with this spread; regret of a lost run. They are those of CN with
standard replay and sparse changes on Minecart at the end, where one run of five is lost."""
BATCH = 200
"""Samples that share the indices of their bootstrap."""

Samples = Float[np.ndarray, "samples runs"]
Held = Bool[np.ndarray, " samples"]


@dataclass(frozen=True)
class Distribution:
    """What runs are drawn from."""

    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    mean: float
    deviation: float


def _one_in_ten(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    lost = generator.random(shape) < LOST
    return np.where(lost, BAD, USUAL) + SPREAD * generator.normal(size=shape)


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "normal": Distribution(lambda generator, shape: generator.normal(size=shape), 0.0, 1.0),
    "lognormal": Distribution(
        lambda generator, shape: generator.lognormal(size=shape),
        math.exp(0.5),
        math.sqrt((math.e - 1) * math.e),
    ),
    "one lost run in ten": Distribution(
        _one_in_ten,
        (1 - LOST) * USUAL + LOST * BAD,
        math.sqrt(SPREAD**2 + LOST * (1 - LOST) * (BAD - USUAL) ** 2),
    ),
}
METHODS = ("Student's t", "bootstrap, percentiles", "bootstrap, BCa")


def main() -> None:
    """Simulate and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000, help="simulated cells of each kind")
    parser.add_argument("--resamples", type=int, default=2_000, help="of a bootstrap")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/intervals.md"))
    arguments = parser.parse_args()
    text = report(arguments.samples, arguments.resamples, arguments.seed)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text)
    Console().print(f"written: {arguments.out}")


def report(samples: int, resamples: int, seed: int) -> str:
    """The page."""
    generator = np.random.default_rng(seed)
    cases = [(name, size) for name in DISTRIBUTIONS for size in SIZES]
    covered, found = [], []
    for name, size in cases:
        held = coverage(DISTRIBUTIONS[name], size, samples, resamples, generator)
        covered.append([name, str(size), *(percent(held[method]) for method in METHODS)])
        positives = false_positives(DISTRIBUTIONS[name], size, samples, generator)
        found.append([name, str(size), *map(percent, positives)])
    error = 100 * math.sqrt(0.25 / samples)
    return f"""# How often intervals hold the true mean

`make check-intervals` (seed {seed}; {samples:,} simulated cells of each kind, the standard error of a share is at most {error:.1f} points;
{resamples:,} resamples per bootstrap). The intervals claim {LEVEL:.0%}. "One lost run in ten": a run is lost with a chance of {LOST:.0%}
and then has a regret of {BAD}, else of {USUAL}, both with a normal deviation of {SPREAD}; these are about the numbers of CN with standard replay
and sparse changes on Minecart at the end.

## Intervals of a mean

{pipes(["runs are", "of them", *METHODS], covered)}

Student's is what reports use (`windvane/experiments/report/statistics.py`), the others are `scipy.stats.bootstrap`'s. No method
makes up for a lost run that is not among the runs: of five, none is lost in {(1 - LOST) ** 5:.0%} of the cells, of ten in {(1 - LOST) ** 10:.0%}.

## Differences that are found where there is none

Share of pairs of cells with equal true means whose paired t-test has p below {1 - LEVEL:.2g}. Both cells have the same seeds, whose weights add the
same normal noise to both. Beside it, the other cell's runs are drawn from the same distribution, or normal with the same mean and
deviation.

{pipes(["runs are", "of them", "the other cell's are alike", "the other cell's are normal"], found)}
"""


def coverage(
    drawn: Distribution,
    size: int,
    samples: int,
    resamples: int,
    generator: np.random.Generator,
) -> dict[str, float]:
    """The share of cells of `size` runs whose interval holds the true mean, by method."""
    held: dict[str, list[Held]] = {method: [] for method in METHODS}
    for start in range(0, samples, BATCH):
        cells = drawn.draw(generator, (min(BATCH, samples - start), size))
        held[METHODS[0]].append(_by_student(cells, drawn.mean))
        for method, hits in zip(
            METHODS[1:], _by_bootstrap(cells, drawn.mean, resamples, generator), strict=True
        ):
            held[method].append(hits)
    return {method: float(np.concatenate(hits).mean()) for method, hits in held.items()}


def false_positives(
    drawn: Distribution, size: int, samples: int, generator: np.random.Generator
) -> tuple[float, float]:
    """The share of pairs of cells with one true mean that the paired test tells apart: both from
    the same distribution, and one of them normal.
    """
    shape = samples, size
    noise = drawn.deviation * generator.normal(size=shape)
    one, alike = (noise + drawn.draw(generator, shape) for _ in range(2))
    normal = noise + drawn.mean + drawn.deviation * generator.normal(size=shape)
    return _told_apart(one, alike), _told_apart(one, normal)


def percent(share: float) -> str:
    """A share as text."""
    return f"{100 * share:.1f}%"


def _by_student(cells: Samples, truth: float) -> Held:
    estimates = (mean(dict(enumerate(cell))) for cell in cells)
    return np.asarray([estimate is not None and estimate.contains(truth) for estimate in estimates])


def _by_bootstrap(
    cells: Samples, truth: float, resamples: int, generator: np.random.Generator
) -> tuple[Held, Held]:
    """Whether percentiles, and BCa of the same resamples, hold the truth."""
    before, hits = None, []
    options: Any = {"random_state": generator}  # SciPy 1.15 calls it rng, and knows both
    for method, number in (("percentile", resamples), ("BCa", 0)):
        before = stats.bootstrap(
            (cells,), np.mean, axis=-1, vectorized=True, n_resamples=number, method=method,
            confidence_level=LEVEL, bootstrap_result=before, **options,
        )  # fmt: skip
        interval = before.confidence_interval
        hits.append((interval.low <= truth) & (truth <= interval.high))
    return hits[0], hits[1]


def _told_apart(one: Samples, other: Samples) -> float:
    pairs = (
        difference(dict(enumerate(x)), dict(enumerate(y))) for x, y in zip(one, other, strict=True)
    )
    return float(
        np.mean([pair is not None and pair.p is not None and pair.p < 1 - LEVEL for pair in pairs])
    )


if __name__ == "__main__":
    main()
