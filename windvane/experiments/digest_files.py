"""Digests in a small file, to publish where the records of all episodes would be too large.

`digest.parquet` has a row a run; `runs.csv` has the same but for the curves, to look at, and is
never read.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import InputError, in_one_line
from windvane.experiments.digest import POINTS, Digest
from windvane.experiments.store import one_run
from windvane.files import atomic_write, make_folder
from windvane.training.records import Records, read_table, write_table

DIGEST, LINES = "digest.parquet", "runs.csv"
_NAMES = ("env", "observation", "agent", "replay", "weights", "steps")
_NUMBERS = ("seed", "failed", "episodes", "overall", "last")
_ORIGIN = ("version", "commit", "device", "precision", "jax", "python", "date", "side_by_side",
           "seconds")  # fmt: skip
_POINTS = tuple(f"k{k:03d}" for k in range(1, POINTS + 1))


def write_digests(digests: Sequence[Digest], folder: Path) -> list[Path]:
    """Write both files; what was there is replaced."""
    make_folder(folder)
    digests = sorted(digests, key=lambda d: (d.config.env, *d.cell, _config(d)))
    write_table(folder / DIGEST, _columns(digests))
    text = _lines(digests)
    atomic_write(folder / LINES, lambda file: file.write(text.encode()))
    return [folder / DIGEST, folder / LINES]


def read_digests(folder: Path) -> list[Digest]:
    """What was written; of a folder without a digest, nothing."""
    if not _there(folder / DIGEST):
        if _there(folder / "curves.parquet"):
            raise InputError(f"the digest in {folder} is of an earlier version: make it anew")
        return []
    try:
        table = read_table(folder / DIGEST)
        curves = np.stack([table[point] for point in _POINTS], 1).astype(float)
        plain = {name: table[name].tolist() for name in (*_NUMBERS, "origin", "config")}
        rows = (dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True))
        return [_read(row, curve) for row, curve in zip(rows, curves, strict=True)]
    except InputError as error:
        raise InputError(f"cannot read the digest in {folder}: {error}") from error
    except Exception as error:  # a damaged file may fail in any way
        raise InputError(f"the digest in {folder} is damaged: {in_one_line(error)}") from error


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _read(row: dict[str, Any], curve: np.ndarray) -> Digest:
    return Digest(
        config=one_run(json.loads(row["config"]), DIGEST),
        failed=bool(row["failed"]),
        episodes=int(row["episodes"]),
        overall=float(row["overall"]),
        last=float(row["last"]),
        curve=curve,
        origin=json.loads(row["origin"]),
    )


def _columns(digests: Sequence[Digest]) -> Records:
    curves = np.stack([digest.curve for digest in digests]).astype(np.float32)
    return {
        **{name: np.asarray([getattr(d.config, name) for d in digests]) for name in _NAMES},
        **{name: np.asarray([getattr(d, name) for d in digests]) for name in _NUMBERS},
        "origin": np.asarray([json.dumps(d.origin) for d in digests]),
        "config": np.asarray([_config(d) for d in digests]),
        **dict(zip(_POINTS, curves.T, strict=True)),
    }


def _lines(digests: Sequence[Digest]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow((*_NAMES, *_NUMBERS, *_ORIGIN, "config"))
    for one in digests:
        names = [getattr(one.config, name) for name in _NAMES]
        numbers = [getattr(one, name) for name in _NUMBERS]
        origin = [one.origin.get(name, "") for name in _ORIGIN]
        lines.writerow([*names, *numbers, *origin, _config(one)])
    return text.getvalue()


def _config(one: Digest) -> str:
    return json.dumps(one.config.to_json())
