"""kill -9 at any moment of a grid: the same command ends with the store of one that ran through."""

from pathlib import Path
from random import Random

import pytest

from tests.experiments.small_grid import content
from tests.runs.lives import live, names, start

PROGRAM = """
import sys
from pathlib import Path
from tests.experiments.small_grid import run_small

result = run_small(Path(sys.argv[1]))
sys.exit(1 if result.failures else 3 if result.busy else 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("renames", [False, True])
def test_a_grid_killed_at_twenty_five_moments(renames: bool, whole: Path, tmp_path: Path) -> None:
    cache, out, draw = tmp_path / "cache", tmp_path / "out", Random(int(renames))
    killed = number = 0
    while killed < 25:
        code = live(PROGRAM, cache, out, out, renames=renames, draw=draw)
        if code == -9:
            killed += 1
            continue
        # It was quicker: on with another.
        assert code == 0
        assert content(out) == content(whole)
        number += 1
        out = tmp_path / f"out-{number}"
    assert start(PROGRAM, cache, out).wait() == 0
    assert content(out) == content(whole)
    there = {Path(name).relative_to(out) for name in names(out)}
    assert there == {Path(name).relative_to(whole) for name in names(whole)}
