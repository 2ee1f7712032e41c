"""What commands print and write: tables of numbers that say their unit, and CSV files."""

import csv
import io
from collections.abc import Sequence
from itertools import pairwise
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


def print_table(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    footer: Sequence[Sequence[str]] = (),
) -> None:
    """Print a table whose first column names its rows; `footer` holds rows below a line.

    Numbers are never folded. Where the console is too narrow, headers break at their spaces and
    long names are folded; where that is not enough, the columns are divided among several tables.
    """
    say(console, title if len(title) <= console.width else title.replace(" (", "\n("))
    cells = [max(map(len, column)) for column in zip(*rows, *footer, strict=True)]
    whole = [max(len(name), cell) for name, cell in zip(columns, cells, strict=True)]
    headers, parts = columns, [range(1, len(columns))]
    if _width(whole) > console.width:
        headers = [name.replace(" ", "\n") for name in columns]
        parts = _divide(headers, cells, console.width)
    for part in parts:
        table = Table()
        table.add_column(headers[0], overflow="fold")
        for index in part:
            table.add_column(headers[index], justify="right", no_wrap=True)
        for block in (rows, footer):
            for row in block:
                table.add_row(row[0], *(row[index] for index in part))
            table.add_section()
        console.print(table)


def _divide(headers: Sequence[str], cells: Sequence[int], width: int) -> list[range]:
    """Indices of the columns after the first, in as few even parts as fit in `width`."""
    words = [max(map(len, header.split("\n"))) for header in headers]
    first, *rest = (max(pair) for pair in zip(words, cells, strict=True))
    first = min(first, width // 3)
    parts: list[range] = []
    for count in range(1, len(rest) + 1):
        edges = [1 + round(len(rest) * index / count) for index in range(count + 1)]
        parts = [range(*pair) for pair in pairwise(edges)]
        if all(_width([first, *(rest[index - 1] for index in part)]) <= width for part in parts):
            break
    return parts


def _width(columns: Sequence[int]) -> int:
    """Characters of a table's line: every column has a space on both sides and a border."""
    return sum(columns) + 3 * len(columns) + 1


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    """Write a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    atomic_write(path, lambda file: file.write(text.getvalue().encode()))
    return path
