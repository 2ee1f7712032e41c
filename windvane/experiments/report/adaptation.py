"""What a sparse change of weights costs: how agents do just after one, and later."""

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from windvane.experiments.report.statistics import Estimate, difference, holm
from windvane.experiments.report.summary import POINTS, RunSummary
from windvane.experiments.report.tables import Section, comparable
from windvane.experiments.runs.cells import Cell, steps_between_changes

LEAST_POINTS, LEAST_PERIODS = 5, 4
"""Points of a curve between two changes, and changes, that are needed to show what follows them."""
SOON, LATER = 0.1, 0.2
"""The share of the steps between two changes that counts as just after one, and where what is later
begins.
"""
COLUMNS = (
    "problem", "setting", "agent", "replay", "schedule", "seeds", "soon", "later", "difference",
    "low", "high", "p", "corrected_p",
)  # fmt: skip
"""Of the second half of a training: the regret of 1,000 steps (or the scalarised return) in the
first tenth of the steps after a sparse change, from the second tenth on, and how much higher the
first is, with its p-value: raw, and corrected for all cells of the section (Holm).
"""


class Adaptation(NamedTuple):
    """A cell's means just after a change and later."""

    cell: Cell
    seeds: int
    soon: float
    later: float
    difference: Estimate


def after_changes(section: Section, summary: RunSummary) -> list[float]:
    """The mean at each point between two sparse changes, in the second half of the training: the
    regret of 1,000 steps, or the scalarised return. Empty where changes do not lie on points, or
    are too few or close to see.
    """
    steps, every = summary.config.steps, steps_between_changes(summary.config)
    if every is None or steps < POINTS or not summary.episodes:
        return []
    points, rest = divmod(every * POINTS, steps)
    periods = steps // every
    if rest or points < LEAST_POINTS or periods < LEAST_PERIODS:
        return []
    if section.measure == "regret":
        values = np.diff(summary.curve, prepend=0.0) * POINTS / steps * 1000
    elif summary.utility_curve is None:
        return []
    else:
        values = carried_forward(summary.utility_curve)
    late = values[: periods * points].reshape(periods, points)[-(-periods // 2) :]
    return late.mean(0).tolist()


def adaptations(section: Section) -> list[Adaptation]:
    """Every cell with sparse changes whose curves show what follows them, on common seeds."""
    each: dict[Cell, dict[int, list[float]]] = {}
    for summary in comparable(section.summaries):
        values = after_changes(section, summary)
        if values and np.isfinite(values).all():
            each.setdefault(summary.cell, {})[summary.seed] = values
    found = []
    for cell, runs in each.items():
        points = len(next(iter(runs.values())))
        first, rest = max(round(SOON * points), 1), max(round(LATER * points), 1)
        soon = {seed: float(np.mean(values[:first])) for seed, values in runs.items()}
        later = {seed: float(np.mean(values[rest:])) for seed, values in runs.items()}
        ours = difference(soon, later)
        assert ours is not None
        means = float(np.mean(list(soon.values()))), float(np.mean(list(later.values())))
        found.append(Adaptation(cell, len(runs), *means, ours))
    return found


def adaptations_to_csv(sections: Sequence[Section]) -> str:
    """A line for every cell, with a header; empty if there is none."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    lines = 0
    for section in sections:
        setting = " ".join(f"{name}={value}" for name, value in section.setting.items())
        found = adaptations(section)
        corrected = holm([row.difference.p for row in found])
        for row, p in zip(found, corrected, strict=True):
            ours = row.difference
            numbers = (row.seeds, row.soon, row.later, ours.value, ours.low, ours.high, ours.p, p)
            writer.writerow((section.problem, setting, *row.cell, *numbers))
            lines += 1
    return file.getvalue() if lines else ""


def carried_forward(curve: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
    """Windows in which no episode ended have the value of the one before."""
    known = np.isfinite(curve)
    last = np.maximum.accumulate(np.where(known, np.arange(len(curve)), -1))
    return np.where(last < 0, np.nan, curve[np.maximum(last, 0)])
