"""The examples run; what they need and is not there, they say in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from examples.own_agent import Neighbours
from examples.own_replay_rule import KeepsEndings
from windvane.agents.core import WeightHistory

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("own_agent", [], "custom:Neighbours: regret 0."),
        ("own_replay_rule", [], "custom:KeepsEndings: regret 0."),
        ("shop", ["--steps", "1000"], "of 8 times"),
        ("steer_live", ["--steps", "2000"], "weight vectors"),
    ],
)
def test_examples_of_tutorials_run(
    name: str, arguments: list[str], said: str, tmp_path: Path
) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_a_replay_rule_of_one_s_own_keeps_endings() -> None:
    buffer = KeepsEndings(8, priority_exponent=2.0, priority_offset=0.01)
    state = buffer.init(jnp.asarray(0), jax.random.key(0))
    for index in range(20):
        state = buffer.add(state, jnp.asarray(index), jnp.asarray(index in (3, 9)))
    assert int(buffer.size(state)) == 8
    held = set(state.rows.read(jnp.arange(8)).tolist())
    assert held == {3, 9, 14, 15, 16, 17, 18, 19}  # endings in 2 rows, the newest in 6


def test_an_agent_of_one_s_own_trains_on_neighbours() -> None:
    active = jnp.asarray([[0.8, 0.2]])
    history = WeightHistory.start(active[0], 4)
    weights = Neighbours(reach=0.25).training_weights(active, history, jax.random.key(0), 50)
    assert weights.shape == (50, 2, 2)
    assert jnp.allclose(weights.sum(-1), 1)
    assert jnp.allclose(weights[:, 0], active)
    assert float(jnp.abs(weights[:, 1, 0] - 0.8).max()) <= 0.25 * 0.8 + 1e-6
    assert float(weights[:, 1, 0].std()) > 0.01
