"""What the studies share: a grid trained with some settings changed, and numbers beside the
paper's.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich.console import Console

from windvane.experiments.paper.grids import Grid
from windvane.experiments.paper.published import PeriodName, published_regret
from windvane.experiments.runs.reproduce import reproduce
from windvane.experiments.runs.store import Store


def trained(grid: Grid, folder: Path, seeds: int, console: Console, **settings: Any) -> list[Path]:
    """The files of all runs of a grid; those that are not in the store are trained first."""
    result = reproduce(grid, folder, seeds=seeds, console=console, **settings)
    for job, reason in result.failures.items():
        raise SystemExit(f"{job} failed: {reason}")
    return [Store(folder).path(run) for run in grid.runs(seeds, **settings)]


def printed(problem: str, cell: tuple[str, str, str]) -> list[float | None]:
    """The paper's regrets of a cell (agent, replay, schedule): overall, and at the end."""
    agent, replay, schedule = cell
    periods = get_args(PeriodName)
    return [published_regret(problem, schedule, agent, replay, period) for period in periods]


def pair(regrets: Iterable[float | None]) -> str:
    """Regret overall and at the end as text."""
    return " / ".join("-" if x is None else f"{x:.3f}" for x in regrets)


def mean(values: np.ndarray, counts: np.ndarray | None = None) -> float:
    """A mean, weighted by `counts`; NaN of no values."""
    return float(np.average(values, weights=counts)) if len(values) else math.nan


def largest(values: np.ndarray) -> float:
    """The largest of the values that are known; NaN if none is."""
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else math.nan
