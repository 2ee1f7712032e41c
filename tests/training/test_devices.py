"""Runs that are shared out over several devices."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, jax
from windvane import TrainConfig, train

config = TrainConfig.preset(
    "quick-dst", agent="mo", replay="standard", steps=400, chunk=80, learning_starts=80, width=8,
    depth=1, capacity=200, batch_size=8, seeds=4, schedule_args={"every": 100},
)
result = train(config, progress=False)
records = {name: result.records[name].tolist() for name in ("run", "step", "regret")}
print(json.dumps([len(jax.devices()), records]))
"""


ROLLOUTS = """
import json, jax
from windvane import TrainConfig, train

config = TrainConfig.preset(
    "fast-dst", num_envs=16, rollout=4, steps=640, chunk=128, width=8, seeds=1,
    agent_args={"minibatches": 2}, epsilon_steps=300,
)
result = train(config, progress=False)
records = {name: result.records[name].tolist() for name in ("run", "step", "regret")}
print(json.dumps([len(jax.devices()), records]))
"""


def records_with(devices: int, program: str) -> dict[str, list[float]]:
    flags = f"--xla_force_host_platform_device_count={devices}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        check=True,
    )
    number, records = json.loads(done.stdout)
    assert number == devices
    return records


@pytest.mark.slow
@pytest.mark.parametrize("program", [PROGRAM, ROLLOUTS], ids=["runs", "environments"])
def test_devices_share_the_runs_or_the_environments_of_one(program: str) -> None:
    one, two = records_with(1, program), records_with(2, program)
    assert one["step"] == two["step"]
    assert one["run"] == two["run"]
    np.testing.assert_allclose(one["regret"], two["regret"], atol=1e-6)
