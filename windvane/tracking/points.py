"""The points of curves, from records: means over stretches of steps, the same for every tracker.

What may not live here: how points are written.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from windvane.training.callbacks import TrainingProgress

MOST_POINTS = 500
"""Points of a curve: few enough for long trainings, and more than a screen shows."""
LEAST_STRETCH = 200
"""Steps of the shortest stretch."""
EVALUATIONS = ("utility", "worst_utility", "regret", "worst_regret", "never_ending")
"""Columns of greedy evaluations that are curves."""
_OTHERS = re.compile(r"[^\w .-]", re.ASCII)
"""Letters that not every tracker takes in a name."""


_Values = tuple[tuple[int, int], dict[str, float]]
"""Some values at a step of a run."""


class Point(NamedTuple):
    """Values of one run at one step, by name of the curve."""

    run: int
    step: int
    values: Mapping[str, float]


def stretch_length(steps: int) -> int:
    """Steps of a stretch: 200, 500, 1,000, 2,000, 5,000 and so on, for at most `MOST_POINTS`."""
    length, factors = LEAST_STRETCH, (2.5, 2.0, 2.0)
    turn = 0
    while -(-steps // length) > MOST_POINTS:
        length, turn = int(length * factors[turn % 3]), turn + 1
    return length


class Curves:
    """Makes points of the progress of a training.

    A point of `training/...` and `return/...` is the mean over the episodes that ended in a
    stretch, at the stretch's last step; one of `evaluation/...` is what a greedy evaluation came
    to. Where a value is not known there is none. Values are numbers of 32 bits, which every tracker
    can hold. Points do not depend on where chunks end.
    """

    def __init__(self, steps: int, objectives: tuple[str, ...]):
        """No episodes yet."""
        self.steps, self.stretch = steps, stretch_length(steps)
        names = [_OTHERS.sub("-", name) for name in objectives]
        unique = len(set(names)) == len(names)
        self._columns = {
            "regret": "training/regret",
            "utility": "training/utility",
            "length": "training/episode_length",
            "epsilon": "training/epsilon",
            "loss": "training/loss",
        } | {f"return_{i}": f"return/{name if unique else i}" for i, name in enumerate(names)}
        self._open: list[dict[str, np.ndarray]] = []
        self._done = 0

    def add(self, progress: TrainingProgress) -> list[Point]:
        """The points that are complete now, by step and then by run."""
        values: dict[tuple[int, int], dict[str, float]] = {}
        for at, found in (*self._evaluated(progress), *self._trained(progress)):
            values.setdefault(at, {}).update(found)
        return [Point(run, step, values[step, run]) for step, run in sorted(values)]

    def _trained(self, progress: TrainingProgress) -> list[_Values]:
        names = ("run", "step", *self._columns)
        self._open.append({name: progress.episodes[name] for name in names})
        whole = progress.step // self.stretch * self.stretch
        ends = self.steps if progress.step >= self.steps else whole
        if ends <= self._done:
            return []
        self._done = ends
        rows = {name: np.concatenate([part[name] for part in self._open]) for name in names}
        complete = rows["step"] <= ends
        self._open = [{name: column[~complete] for name, column in rows.items()}]
        rows = {name: column[complete] for name, column in rows.items()}
        last = -(-rows["step"].astype(np.int64) // self.stretch) * self.stretch
        places = np.stack([np.minimum(last, self.steps), rows["run"]], axis=1)
        places, group = np.unique(places, axis=0, return_inverse=True)
        means = {
            curve: _means(rows[name], group.reshape(-1), len(places), positive=name == "loss")
            for name, curve in self._columns.items()
        }
        return [
            ((int(step), int(run)), _known({name: mean[i] for name, mean in means.items()}))
            for i, (step, run) in enumerate(places)
        ]

    def _evaluated(self, progress: TrainingProgress) -> list[_Values]:
        table = progress.evaluations
        if table is None:
            return []
        return [
            (
                (int(table["step"][row]), int(table["run"][row])),
                _known({f"evaluation/{name}": table[name][row] for name in EVALUATIONS}),
            )
            for row in range(len(table["step"]))
        ]


def final_numbers(means: Mapping[str, np.ndarray], run: int) -> dict[str, float]:
    """The numbers of one run at the end, from means per run by name."""
    return _known({f"final/{name}": values[run] for name, values in means.items()})


def _means(values: np.ndarray, group: np.ndarray, groups: int, *, positive: bool) -> np.ndarray:
    """The mean of each group, of what is finite in it; of losses, which are 0 until learning
    starts, only those above. NaN of nothing.
    """
    values = np.asarray(values, float)
    counted = np.isfinite(values) & (values > 0 if positive else True)
    sums = np.bincount(group[counted], values[counted], groups)
    counts = np.bincount(group[counted], minlength=groups)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _known(values: Mapping[str, float]) -> dict[str, float]:
    with np.errstate(over="ignore"):
        rounded = {name: float(np.float32(value)) for name, value in values.items()}
    return {name: value for name, value in rounded.items() if np.isfinite(value)}
