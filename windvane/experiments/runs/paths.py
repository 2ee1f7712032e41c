"""Where a run is kept in a store. The path follows from the run's configuration alone."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from windvane.experiments.runs.cells import cell_of, changed_settings
from windvane.training.config import TrainConfig

STORE_FORMAT = 1
"""Raised when the meaning of a stored run changes, or the default of a setting."""
RUNS = "runs"
CONTENT = "content"


def relative_path(run: TrainConfig) -> Path:
    """The path of a run in any store: its problem, its cell, then a fingerprint of all other
    settings, and its seed.
    """
    (seed,) = run.seed_numbers
    name = f"{fingerprint(run)}-seed-{seed}.parquet"
    return Path(RUNS) / slug(run.env) / slug(str(cell_of(run))) / name


def fingerprint(run: TrainConfig) -> str:
    """A short name for all settings that are not in the names of the problem and of the cell.

    Only settings that differ from their defaults count, so that runs keep their paths when settings
    are added, whose defaults must mean what was before. A default that changes needs another
    `STORE_FORMAT`, which counts, too.
    """
    # Names that a path cannot hold as they are, such as import paths, could share one.
    cell = {name: part for name, part in cell_of(run)._asdict().items() if slug(part) != part}
    return short_hash({"format": STORE_FORMAT, **changed_settings(run), **cell})


def short_hash(values: dict[str, Any]) -> str:
    """Ten letters and digits for plain values, others for others."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def slug(name: str) -> str:
    """A name as part of a path: everything but letters, digits, dots, dashes and underscores is
    replaced.
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "unnamed"
