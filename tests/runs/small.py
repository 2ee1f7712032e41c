"""One small training for all tests: every other shape would be compiled anew."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from windvane.runs import checkpoint
from windvane.runs.tables import Records
from windvane.training.config import TrainConfig

STEPS = 480
STOPS = (80, 160, 240, 320, 400)
"""Where its chunks end, but for the last."""


def small(**changes: Any) -> TrainConfig:
    settings = {
        "steps": STEPS, "learning_starts": 80, "chunk": 80, "seeds": (3, 5), "width": 8, "depth": 2,
        "capacity": 200, "batch_size": 8, "schedule_args": {"every": 100},
        "checkpoint_seconds": 0.0,
        # As files of earlier versions have it: the preset had no average then.
        "average_decay": 0.0,
    }  # fmt: skip
    return TrainConfig.preset("quick-dst", **(settings | changes))


def same_records(a: Records, b: Records) -> bool:
    return list(a) == list(b) and all(
        a[name].dtype == b[name].dtype and np.array_equal(a[name], b[name], equal_nan=True)
        for name in a
    )


def files_of(folder: Path) -> dict[str, bytes]:
    """What a run folder holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def results_of(folder: Path) -> dict[str, bytes]:
    """What the folder of a finished training holds, which must not differ in a byte for the same
    training. Two things name the training itself: the configuration, with its id, and the summary,
    with the sum of the configuration.
    """
    found = files_of(folder)
    for name in ("config.json", "summary.json"):
        values = {
            key: value
            for key, value in json.loads(found[name]).items()
            if key not in ("run_id", "sums")
        }
        found[name] = json.dumps(values).encode()
    return found


def state_of(folder: Path) -> dict[str, bytes]:
    """The arrays of the last checkpoint, whoever's it is."""
    with np.load(checkpoint.saved(folder)[-1]) as archive:
        return {name: archive[name].tobytes() for name in archive if name != "header"}


def without_sums(folder: Path) -> None:
    """Make a finished training one of an earlier version, which has no sums of its files."""
    path = folder / "summary.json"
    values = json.loads(path.read_text())
    del values["sums"]
    path.write_text(json.dumps(values))
