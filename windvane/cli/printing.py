"""What several commands print and write: tables of numbers that say their unit, and CSV files."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from windvane.files import atomic_write
from windvane.progress import say

if TYPE_CHECKING:
    from windvane.training.config import TrainConfig

NOT_KNOWN = "-"
"""Stands for a number that is not known."""


def unit(config: "TrainConfig") -> str:
    """What the numbers of a run mean."""
    return f"discounted by {config.gamma:g}, rewards times {config.reward_scale:g}"


def number(value: Any) -> str:
    """A number in a table."""
    return f"{value:.4f}" if np.isfinite(value) else NOT_KNOWN


def mean(values: np.ndarray) -> float:
    """The mean of what is known; NaN if nothing is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def begin_table(console: Console, title: str, columns: Sequence[str]) -> Table:
    """Print a title and return the table, to be filled, whose first column is text."""
    say(console, title)
    table = Table()
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index else "left")
    return table


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    """Write a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    atomic_write(path, lambda file: file.write(text.getvalue().encode()))
    return path
