"""Configurations: presets, the way to JSON and back, formats of before, and what is refused."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

from tests.formats import OLD
from windvane.errors import InputError
from windvane.registry import Arguments
from windvane.runs.runner import chunks
from windvane.training.build import build, run_schedules
from windvane.training.config import FORMAT, MAX_RUNS, TrainConfig
from windvane.training.presets import PRESETS, preset_for

OTHERS: dict[str, Any] = {
    "env": "mo:four-room-v0", "env_args": {"maze": [["x", 1]], "render": None},
    "observation": "features", "agent": "mn", "agent_args": {"kappa": 0.5, "reuse": "partial"},
    "replay": "none", "replay_args": {"trajectories": 9}, "schedule": "regular",
    "schedule_args": {"every": 3}, "seeds": (7, 2), "precision": "float32", "num_envs": 2,
    "vector_mode": "async", "frame_stack": 3, "frame_size": 84, "time_limit": 50,
    "encoder_depth": 2, "evaluate_every": 500, "oracle": False, "rollout": 5, "dueling": False,
    "layer_norm": True, "feature_scaling": "signed", "average_decay": 0.9, "clip_targets": 7.0,
    "start_from": "a.safetensors", "start_checksum": "01" * 32,
    "custom": {"agent": {"type": "a.B", "fingerprint": "0123"}},
}  # fmt: skip


def test_the_way_to_json_and_back_for_every_setting() -> None:
    changes = dict(OTHERS)
    for field in fields(TrainConfig):
        if field.name not in changes:
            changes[field.name] = type(field.default)(field.default / 2)
    config = TrainConfig(**changes)
    text = json.dumps(config.to_json())
    back = TrainConfig.from_json(json.loads(text))
    assert back == config
    assert hash(back) == hash(config)
    defaults = TrainConfig()
    assert all(getattr(back, f.name) != getattr(defaults, f.name) for f in fields(TrainConfig))
    assert json.loads(text)["format"] == FORMAT
    assert set(json.loads(text)) == {"format", *(f.name for f in fields(TrainConfig))}


def test_arguments_are_names_with_values() -> None:
    texts = TrainConfig(agent="mn", agent_args=("kappa=0.5", "reuse=partial"))
    assert texts == TrainConfig(agent="mn", agent_args={"reuse": "partial", "kappa": 0.5})
    assert texts.agent_args == Arguments({"kappa": 0.5, "reuse": "partial"})
    assert texts != TrainConfig(agent="mn")


NOW: dict[str, Any] = {
    "env": "dst", "observation": "features", "steps": 480, "seeds": (3, 5), "gamma": 0.95,
    "learning_rate": 0.005, "epsilon_start": 0.1, "epsilon_end": 0.001, "epsilon_steps": 10000,
    "batch_size": 8, "learning_starts": 80, "reward_scale": 0.01, "weight_history_size": 4096,
    "width": 8, "depth": 2, "precision": "float32", "capacity": 200, "chunk": 80,
    "checkpoint_seconds": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ({}, {}),
        ({"agent": "mn", "kappa": 0.1, "reuse": "partial", "room": 5},
         {"agent": "mn", "agent_args": {"kappa": 0.1, "reuse": "partial", "max_policies": 5}}),
        ({"agent": "mn"}, {"agent": "mn"}),
        # Other agents never looked at what is mn's.
        ({"agent": "uvfa", "kappa": 0.1, "room": 5}, {"agent": "uvfa"}),
        ({"trajectories": 12}, {"replay_args": {"trajectories": 12}}),
        ({"replay": "sel", "trajectories": 12}, {"replay": "sel"}),
        ({"weights_every": 100}, {"schedule_args": {"every": 100}}),
        ({"weights": "regular", "weights_every": 3},
         {"schedule": "regular", "schedule_args": {"every": 3}}),
        ({"weights": ["sparse", "regular"]}, {"schedule": ("sparse", "regular")}),
        ({"seeds": 3, "encountered": 16}, {"seeds": 3, "weight_history_size": 16}),
    ],
)  # fmt: skip
def test_the_first_format(old: dict[str, Any], now: dict[str, Any]) -> None:
    loaded = TrainConfig.from_json(json.loads(json.dumps(OLD | old)))
    assert loaded == TrainConfig(**(NOW | now))
    assert build(loaded) is not None


def test_the_first_format_is_not_mixed_with_this_one() -> None:
    with pytest.raises(InputError, match="unknown setting 'encountered'"):
        TrainConfig.from_json(OLD | {"format": FORMAT})


def test_the_papers_presets() -> None:
    minecart, dst = TrainConfig.preset("paper-minecart"), TrainConfig.preset("paper-dst")
    assert minecart == TrainConfig()
    assert (minecart.steps, minecart.capacity, minecart.batch_size) == (1_000_000, 100_000, 64)
    assert (minecart.gamma, minecart.epsilon_start, minecart.epsilon_end) == (0.98, 1.0, 0.05)
    assert (dst.steps, dst.capacity, dst.batch_size, dst.gamma) == (100_000, 10_000, 16, 0.95)
    assert (dst.epsilon_start, dst.epsilon_end, dst.epsilon_steps) == (0.1, 0.01, 10_000)
    assert (dst.reward_scale, dst.width, dst.observation) == (0.01, 512, "pixels")
    assert int(build(minecart).schedule.every) == 50_000  # type: ignore[union-attr]
    assert int(build(dst).schedule.every) == 5_000  # type: ignore[union-attr]


def test_presets_by_environment() -> None:
    assert TrainConfig.for_env("dst", steps=40) == TrainConfig.preset("paper-dst", steps=40)
    assert TrainConfig.for_env("minecart") == TrainConfig()
    other = TrainConfig.for_env("mo:four-room-v0")
    assert (other.env, other.observation) == ("mo:four-room-v0", "auto")
    assert [preset_for(env) for env in ("minecart", "my.module:make")] == [
        "paper-minecart", "default",
    ]  # fmt: skip
    suited = {"minecart": "fast-minecart", "dst": "fast-dst", "mo:four-room-v0": "fast"}
    assert {env: preset_for(env, "pqn") for env in suited} == suited
    assert TrainConfig.for_env("dst", agent="pqn") == TrainConfig.preset("fast-dst")
    for name in PRESETS:
        assert TrainConfig.preset(name) == TrainConfig(**PRESETS[name])
    with pytest.raises(InputError, match="unknown env 'chess'"):
        TrainConfig.for_env("chess")


def test_seeds_are_a_number_or_a_list() -> None:
    assert TrainConfig(seeds=3).seed_numbers == (0, 1, 2)
    assert TrainConfig(seeds=(4, 9)).seed_numbers == (4, 9)


def test_runs_have_every_schedule_and_every_seed() -> None:
    both = TrainConfig(schedule=("sparse", "regular"), seeds=(4, 9))
    assert both.schedules == ("sparse", "regular")
    assert both.run_names == (
        "sparse-seed-4", "sparse-seed-9", "regular-seed-4", "regular-seed-9",
    )  # fmt: skip
    assert both.runs[2] == TrainConfig(schedule="regular", seeds=(4,))
    assert TrainConfig.from_json(json.loads(json.dumps(both.to_json()))) == both
    one = TrainConfig(schedule=("regular",))
    assert one == TrainConfig(schedule="regular")
    assert one.run_names == ("seed-0",)
    schedules = run_schedules(both, build(both).schedule)
    assert schedules.chosen.tolist() == [0, 0, 1, 1]
    assert schedules.schedules[0].every.tolist() == [50_000] * 4
    fixed = TrainConfig(schedule=("0.5,0.5", "a.b:c"))
    assert fixed.run_names == ("0.5-0.5-seed-0", "a.b-c-seed-0")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"steps": 999_984, "update_interval": 3},
        {"steps": 40},
        {"chunk": 1},
        {"chunk": 10**9},
        {"num_envs": 16},
    ],
)
def test_chunks_cover_all_steps_with_few_lengths(changes: dict[str, Any]) -> None:
    config = TrainConfig(**changes)
    found = list(chunks(config))
    assert [c.start for c in found] == [0, *(c.stop for c in found[:-1])]
    assert found[-1].stop == config.steps
    assert [c.learning for c in found] == [False] + [True] * (len(found) - 1)
    assert len({c.stop - c.start for c in found[1:]}) <= 2
    assert all((c.stop - c.start) % config.cycle_steps == 0 for c in found)


@pytest.mark.parametrize("steps", [1_000_000, 100_000, 30_000, 2_000])
def test_a_usual_number_of_steps_has_no_rest(steps: int) -> None:
    """A rest would have to be compiled apart."""
    lengths = {c.stop - c.start for c in list(chunks(TrainConfig(steps=steps)))[1:]}
    assert len(lengths) == 1
    assert min(lengths) > 300


@pytest.mark.parametrize("chunk", [4, 8, 28, 100, 1000])
def test_chunks_are_never_much_shorter_than_asked_for(chunk: int) -> None:
    """Even where the number of cycles, here 997, can be divided by nothing."""
    config = TrainConfig(steps=100 + 4 * 997, chunk=chunk)
    lengths = [c.stop - c.start for c in list(chunks(config))[1:-1]]
    assert min(lengths) >= chunk / 8


BAD: list[tuple[dict[str, Any], str]] = [
    ({"env": "chess"}, "unknown env 'chess'; choose one of: minecart, dst"),
    ({"env": 3}, "unknown env 3; choose one of: minecart, dst"),
    ({"env": "a" * 300}, "unknown env"),
    ({"env_args": 3}, "env_args must be names with values, such as time_limit=50, not 3"),
    ({"env_args": ("time_limit",)}, "env_args must be of the form name=value"),
    ({"env_args": {"limit": float("nan")}}, "env_args must be plain JSON values"),
    ({"observation": "sound"}, "unknown observation 'sound'; choose one of: auto, pixels"),
    ({"agent": "dqn"}, "cn-active"),
    ({"agent": None}, "unknown agent None"),
    ({"agent_args": {"kappa": object()}}, "agent_args must be plain JSON values"),
    ({"replay": "all"}, "unknown replay 'all'; choose one of: standard, der"),
    ({"custom": 3}, "custom must be names with values"),
    ({"steps": 0}, "steps must be a whole number from 1 to 2147483647, not 0"),
    ({"steps": 1e6}, "1000000.0"),
    ({"steps": 10}, "steps must be a multiple of update_interval, 4, not 10"),
    ({"num_envs": 3}, "num_envs, 3, does not go with update_interval, 4: one must be a multiple"),
    ({"num_envs": 8, "steps": 12}, "a multiple of 8, the steps of a cycle, such as 8, not 12"),
    ({"num_envs": 2**17}, "num_envs must be a whole number from 1 to 65536"),
    ({"vector_mode": "thread"}, "unknown vector_mode 'thread'; choose one of: sync, async"),
    ({"frame_stack": 0}, "frame_stack"),
    ({"frame_size": 2000}, "frame_size must be a whole number from 1 to 1024, not 2000"),
    ({"time_limit": 0}, "time_limit"),
    ({"evaluate_every": 0}, "evaluate_every"),
    ({"oracle": 1}, "oracle must be true or false, not 1"),
    ({"schedule_args": ("every",)}, "schedule_args"),
    ({"schedule": "often"}, "unknown schedule 'often'; choose one of: sparse, regular"),
    ({"schedule": "0.5,0.6"}, "must sum to 1"),
    ({"schedule": 3}, "unknown schedule 3"),
    ({"schedule": ()}, "at least one schedule"),
    ({"schedule": ("sparse", "often")}, "unknown schedule 'often'"),
    ({"schedule": ("sparse", "sparse")}, "schedules must differ from one another"),
    (
        {"schedule": ("sparse", "regular"), "schedule_args": {"every": 5}},
        "choose one of sparse and regular, or leave",
    ),
    ({"seeds": MAX_RUNS, "schedule": ("sparse", "regular")}, "at most 10,000 runs"),
    ({"seeds": MAX_RUNS + 1}, "the number of seeds"),
    ({"capacity": 2**31}, "capacity"),
    ({"weight_history_size": 0}, "weight_history_size"),
    ({"priority_exponent": 101}, "priority_exponent must be a number of at least 0 and at most"),
    ({"priority_offset": 0}, "priority_offset must be a number above 0 and at most 1e+30, not 0"),
    ({"seeds": 0}, "the number of seeds must be a whole number from 1 to 10000, not 0"),
    ({"seeds": ()}, "at least one seed"),
    ({"seeds": (1, 1)}, "seeds must differ from one another, not [1, 1]"),
    ({"schedule": ("live:w.txt", "sparse")}, "live:FILE, must be the only schedule"),
    ({"seeds": (1, -1)}, "-1"),
    ({"seeds": "many"}, "many"),
    ({"gamma": 0}, "gamma must be a number above 0 and at most 1, not 0"),
    ({"gamma": float("nan")}, "nan"),
    ({"gamma": "0.9"}, "'0.9'"),
    ({"momentum": 1}, "momentum must be a number of at least 0 and below 1, not 1"),
    ({"learning_rate": 0}, "learning_rate must be a number above 0 and at most 1e+30, not 0"),
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
    with pytest.raises(InputError, match="unknown preset 'quick'; choose one of: paper-minecart"):
        TrainConfig.preset("quick")
    with pytest.raises(InputError, match="unknown setting 'lr'"):
        TrainConfig.preset("paper-dst", lr=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps({"format": FORMAT + 1, "magic": 1}), "written by a newer Windvane"),
        (json.dumps({"format": FORMAT, "magic": 1}), "unknown setting 'magic'"),
        (json.dumps({"format": FORMAT, "env": "chess"}), "unknown env 'chess'"),
        (json.dumps([1]), "is no configuration"),
        (json.dumps({"format": True}), "is no configuration"),
        (json.dumps({"format": "2"}), "is no configuration"),
        ("{", "is not valid JSON"),
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


def test_a_presets_arguments_are_for_its_own_parts() -> None:
    assert TrainConfig.preset("envelope").schedule_args == Arguments({"distribution": "normal"})
    other = TrainConfig.preset("envelope", agent="cn", schedule="sparse")
    assert other.agent_args == other.schedule_args == Arguments({})
    more = TrainConfig.preset("envelope", agent_args={"num_weights": 2})
    assert more.agent_args == Arguments({"distribution": "normal", "num_weights": 2})
    given = TrainConfig.preset("envelope", schedule="sparse", schedule_args={"every": 7})
    assert given.schedule_args == Arguments({"every": 7})
