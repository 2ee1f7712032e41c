"""Digests in two small files, to publish where the records of all episodes would be too large.

`runs.csv` has a line a run, to read; `curves.parquet` has a row a run, in the same order.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from windvane.errors import InputError, in_one_line
from windvane.experiments.digest import POINTS, Digest
from windvane.training.config import TrainConfig
from windvane.training.files import make_folder, write_whole
from windvane.training.records import read_table, write_table

RUNS, CURVES = "runs.csv", "curves.parquet"
_NAMES = ("env", "observation", "agent", "replay", "weights", "steps")
_ORIGIN = ("version", "commit", "device", "precision", "jax", "python", "date", "side_by_side",
           "seconds")  # fmt: skip
_COLUMNS = (*_NAMES, "seed", "failed", "episodes", "overall", "last", *_ORIGIN, "config")


def write_digests(digests: Sequence[Digest], folder: Path) -> list[Path]:
    """Write both files; what was there is replaced."""
    make_folder(folder)
    digests = sorted(digests, key=lambda d: (d.config.env, *d.cell, json.dumps(_config(d))))
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for one in digests:
        names = [getattr(one.config, name) for name in _NAMES]
        numbers = [one.seed, one.failed, one.episodes, repr(one.overall), repr(one.last)]
        origin = [one.origin.get(name, "") for name in _ORIGIN]
        lines.writerow([*names, *numbers, *origin, json.dumps(_config(one))])
    write_whole(folder / RUNS, lambda file: file.write(text.getvalue().encode()))
    curves = np.stack([one.curve for one in digests]).astype(np.float32)
    write_table(folder / CURVES, {f"k{k + 1:03d}": curves[:, k] for k in range(POINTS)})
    return [folder / RUNS, folder / CURVES]


def read_digests(folder: Path) -> list[Digest]:
    """What was written; of a folder without such files, nothing."""
    if not (folder / RUNS).exists():
        return []
    try:
        rows = list(csv.DictReader((folder / RUNS).read_text().splitlines()))
        table = read_table(folder / CURVES)
        curves = np.stack([table[f"k{k + 1:03d}"] for k in range(POINTS)], 1).astype(float)
        return [_read(row, curve) for row, curve in zip(rows, curves, strict=True)]
    except InputError:
        raise
    except Exception as error:  # a damaged file may fail in any way
        raise InputError(f"the digest in {folder} is damaged: {in_one_line(error)}") from error


def _read(row: dict[str, str], curve: np.ndarray) -> Digest:
    origin: dict = {name: row[name] for name in _ORIGIN if row[name]}
    for name, kind in (("side_by_side", int), ("seconds", float)):
        origin |= {name: kind(origin[name])} if name in origin else {}
    return Digest(
        config=TrainConfig.from_json(json.loads(row["config"]), f"{RUNS}, a line"),
        failed=row["failed"] == "True",
        episodes=int(row["episodes"]),
        overall=float(row["overall"]),
        last=float(row["last"]),
        curve=curve,
        origin=origin,
    )


def _config(one: Digest) -> dict:
    return one.config.to_json()
