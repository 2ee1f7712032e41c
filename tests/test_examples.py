"""The examples run; what they need and is not there, they say in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_without_torch_its_example_says_so() -> None:
    program = (
        "import runpy, sys; sys.modules['torch'] = None; "
        f"runpy.run_path({str(EXAMPLES / 'torch_replay.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip().count("\n") == 0
    assert "needs PyTorch" in done.stderr


@pytest.mark.slow
def test_what_a_buffer_holds_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "content.png"
    size = ["--capacity", "2000", "--weights", "2", "--steps", "2000"]
    command = [sys.executable, "-m", "examples.replay_content", "--out", str(picture), *size]
    done = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000
