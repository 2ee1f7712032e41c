"""Malformed arguments of the Python interface and of the command line."""

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windvane
from tests.fuzz.attempt import Tally
from tests.runs.small import small
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import Mine, MinecartConfig
from windvane.errors import shown
from windvane.evaluation import evaluate
from windvane.files import make_folder, path_exists, read_json, read_text
from windvane.live import LiveWeights
from windvane.policy import Policy
from windvane.registry import Arguments
from windvane.runs.result import Result
from windvane.runs.runner import resume, train
from windvane.schedules import FixedWeights, WeightSequence, check_schedule
from windvane.spec import EnvSpec
from windvane.training.config import TrainConfig
from windvane.weights import check_weights, parse_weights

NESTED: Any = []
for _ in range(2_000):
    NESTED = [NESTED]

BAD: tuple[Any, ...] = (
    None, True, "text", "", "\0", "x" * 10_000, -1, 0, -0.5, 0.5, 10**7, 2**31, 2**63, 10**400,
    1e308, 1e-300, math.nan, math.inf, 1j, [], {}, [0.5, "a"], ["a", "a"], b"text", object(), print,
    NESTED, np.zeros((2, 2)), np.asarray(["a"]), [10**7] * 3, range(3), float,
)  # fmt: skip
"""What is given where something else is meant."""

BAD_WEIGHTS: tuple[Any, ...] = (
    "ab", "0.5,0.5", [True, False], [0.5, True], [0.5 + 0j, 0.5], [math.nan, 1.0], [0.5] * 3, [0.5],
    [-0.5, 1.5], [math.inf, 0.0], [10**400, 0], ["0.5", "0.5"], [[0.5, 0.5]] * 2, [None, 1.0], {},
    {0.5, 0.25}, 1.0, np.asarray([True, False]), np.asarray(["0.5", "0.5"]), np.ones((2, 2, 2)) / 2,
    np.full(10**6, 1e-6), [0.3, 0.3], NESTED, object(), np.asarray([0.5, 0.5], complex),
    np.asarray([0.5, 0.5], object),
)  # fmt: skip
BAD_PATHS: tuple[Any, ...] = (
    "a\0b", "x" * 5_000, "/".join(["d" * 200] * 40), "/dev/zero", "/dev/null", "/proc/self/mem", "",
    "/nowhere/at/all", ".", "a\nb", "\udcff", "~", "*",
)  # fmt: skip


def setting_cases() -> Iterator[tuple[str, Callable[[], Any], str]]:
    """Every setting of a training with every bad value; most must be named in the sentence."""
    for field in fields(TrainConfig):
        for value in BAD:
            what = f"{field.name}={shown(value):.40}"
            name = {"seeds": "seed", "schedule": "schedule", "capacity": "c"}.get(field.name)
            name = name or field.name.removesuffix("_args")
            yield (
                what,
                lambda f=field.name, v=value: TrainConfig.preset("quick-dst", **{f: v}),
                name,
            )


def weight_cases(policy: Policy) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every door for weights."""
    observation = np.zeros(policy.spec.observation_shape, policy.spec.frame.dtype)
    live = LiveWeights([0.5, 0.5])
    doors: dict[str, Callable[[Any], Any]] = {
        "check_weights": lambda w: check_weights(w, 2),
        "LiveWeights": lambda w: LiveWeights(w).set([0.5, 0.5]),
        "LiveWeights.set": live.set,
        "LiveWeights.from_function": lambda w: LiveWeights.from_function(lambda: w).set([0.5, 0.5]),
        "FixedWeights": lambda w: check_weights(np.asarray(FixedWeights(w).vector), 2),
        "WeightSequence": lambda w: WeightSequence([w, [0.5, 0.5]]),
        "act": lambda w: policy.act(observation, w),
        "plan": policy.plan,
        "evaluate": lambda w: evaluate(policy, w),
        "train": lambda w: train(small(), weights=w, progress=False),
        "optimal_value": lambda w: windvane.optimal_value(DeepSeaTreasure(), 0.9, w),
    }
    for name, door in doors.items():
        for weights in BAD_WEIGHTS:
            if name in ("evaluate", "optimal_value", "act") and np.ndim(_plain(weights)) > 1:
                continue  # rows of weights are meant there
            yield f"{name}({shown(weights):.40})", lambda d=door, w=weights: d(w)


def other_cases(policy: Policy) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All other doors that take a value from outside."""
    shape, dtype = policy.spec.observation_shape, policy.spec.frame.dtype
    doors: dict[str, Callable[[Any], Any]] = {
        "train(env)": lambda v: train(v, "cn", progress=False, steps=7),
        "train(agent)": lambda v: train(small(), _not_none(v), progress=False, steps=7),
        "train(replay)": lambda v: train(small(), replay=_not_none(v), progress=False, steps=7),
        "train(schedule)": lambda v: train(small(), schedule=_not_none(v), progress=False, steps=7),
        "train(optimal)": lambda v: train(small(), optimal=_refused(v), progress=False),
        "train(chunk)": lambda v: train(small(), chunk=_huge(v), steps=2**31 - 8, progress=False),
        "observation": lambda v: policy.act(_other(v, shape, dtype), [0.5, 0.5]),
        "evaluate(episodes)": lambda v: evaluate(policy, episodes=_refused(v)),
        "evaluate(seed)": lambda v: evaluate(policy, [0.5, 0.5, 0.0], seed=v),
        "Arguments": Arguments,
        "schedule": check_schedule,
        "map": DeepSeaTreasure,
        "time_limit": lambda v: DeepSeaTreasure(time_limit=v),
        "pixels": lambda v: DeepSeaTreasure(observation=v),
        "frame_skip": lambda v: Minecart(frame_skip=v),
        "capacity": lambda v: MinecartConfig((Mine(0.5, 0.5, ((0.1, 0.0),)),), v),
        "mines": lambda v: MinecartConfig(v),
        "instance": MinecartConfig.from_dict,
        "spec": lambda v: EnvSpec.from_json(v, "the file"),
        "gamma": lambda v: windvane.optimal_value(DeepSeaTreasure(), v, [0.5, 0.5]),
        "preset": TrainConfig.preset,
        "from_json": TrainConfig.from_json,
        "parse_weights": lambda v: parse_weights(v) if isinstance(v, str) else None,
    }
    for name, door in doors.items():
        for value in BAD:
            yield f"{name}({shown(value):.40})", lambda d=door, v=value: d(v)


def path_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every door for a path."""
    doors: dict[str, Callable[[Any], Any]] = {
        "TrainConfig.load": TrainConfig.load,
        "Policy.load": Policy.load,
        "resume": lambda p: resume(p, progress=False),
        "read_records": windvane.read_records,
        "from_file": LiveWeights.from_file,
        "from_json": MinecartConfig.from_json,
        "map": lambda p: windvane.TrainConfig.for_env("dst", env_args={"map": p}) and _map(p),
        "path_exists": path_exists,
        "read_json": read_json,
        "read_text": read_text,
        "make_folder": lambda p: make_folder(Path(f"/dev/null/{p}")),
        "live": lambda p: train(small(), schedule=f"live:{p}", progress=False),
    }
    for name, door in doors.items():
        for path in BAD_PATHS:
            yield f"{name}({path!r:.40})", lambda d=door, p=path: d(p)


def _map(path: str) -> Any:
    from windvane.envs import ENVS

    return ENVS.make("dst", {"map": path}, "auto")


def _plain(value: Any) -> Any:
    return value if isinstance(value, list | np.ndarray) and value is not NESTED else 0


def _not_none(value: Any) -> Any:
    """Steps are wrong in these, so that nothing is trained; None and callables mean something."""
    return 5 if value is None or callable(value) else value


def _refused(value: Any) -> Any:
    """What is good there is made bad."""
    table = isinstance(value, np.ndarray) and value.dtype == float
    return -1 if value is None or callable(value) or table else value


def _huge(value: Any) -> Any:
    return 2**31 - 1 if isinstance(value, int) and 0 < value < 2**30 else value


def _other(value: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Something else than an observation, or a batch of them, as the network is not to be run."""
    batch = isinstance(value, np.ndarray) and value.shape[-1:] == shape
    return np.zeros((3, *shape, 1), dtype) if batch else value


def test_some_malformed_arguments(finished: Result) -> None:
    tally = Tally()
    for what, action, name in list(setting_cases())[::40]:
        tally.attempt(what, action, (name, "unknown", "must"))
    for cases in (weight_cases, other_cases):
        for what, action in list(cases(finished.policies[0]))[::40]:
            tally.attempt(what, action)
    for what, action in list(path_cases())[::12]:
        tally.attempt(what, action)
    tally.check("arguments")
    assert tally.number > 60


@pytest.mark.slow
def test_all_malformed_settings() -> None:
    tally = Tally()
    for what, action, name in setting_cases():
        tally.attempt(what, action, (name,))
    tally.check("settings")
    assert tally.number > 1_000


@pytest.mark.slow
def test_all_malformed_arguments(finished: Result, capfd: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    policy = finished.policies[0]
    for what, action in (*weight_cases(policy), *other_cases(policy), *path_cases()):
        tally.attempt(what, action)
    with capfd.disabled():
        tally.check("arguments")
    assert tally.number > 900


LINES: tuple[str, ...] = (
    "nonsense", "train --nonsense 1", "train --steps -5", "train --steps 1e9", "train --steps 7",
    "train --env nope", "train --env mo:nope-v0", "train --env a.b:c", "train --env CartPole-v1",
    "train --agent nope", "train --agent a.b:c", "train --replay nope", "train --schedule nope",
    "train --schedule 0.5,0.6", "train --schedule nan,1", "train --schedule live:/nowhere",
    "train --schedule live:/dev/zero", "train --env dst --schedule 0.2,0.3,0.5",
    "train --env-args a", "train --env-args =", "train --env dst --env-args map=nope",
    "train --env dst --env-args map=[[0]]", "train --env-args config=/dev/zero",
    "train --env dst --observation features --chunk 2147483647 --steps 2147483644",
    "train --env dst --observation features --learning-starts 2147483644 --steps 2147483644",
    "train --seeds 10000000", "train --seeds -1", "train --width 0", "train --width 99999999",
    "train --depth 2147483647", "train --gamma 2", "train --gamma nan", "train --learning-rate inf",
    "train --batch-size 0", "train --capacity 0", "train --num-envs 3 --env dst",
    "train --preset nope", "train --evaluate-every 0", "train --agent-args kappa=x --agent mn",
    "train --agent-args nope=1", "train --replay-args trajectories=0", "resume /nowhere",
    "train --schedule-args every=0", "resume /dev/zero", "evaluate /nowhere", "evaluate",
    "evaluate /dev/null --episodes 0", "front /nowhere", "watch /nowhere --weights 0.5,0.5",
    "compare", "compare /nowhere", "compare /nowhere /nowhere", "report /nowhere", "report .",
    "reproduce nope", "reproduce dst --seeds 0", "reproduce dst --cells nope", "oracle nope",
    "reproduce dst --list --seeds 10000000", "reproduce dst --list --skip-completed /nowhere",
    "oracle dst --gamma 0", "oracle dst --gamma nan", "oracle dst --map nope", "oracle dst --map .",
    "oracle dst --config /nowhere", "oracle minecart --map paper", "oracle dst --time-limit 0",
    "oracle minecart --config /dev/zero", "oracle minecart --frame-skip 0", "render dst --size 0",
    "render dst --weights a", "render dst --weights 1", "render dst --weights 0.5,0.6",
    "render dst --out a.nope", "render dst --fps 0", "render dst --seed -1", "render dst --steps 0",
)  # fmt: skip


@pytest.mark.slow
def test_malformed_command_lines(
    finished: Result, capfd: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    tally = Tally()
    for line in LINES:
        tally.command(line, line.split(), capfd)
    for path in BAD_PATHS:
        for command in ("resume", "evaluate", "front", "compare", "report"):
            tally.command(f"{command} {path!r:.40}", [command, path], capfd)
        tally.command("weights", ["evaluate", str(finished.folder), "--weights", path], capfd)
    with capfd.disabled():
        tally.check("command lines")


def test_some_command_lines(capfd: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for line in LINES[::8]:
        tally.command(line, line.split(), capfd)
    tally.check("command lines")
    assert not tally.harmless
