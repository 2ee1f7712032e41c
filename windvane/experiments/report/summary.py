"""A finished run in a few numbers: its cell, its regret or utility, its curves. Reports are made
of these.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from windvane.experiments.runs.cells import Cell, cell_of
from windvane.training.config import TrainConfig

POINTS = 200
"""Points of a curve: a run's steps are split into as many windows of equal length."""

Measure = Literal["regret", "utility"]
"""What a report is about: the regret where the optimum is known, else the scalarised return."""

Unmeasured = Literal["no episode", "unknown"]
"""Why a run has no number: no episode ended, or of those that did the measure is not known."""


@dataclass(frozen=True)
class RunSummary:
    """One run: one seed of one cell. What is not known is NaN, a curve that is not known None."""

    config: TrainConfig
    """Of this run alone: one seed, one schedule."""
    failed: bool
    """Whether it diverged: its loss or gradient was not finite, and it stopped learning."""
    episodes: int
    overall: float
    """Mean regret of all episodes."""
    last: float
    """Mean regret of the episodes that ended in the last quarter of the steps."""
    curve: Float[np.ndarray, " points"]
    """Regret added up over the episodes that ended in the first k/POINTS of the steps, for k from
    1 to POINTS."""
    provenance: dict[str, Any]
    """How it came about: version, commit, device, jax, date, seconds."""
    overall_utility: float = math.nan
    """Mean utility of all episodes, which is their return scalarised by their weights."""
    last_utility: float = math.nan
    """Mean utility of the episodes that ended in the last quarter of the steps."""
    utility_curve: Float[np.ndarray, " points"] | None = None
    """Mean utility of the episodes that ended in each of the POINTS windows."""
    overall_over_time: float = math.nan
    """Mean regret in which every stretch of 200 steps counts the same, by the mean of the
    episodes that end in it; those where none ends do not count."""
    last_over_time: float = math.nan
    """The same of the last quarter of the steps."""
    largest_loss: float = math.nan
    """The largest finite loss that an episode recorded."""
    loss_limit: float = math.nan
    """What it may be at most for the returns that were recorded (`windvane.runs.divergence`)."""

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.config.seed_numbers[0]

    @property
    def cell(self) -> Cell:
        """The cell of a table: agent, replay, schedule."""
        return cell_of(self.config)

    @property
    def exploded(self) -> bool:
        """Whether it diverged although its loss stayed finite, as far as that was recorded."""
        return not self.failed and self.largest_loss > self.loss_limit

    @property
    def unjudged(self) -> bool:
        """Whether it is not known if it diverged with a finite loss, as losses were not kept."""
        return not self.failed and not math.isfinite(self.largest_loss)

    @property
    def schedule(self) -> str:
        """The schedule of the weights."""
        return self.cell.schedule

    def unmeasured(self, measure: Measure, period: str) -> Unmeasured | None:
        """Why there is no value of a measure over a period; None where there is one."""
        if math.isfinite(self.value(measure, period)):
            return None
        if not self.episodes or math.isfinite(self.value(measure, "overall")):
            return "no episode"
        # Where the regret is never known, the utility tells whether episodes ended in the period.
        late = math.isfinite(self.overall_utility) and not math.isfinite(self.last_utility)
        return "no episode" if period == "last" and late else "unknown"

    def over_time(self, period: str) -> float:
        """The mean regret over stretches of time; NaN where it was not recorded."""
        return self.overall_over_time if period == "overall" else self.last_over_time

    def value(self, measure: str, period: str) -> float:
        """The mean of a measure over the episodes of a period."""
        if measure == "regret":
            return self.overall if period == "overall" else self.last
        return self.overall_utility if period == "overall" else self.last_utility
