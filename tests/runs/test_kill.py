"""kill -9 at any moment: resuming leads to the same records and policies as never having died."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runs.small import results_of

PROGRAM = """
import sys
from pathlib import Path
from windvane import TrainConfig, resume, train

for folder in map(Path, sys.argv[2:]):
    config = TrainConfig.preset(
        "quick-dst", agent="mo", replay="standard", steps=int(sys.argv[1]), chunk=20,
        learning_starts=20, width=8, depth=1, capacity=200, batch_size=8, seeds=2,
        schedule_args={"every": 100}, checkpoint_seconds=0,
    )
    if (folder / "config.json").exists():
        resume(folder, progress=False)
    else:
        train(config, out=folder, progress=False)
"""


def start(cache: Path, steps: int, *folders: Path) -> "subprocess.Popen[bytes]":
    # Compiled once: what is tested lies after that.
    env = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    arguments = map(str, (steps, *folders))
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], env=env)


def names(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def kill_and_go_on(tmp_path: Path, moments: int) -> None:
    # Enough for each life to end before the training does.
    draw, steps = random.Random(moments), 1000 * moments
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for _ in range(moments):
        before = names(killed)
        process = start(tmp_path / "cache", steps, killed)
        while process.poll() is None and names(killed) <= before:
            time.sleep(0.005)
        time.sleep(draw.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (killed / "summary.json").exists(), "it must be killed before it is finished"
    assert start(tmp_path / "cache", steps, killed, whole).wait() == 0
    assert results_of(killed) == results_of(whole)


@pytest.mark.slow
def test_killed_at_twenty_moments(tmp_path: Path) -> None:
    kill_and_go_on(tmp_path, 20)
