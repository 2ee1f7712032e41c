"""One small training, made by the command itself, for all tests of commands."""

import tempfile
from functools import cache
from pathlib import Path

from windvane.cli import main

STEPS = 200
SMALL = (
    f"--steps {STEPS} --learning-starts 40 --chunk 40 --width 8 --depth 2 --capacity 100 "
    "--batch-size 8 --checkpoint-seconds 0"
).split()
CONCAVE = [
    *("train", "--env", "dst", "--env-args", "map=concave", "--observation", "features"),
    *("--seeds", "3", "5", "--evaluate-every", "100", "--schedule-args", "every=50"),
]
ROOT = tempfile.TemporaryDirectory(prefix="windvane-cli-")


@cache
def finished() -> Path:
    """The folder of two runs on the concave map of Deep Sea Treasure."""
    folder = Path(ROOT.name) / "concave"
    assert main([*CONCAVE, *SMALL, "--out", str(folder)]) == 0
    return folder


@cache
def gymnasium_run() -> Path:
    """The folder of a run on an environment of `tests.cli.strangers`, without an oracle."""
    folder = Path(ROOT.name) / "gymnasium"
    line = "train --env tests.cli.strangers:Corridor --env-args length=4 --schedule 0.3,0.7"
    assert main([*line.split(), *SMALL, "--out", str(folder)]) == 0
    return folder
