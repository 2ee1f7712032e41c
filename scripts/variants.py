"""What the studies share: a grid trained with some settings changed."""

from pathlib import Path
from typing import Any

from rich.console import Console

from windvane.experiments.grid import Grid
from windvane.experiments.reproduce import reproduce
from windvane.experiments.store import Store


def trained(grid: Grid, folder: Path, seeds: int, console: Console, **settings: Any) -> list[Path]:
    """The files of all runs of a grid; those that are not in the store are trained first."""
    outcome = reproduce(grid, folder, seeds=seeds, console=console, **settings)
    for batch, reason in outcome.failures.items():
        raise SystemExit(f"{batch} failed: {reason}")
    return [Store(folder).path(run) for run in grid.runs(seeds, **settings)]
