"""What the studies share: a grid trained with some settings changed, and numbers beside the
paper's.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from windvane.experiments.grid import Grid
from windvane.experiments.published import PeriodName, published_regret
from windvane.experiments.reproduce import reproduce
from windvane.experiments.store import Store


def trained(grid: Grid, folder: Path, seeds: int, console: Console, **settings: Any) -> list[Path]:
    """The files of all runs of a grid; those that are not in the store are trained first."""
    outcome = reproduce(grid, folder, seeds=seeds, console=console, **settings)
    for batch, reason in outcome.failures.items():
        raise SystemExit(f"{batch} failed: {reason}")
    return [Store(folder).path(run) for run in grid.runs(seeds, **settings)]


def printed(problem: str, cell: tuple[str, str, str]) -> list[float | None]:
    """The paper's regrets of a cell (agent, replay, weights): overall, and at the end."""
    agent, replay, weights = cell
    periods = get_args(PeriodName)
    return [published_regret(problem, weights, agent, replay, period) for period in periods]


def pair(regrets: Iterable[float | None]) -> str:
    """Regret overall and at the end as text."""
    return " / ".join("-" if x is None else f"{x:.3f}" for x in regrets)
