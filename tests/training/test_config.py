"""Configurations: presets, the way to JSON and back, and what is refused."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.multi_network import MultiNetwork
from windvane.errors import InputError
from windvane.networks import Architecture
from windvane.replay.diverse import DiverseReplay
from windvane.training.config import FORMAT, TrainConfig
from windvane.training.parts import run_schedules
from windvane.training.runner import chunks
from windvane.training.settings import Hyperparameters
from windvane.weights import FixedWeights

OTHERS = {
    "env": "dst", "observation": "features", "agent": "naive", "replay": "sel",
    "weights": "regular", "precision": "float32", "seeds": (7, 2), "weights_every": 3,
    "trajectories": 9, "encoder_depth": 2, "reuse": "partial",
}  # fmt: skip


def test_the_way_to_json_and_back_for_every_setting() -> None:
    changes = dict(OTHERS)
    for field in fields(TrainConfig):
        if field.name not in changes:
            changes[field.name] = type(field.default)(field.default / 2)
    config = TrainConfig(**changes)
    text = json.dumps(config.to_json())
    assert TrainConfig.from_json(json.loads(text)) == config
    defaults = asdict(TrainConfig())
    assert all(value != defaults[name] for name, value in asdict(config).items())


def test_every_part_gets_its_settings() -> None:
    config = TrainConfig.preset("quick-dst", gamma=0.9, width=32, clip_norm=3, trajectories=12)
    trainer = config.build()
    for name in Hyperparameters.__dataclass_fields__:
        assert getattr(trainer.settings, name) == getattr(config, name)
    assert trainer.architecture == Architecture(32, 3, 1, "float32")
    assert isinstance(trainer.replay, DiverseReplay)
    assert trainer.replay.trajectories == 12
    several = TrainConfig.preset("quick-dst", agent="mn", kappa=0.1, reuse="partial", room=5)
    assert several.build().agent == MultiNetwork(0.1, "partial", 5)
    assert TrainConfig().build().replay.trajectories == 10_000  # type: ignore[attr-defined]


def test_the_papers_presets() -> None:
    minecart, dst = TrainConfig.preset("paper-minecart"), TrainConfig.preset("paper-dst")
    assert minecart == TrainConfig()
    assert (minecart.steps, minecart.capacity, minecart.batch_size) == (1_000_000, 100_000, 64)
    assert (minecart.gamma, minecart.epsilon_start, minecart.epsilon_end) == (0.98, 1.0, 0.05)
    assert (dst.steps, dst.capacity, dst.batch_size, dst.gamma) == (100_000, 10_000, 16, 0.95)
    assert (dst.epsilon_start, dst.epsilon_end, dst.epsilon_steps) == (0.1, 0.01, 10_000)
    assert (dst.reward_scale, dst.width, dst.observation) == (0.01, 512, "pixels")
    assert int(minecart.build().schedule.every) == 50_000  # type: ignore[attr-defined]
    assert int(dst.build().schedule.every) == 5_000  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "changes",
    [{"agent": name} for name in ("cn", "cn-active", "cn-uvfa", "uvfa", "mn", "mo", "naive")]
    + [{"replay": name} for name in ("standard", "der", "sel", "exp")]
    + [{"weights": "regular"}, {"env": "minecart"}],
)
def test_all_names_are_built(changes: dict[str, Any]) -> None:
    assert TrainConfig.preset("quick-dst", **changes).build() is not None


def test_parts_of_the_users_own() -> None:
    agent, weights = ConditionedNetwork(train_on="active"), FixedWeights([0.5, 0.5])
    trainer = TrainConfig.preset("quick-dst").build(agent=agent, weights=weights)
    assert trainer.agent == agent
    assert trainer.schedule is weights


def test_seeds_are_a_number_or_a_list() -> None:
    assert TrainConfig(seeds=3).seed_numbers == (0, 1, 2)
    assert TrainConfig(seeds=(4, 9)).seed_numbers == (4, 9)


def test_runs_have_every_kind_of_weights_and_every_seed() -> None:
    both = TrainConfig(weights=("sparse", "regular"), seeds=(4, 9))
    assert both.kinds == ("sparse", "regular")
    assert both.run_names == (
        "sparse-seed-4", "sparse-seed-9", "regular-seed-4", "regular-seed-9",
    )  # fmt: skip
    assert both.runs[2] == TrainConfig(weights="regular", seeds=(4,))
    assert TrainConfig.from_json(json.loads(json.dumps(both.to_json()))) == both
    one = TrainConfig(weights=("regular",))
    assert one == TrainConfig(weights="regular")
    assert one.run_names == ("seed-0",)
    schedules = run_schedules(both, both.build().schedule)
    assert schedules.chosen.tolist() == [0, 0, 1, 1]
    assert schedules.schedules[0].every.tolist() == [50_000] * 4


@pytest.mark.parametrize(
    "changes",
    [{}, {"steps": 999_984, "update_interval": 3}, {"steps": 40}, {"chunk": 1}, {"chunk": 10**9}],
)
def test_chunks_cover_all_steps_with_few_lengths(changes: dict[str, Any]) -> None:
    config = TrainConfig(**changes)
    found = list(chunks(config))
    assert [c.first for c in found] == [0, *(c.last for c in found[:-1])]
    assert found[-1].last == config.steps
    assert [c.learning for c in found] == [False] + [True] * (len(found) - 1)
    assert len({c.last - c.first for c in found[1:]}) <= 2
    assert all((c.last - c.first) % config.update_interval == 0 for c in found)


@pytest.mark.parametrize("steps", [1_000_000, 100_000, 30_000, 2_000])
def test_a_usual_number_of_steps_has_no_rest(steps: int) -> None:
    """A rest would have to be compiled apart."""
    lengths = {c.last - c.first for c in list(chunks(TrainConfig(steps=steps)))[1:]}
    assert len(lengths) == 1
    assert min(lengths) > 300


@pytest.mark.parametrize("chunk", [4, 8, 28, 100, 1000])
def test_chunks_are_never_much_shorter_than_asked_for(chunk: int) -> None:
    """Even where the number of cycles, here 997, can be divided by nothing."""
    config = TrainConfig(steps=100 + 4 * 997, chunk=chunk)
    lengths = [c.last - c.first for c in list(chunks(config))[1:-1]]
    assert min(lengths) >= chunk / 8


BAD: list[tuple[dict[str, Any], str]] = [
    ({"env": "chess"}, "unknown env 'chess'; choose one of: minecart, dst"),
    ({"env": 3}, "env must be one of minecart, dst, not 3"),
    ({"agent": "dqn"}, "cn-active"),
    ({"steps": 0}, "steps must be a whole number from 1 to 2147483647, not 0"),
    ({"steps": 1e6}, "1000000.0"),
    ({"steps": 10}, "steps must be a multiple of update_interval, 4, not 10"),
    ({"weights_every": -1}, "weights_every"),
    ({"weights": "often"}, "unknown weights 'often'; choose one of: sparse, regular"),
    ({"weights": ()}, "at least one kind of weight changes"),
    ({"weights": ("sparse", "often")}, "unknown weights 'often'"),
    ({"weights": ("sparse", "sparse")}, "weights must differ from one another"),
    ({"weights": ("sparse", "regular"), "weights_every": 5}, "not sparse and regular, or leave"),
    ({"seeds": 0}, "the number of seeds must be a whole number of at least 1, not 0"),
    ({"seeds": ()}, "at least one seed"),
    ({"seeds": (1, 1)}, "seeds must differ from one another, not [1, 1]"),
    ({"seeds": (1, -1)}, "-1"),
    ({"seeds": "many"}, "many"),
    ({"gamma": 0}, "gamma must be a number above 0 and at most 1, not 0"),
    ({"gamma": float("nan")}, "nan"),
    ({"gamma": "0.9"}, "'0.9'"),
    ({"momentum": 1}, "momentum must be a number of at least 0 and below 1, not 1"),
    ({"learning_rate": 0}, "learning_rate must be a number above 0, not 0"),
    ({"epsilon_start": 0.01}, "epsilon_end must be at most epsilon_start, 0.01, not 0.05"),
    ({"batch_size": 65, "capacity": 64}, "batch_size must be at most the capacity, 64, not 65"),
    ({"capacity": 1, "batch_size": 1}, "capacity must be at least 2 for der, not 1"),
    ({"width": True}, "True"),
    ({"precision": "float16"}, "bfloat16"),
    ({"checkpoint_seconds": -1}, "checkpoint_seconds"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_values_are_one_sentence(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError) as complaint:
        TrainConfig(**changes)
    assert message in str(complaint.value)
    assert "\n" not in str(complaint.value)


def test_unknown_presets_and_settings() -> None:
    with pytest.raises(InputError, match="unknown preset 'fast'; choose one of: paper-minecart"):
        TrainConfig.preset("fast")
    with pytest.raises(InputError, match="unknown setting 'lr'"):
        TrainConfig.preset("paper-dst", lr=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps({"format": FORMAT + 1, "magic": 1}), "written by a newer Windvane"),
        (json.dumps({"format": FORMAT, "magic": 1}), "unknown setting 'magic'"),
        (json.dumps({"format": FORMAT, "env": "chess"}), "unknown env 'chess'"),
        (json.dumps([1]), "is no configuration"),
        ("{", "is not JSON"),
    ],
)
def test_bad_files(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        TrainConfig.load(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        TrainConfig.load(tmp_path / "none.json")
