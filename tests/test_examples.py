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


def test_the_template_in_the_docs_is_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "environments.md").read_text()
    blocks = [block.partition("```")[0] for block in page.split("```python\n")]
    template = next(block for block in blocks if block.startswith("class VanState"))
    assert template in (EXAMPLES / "native_environment.py").read_text()


def test_an_environment_of_one_s_own_runs() -> None:
    command = [sys.executable, "-m", "examples.native_environment"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stderr
    assert "slow: parcels 1.00, energy" in done.stdout


@pytest.mark.slow
def test_what_a_buffer_holds_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "content.png"
    size = ["--capacity", "2000", "--weights", "2", "--steps", "2000"]
    command = [sys.executable, "-m", "examples.replay_content", "--out", str(picture), *size]
    done = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_a_policy_follows_a_tariff(tmp_path: Path) -> None:
    picture = tmp_path / "tariff.png"
    command = [sys.executable, "-m", "examples.follow_a_tariff", "--steps", "2000"]
    command += ["--out", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000
