"""kill -9 at any moment: resuming leads to the same records and policies as never having died."""

import random
from pathlib import Path

import pytest

from tests.runs.lives import live, start
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


@pytest.mark.slow
@pytest.mark.parametrize("renames", [False, True])
def test_killed_at_twenty_five_moments(renames: bool, tmp_path: Path) -> None:
    moments, cache, draw = 25, tmp_path / "cache", random.Random(int(renames))
    # Enough for each life to end before the training does.
    steps, killed, whole = 1000 * moments, tmp_path / "killed", tmp_path / "whole"
    for _ in range(moments):
        code = live(PROGRAM, cache, killed, steps, killed, renames=renames, draw=draw)
        assert code == -9, "it must be killed before it is finished"
    assert start(PROGRAM, cache, steps, killed, whole).wait() == 0
    assert results_of(killed) == results_of(whole)
