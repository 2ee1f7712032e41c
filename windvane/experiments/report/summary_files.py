"""Summaries of runs in a small file, to publish where the records of all episodes are too large.

`digest.parquet` has a row per run; `runs.csv` has the same without the curves, for people, and is
never read.
"""

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

from windvane.errors import LARGEST_COUNT, InputError
from windvane.experiments.report.summary import POINTS, RunSummary
from windvane.experiments.runs.frames import (
    faults_of,
    numbers,
    read_frame,
    read_object,
    require_columns,
    texts,
    whole_numbers,
)
from windvane.experiments.runs.paths import relative_path
from windvane.experiments.runs.provenance import check_provenance
from windvane.experiments.runs.store import one_run
from windvane.files import atomic_write, make_folder, path_exists
from windvane.runs.tables import Records, write_table

SUMMARIES, LINES = "digest.parquet", "runs.csv"
_REGRET, _UTILITY = ("overall", "last"), ("overall_utility", "last_utility")
_OVER_TIME = ("overall_over_time", "last_over_time")
_LOSS = ("largest_loss", "loss_limit")
_COUNTS = ("seed", "failed", "episodes")
_PROVENANCE = (
    "version", "commit", "device", "precision", "jax", "python", "date", "parallel_runs", "seconds",
)  # fmt: skip
_REGRET_CURVE = tuple(f"k{k:03d}" for k in range(1, POINTS + 1))
_UTILITY_CURVE = tuple(f"u{k:03d}" for k in range(1, POINTS + 1))


def write_summaries(summaries: Sequence[RunSummary], folder: Path) -> list[Path]:
    """Write both files, in place of those that are there."""
    make_folder(folder)
    summaries = sorted(summaries, key=lambda s: (s.config.env, *s.cell, _config(s)))
    write_table(folder / SUMMARIES, _columns(summaries))
    text = _lines(summaries)
    atomic_write(folder / LINES, lambda file: file.write(text.encode()))
    return [folder / SUMMARIES, folder / LINES]


def read_summaries(folder: Path) -> list[RunSummary]:
    """What was written; of a folder without the file, nothing."""
    path = folder / SUMMARIES
    if not path_exists(path):
        if path_exists(folder / "curves.parquet"):
            raise InputError(f"the summaries in {folder} are of an earlier version: make them anew")
        return []
    with faults_of(path, "a summary of runs"):
        return _parse(read_frame(path)[0])


def _parse(frame: pl.DataFrame) -> list[RunSummary]:
    """Check all columns, then read the rows. Columns of utility came later than the others, and
    after them those of means over time and of losses.
    """
    configs = [
        one_run(read_object(text, "a configuration"), "a row") for text in texts(frame, "config")
    ]
    # The first versions call it the origin.
    source = "provenance" if "provenance" in frame.columns else "origin"
    provenances = [
        check_provenance(read_object(text, "a provenance")) for text in texts(frame, source)
    ]
    paths = [relative_path(config) for config in configs]
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise InputError(f"it has the run {twice} twice")
    failed = _truths(frame, "failed")
    episodes = whole_numbers(frame, "episodes", 0, LARGEST_COUNT).to_list()
    overall, last = (numbers(frame, name, allow_nan=True).to_list() for name in _REGRET)
    curves = _curves(frame, _REGRET_CURVE)
    if (np.diff(np.isnan(curves).astype(int), axis=1) < 0).any():
        raise InputError("a curve of regret is a sum, and cannot be known again after a gap")
    if any(name in frame.columns for name in (*_UTILITY, *_UTILITY_CURVE)):
        utility, last_utility = (numbers(frame, n, allow_nan=True).to_list() for n in _UTILITY)
        utility_curves = list(_curves(frame, _UTILITY_CURVE))
    else:
        utility = last_utility = [math.nan] * len(frame)
        utility_curves = [np.full(POINTS, math.nan)] * len(frame)
    over_time, last_over_time = (_later(frame, name) for name in _OVER_TIME)
    losses, limits = (_later(frame, name) for name in _LOSS)
    return [
        RunSummary(
            config=configs[row],
            failed=failed[row],
            episodes=episodes[row],
            overall=overall[row],
            last=last[row],
            curve=curves[row],
            provenance=provenances[row],
            overall_utility=utility[row],
            last_utility=last_utility[row],
            utility_curve=None if np.isnan(utility_curves[row]).all() else utility_curves[row],
            overall_over_time=over_time[row],
            last_over_time=last_over_time[row],
            largest_loss=losses[row],
            loss_limit=limits[row],
        )
        for row in range(len(frame))
    ]


def _later(frame: pl.DataFrame, name: str) -> list[float]:
    """A column that summaries of earlier versions lack: not a number for each of their runs."""
    if name not in frame.columns:
        return [math.nan] * len(frame)
    return numbers(frame, name, allow_nan=True).to_list()


def _curves(frame: pl.DataFrame, names: tuple[str, ...]) -> Float[np.ndarray, "runs points"]:
    require_columns(frame, names)
    return np.stack([numbers(frame, name, allow_nan=True).to_numpy() for name in names], 1)


def _truths(frame: pl.DataFrame, name: str) -> list[bool]:
    require_columns(frame, (name,))
    if frame[name].dtype != pl.Boolean or frame[name].null_count():
        raise InputError(f"the column {name!r} must be of truth values, not of {frame[name].dtype}")
    return frame[name].to_list()


def _names(summary: RunSummary) -> dict[str, Any]:
    """The columns that say at a glance what was run."""
    config = summary.config
    names = {"env": config.env, "observation": config.observation, **summary.cell._asdict()}
    return names | {"steps": config.steps}


def _columns(summaries: Sequence[RunSummary]) -> Records:
    names = [_names(summary) for summary in summaries]
    unknown = np.full(POINTS, math.nan)
    curves = np.stack([s.curve for s in summaries]).astype(np.float32)
    utility_curves = np.stack(
        [unknown if s.utility_curve is None else s.utility_curve for s in summaries]
    ).astype(np.float32)
    return {
        **{name: np.asarray([each[name] for each in names]) for name in names[0]},
        **{
            name: np.asarray([getattr(s, name) for s in summaries])
            for name in (*_COUNTS, *_REGRET, *_UTILITY, *_OVER_TIME, *_LOSS)
        },
        "provenance": np.asarray([json.dumps(s.provenance) for s in summaries]),
        "config": np.asarray([_config(s) for s in summaries]),
        **dict(zip(_REGRET_CURVE, curves.T, strict=True)),
        **dict(zip(_UTILITY_CURVE, utility_curves.T, strict=True)),
    }


def _lines(summaries: Sequence[RunSummary]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    numbers = (*_COUNTS, *_REGRET, *_UTILITY, *_OVER_TIME, *_LOSS)
    lines.writerow((*_names(summaries[0]), *numbers, *_PROVENANCE, "config"))
    for summary in summaries:
        provenance = [summary.provenance.get(name, "") for name in _PROVENANCE]
        values = [getattr(summary, name) for name in numbers]
        lines.writerow([*_names(summary).values(), *values, *provenance, _config(summary)])
    return text.getvalue()


def _config(summary: RunSummary) -> str:
    return json.dumps(summary.config.to_json())
