"""The memory that a training needs is known before anything is allocated."""

import json
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.runs.small import small
from windvane import InputError, resume, train
from windvane.cli import main
from windvane.machine import memory_bytes
from windvane.training import memory
from windvane.training.build import build
from windvane.training.config import TrainConfig


def size_of(tree: Any) -> int:
    """Bytes of arrays; random keys are counted as the numbers they are made of."""

    def plain(leaf: Any) -> Any:
        key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return jax.random.key_data(leaf) if key else leaf

    return sum(plain(leaf).nbytes for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize(
    "config",
    [
        small(),
        small(env="tests.cli.strangers:Corridor", env_args={"length": 4}, observation="auto"),
        TrainConfig.preset("fast-dst", width=8, num_envs=8, rollout=16, steps=1024, seeds=2),
    ],
    ids=["fused", "host", "rollouts"],
)
def test_the_estimate_is_of_what_the_runs_hold(config: TrainConfig) -> None:
    training = build(config, trusted=("env",))
    session = training.session()
    session.begin(None, 0)
    held = size_of(session.state.learner)
    found = memory.estimate(training.config, training.learner, training.world)
    kept = {part.what: part.bytes for part in found}
    total = kept["networks"] + kept["replay buffers"] + kept["past weights"]
    assert total == 2 * held
    session.close()


@pytest.mark.parametrize(
    ("changes", "what", "settings"),
    [
        ({"width": 16384, "depth": 64}, "networks", "width or depth, or fewer seeds"),
        ({"capacity": 2**27, "seeds": 50}, "replay buffers", "capacity, or fewer seeds"),
        (
            {"weight_history_size": 2**24, "seeds": (1,), "schedule": ("sparse", "regular"),
             "schedule_args": {}},
            "past weights",
            "weight_history_size, or fewer seeds",
        ),
        (
            {"batch_size": 2**16, "capacity": 2**16, "width": 8192, "depth": 1, "seeds": (1,)},
            "gradients and networks",
            "width or depth or batch_size$",
        ),
    ],
)  # fmt: skip
def test_what_no_machine_holds_is_refused(
    changes: dict[str, Any],
    what: str,
    settings: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**28)
    out = tmp_path / "out"
    message = rf"needs about .* GiB of memory, .* for {what}, and this machine has 0.2 GiB"
    with pytest.raises(InputError, match=f"{message}: choose a smaller {settings}"):
        train(small(**changes), out=out)
    assert not out.exists()


def test_copies_in_processes_and_rollouts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**30)
    env = {"env": "tests.cli.strangers:Corridor", "observation": "auto"}
    settings = env | {"num_envs": 512, "update_interval": 512, "steps": 512, "seeds": 1}
    build(small(**settings), trusted=("env",))
    with pytest.raises(InputError, match=r"for environments, and .* choose a smaller num_envs$"):
        build(small(**settings, vector_mode="async"), trusted=("env",))
    pixels = TrainConfig.preset(
        "fast-minecart-pixels", width=8, num_envs=2048, rollout=32, steps=65536
    )
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**29)
    with pytest.raises(InputError, match=r"for rollouts, and .* choose a smaller num_envs or roll"):
        build(pixels)


def test_a_run_from_a_larger_machine_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(small().to_json()))
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**10)
    with pytest.raises(InputError, match="this training needs about"):
        resume(folder)
    monkeypatch.setattr(memory, "memory_bytes", lambda: None)
    build(small())


def test_an_accelerator_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        platform = "gpu"

        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 2**33}

    monkeypatch.setattr(jax, "local_devices", lambda: [Device(), Device()])
    assert memory.available() == (2**34, "all accelerators")


def test_this_machine_has_memory() -> None:
    size = memory_bytes()
    assert size is None or 2**28 < size < 2**50


@pytest.mark.parametrize(
    "flags",
    [
        "--seeds 2147483648",
        "--seeds 10001",
        "--width 100000",
        "--width 16384 --depth 64",
        "--capacity 300000000",
        "--capacity 134217728 --seeds 5000",
        "--priority-exponent 1e30",
        "--depth 2000",
        "--num-envs 65536",
    ],
)
def test_absurd_sizes_are_one_sentence(
    flags: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["train", "--preset", "quick-dst", *flags.split(), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("windvane: ")
    assert said.count("\n") == 1
    assert not out.exists()
