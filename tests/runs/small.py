"""One small training for all tests: every other shape would be compiled anew."""

from pathlib import Path
from typing import Any

import numpy as np

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
    }  # fmt: skip
    return TrainConfig.preset("quick-dst", **(settings | changes))


def same_records(a: Records, b: Records) -> bool:
    return list(a) == list(b) and all(
        a[name].dtype == b[name].dtype and np.array_equal(a[name], b[name], equal_nan=True)
        for name in a
    )


def files_of(folder: Path) -> dict[str, bytes]:
    """What a run folder holds; pictures of the same training must not differ in a byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
