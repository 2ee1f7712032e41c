"""What is known of cells alone, as the records of their runs were not kept: `cells.csv`, which a
person writes beside the summaries of the runs.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from windvane.errors import InputError
from windvane.experiments.report.summary import CellNote, RunSummary
from windvane.experiments.runs.paths import relative_path
from windvane.files import faults_of, path_exists, read_text

NOTES = "cells.csv"
COLUMNS = ("runs", "seeds", "overall_over_time", "last_over_time", "exploded", "source")
"""`runs` is what the paths of a cell's runs begin with, such as minecart/cn-der-sparse/5e5fbf8b21;
`seeds`, and the `exploded` among them, are numbers with spaces in between."""


def with_notes(summaries: Sequence[RunSummary], folder: Path) -> list[RunSummary]:
    """The summaries, each with the note about its cell if the folder has one."""
    notes = read_notes(folder)
    noted = []
    for summary in summaries:
        note = notes.get(cell_path(summary))
        told = note is not None and summary.seed in note.seeds
        noted.append(replace(summary, note=note) if told else summary)
    return noted


def cell_path(summary: RunSummary) -> str:
    """What the paths of a cell's runs begin with."""
    path = relative_path(summary.config)
    return f"{path.parts[-3]}/{path.parts[-2]}/{path.name.rpartition('-seed-')[0]}"


def read_notes(folder: Path) -> dict[str, CellNote]:
    """The notes in a folder by `cell_path`; none if there is no file."""
    path = folder / NOTES
    if not path_exists(path):
        return {}
    with faults_of(path, "the table of cells"):
        lines = csv.DictReader(io.StringIO(read_text(path)))
        if tuple(lines.fieldnames or ()) != COLUMNS:
            raise InputError(f"its columns must be {', '.join(COLUMNS)}")
        return dict(_read(line) for line in lines)


def _read(line: dict[str, str]) -> tuple[str, CellNote]:
    try:
        note = CellNote(
            seeds=_seeds(line["seeds"]),
            overall_over_time=float(line["overall_over_time"]),
            last_over_time=float(line["last_over_time"]),
            exploded=_seeds(line["exploded"]),
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"the line of {line['runs']} has something else than numbers") from error
    return line["runs"], note


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))
