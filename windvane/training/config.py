"""What a training run is made of, as plain values: checked, written to JSON and read back.

What may not live here: how parts are built from it (see `build`), or anything that trains.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

import jax

from windvane.agents import AGENTS
from windvane.envs.resolve import check_env
from windvane.errors import LARGEST_COUNT, InputError, choose, is_number, require_int, shown
from windvane.files import read_json
from windvane.registry import CUSTOM, Arguments
from windvane.replay import REPLAYS
from windvane.replay.setup import NONE
from windvane.schedules import LIVE, check_schedule
from windvane.training.presets import PRESETS, preset_for
from windvane.training.settings import (
    ObservationName,
    PrecisionName,
    ScalingName,
    Settings,
    VectorMode,
)

FORMAT = 2
"""Raised when the meaning of a written configuration changes."""

MAX_RUNS = 10_000
"""Runs that one training may have."""
MAX_SCHEDULES = 100
SMALLEST = 1e-30
"""What is nearer to 0 but not 0 itself is lost in 32 bits."""

ADDED_LATER = (
    "rollout", "dueling", "layer_norm", "average_decay", "adam_epsilon", "clip_targets",
    "feature_scaling", "start_from", "start_checksum",
)  # fmt: skip
"""Settings that files of this format may lack, since they are younger than it."""
RUN_ID = "run_id"
"""Of a run, beside the settings in the file that claims its folder."""
PARTS = ("env", "agent", "replay", "schedule")
"""The parts of a run that have a registry and arguments."""


@dataclass(frozen=True)
class TrainConfig(Settings):
    """A training run, checked. The defaults are the paper's for Minecart, as `paper-minecart`."""

    custom: Any = ()
    """Parts that are objects made in Python, by kind: their type and a fingerprint."""
    start_checksum: Any = None
    """Of the network that `start_from` holds, known once training has begun."""

    def __post_init__(self) -> None:
        for part in PARTS:
            name = f"{part}_args"
            self._set(name, Arguments(getattr(self, name), name))
        self._set("custom", Arguments(self.custom, "custom"))
        check_env(self.env)
        AGENTS.check(self.agent)
        REPLAYS.check(self.replay)
        self._set("schedule", _check_schedules(self.schedule))
        for name, choices in _CHOICES.items():
            _choose(name, getattr(self, name), choices)
        for name in ("oracle", "dueling", "layer_norm"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise InputError(f"{name} must be true or false, not {shown(value)}")
        for name, most in _WHOLE.items():
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                self._set(name, require_int(name, value, 1, most))
        for name, most in _WHOLE_OR_0.items():
            self._set(name, require_int(name, getattr(self, name), 0, most))
        for name, allowed in _NUMBERS.items():
            self._set(name, allowed.check(name, getattr(self, name)))
        self._set("seeds", _check_seeds(self.seeds))
        _check_start(self.start_from, self.start_checksum)
        self._check_together()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        self._check_cycle()
        if self.batch_size > self.capacity:
            raise InputError(
                f"batch_size must be at most the capacity, {self.capacity}, not {self.batch_size}"
            )
        if len(self.schedules) > 1 and any(name.startswith(LIVE) for name in self.schedules):
            raise InputError("weights in a watched file, live:FILE, must be the only schedule")
        if self.schedule_args and len(self.schedules) > 1:
            raise InputError(
                "schedule_args are for one schedule: choose one of "
                f"{' and '.join(self.schedules)}, or leave them out"
            )
        if self.replay != "standard" and self.capacity < 2:
            raise InputError(f"capacity must be at least 2 for {self.replay}, not {self.capacity}")
        if self.epsilon_end > self.epsilon_start:
            raise InputError(
                f"epsilon_end must be at most epsilon_start, {self.epsilon_start:g}, "
                f"not {self.epsilon_end:g}"
            )
        if len(self.seed_numbers) * len(self.schedules) > MAX_RUNS:
            raise InputError(f"a training may have at most {MAX_RUNS:,} runs")

    def _check_cycle(self) -> None:
        if (self.rollout > 0) != (self.replay == NONE):
            raise InputError(
                f"rollout {self.rollout} does not go with replay {self.replay}: agents that learn "
                f"from rollouts, such as pqn, take a rollout such as 32 and replay {NONE}, and all "
                "others rollout 0 and a replay rule"
            )
        interval, envs = self.update_interval, self.num_envs
        if not self.rollout and self.steps % interval:
            raise InputError(
                f"steps must be a multiple of update_interval, {interval}, not {self.steps}"
            )
        if not self.rollout and interval % envs and envs % interval:
            raise InputError(
                f"num_envs, {envs}, does not go with update_interval, {interval}: one must be a "
                "multiple of the other"
            )
        if self.steps % self.cycle_steps:
            below = self.steps // self.cycle_steps * self.cycle_steps
            raise InputError(
                f"steps must be a multiple of {self.cycle_steps}, the steps of a cycle, such as "
                f"{below or self.cycle_steps}, not {self.steps}"
            )

    @property
    def cycle_steps(self) -> int:
        """Steps of one cycle: act and observe so often, then learn."""
        if self.rollout:
            return self.num_envs * self.rollout
        return max(self.update_interval, self.num_envs)

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds, for each schedule."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def schedules(self) -> tuple[str, ...]:
        """The schedules by name."""
        return (self.schedule,) if isinstance(self.schedule, str) else self.schedule

    @property
    def runs(self) -> tuple["TrainConfig", ...]:
        """Each of the runs, as a configuration of that run alone."""
        return tuple(
            replace(self, schedule=schedule, seeds=(seed,))
            for schedule in self.schedules
            for seed in self.seed_numbers
        )

    @property
    def run_names(self) -> tuple[str, ...]:
        """A name for each run: its seed and, where they differ in it, its schedule."""
        several = len(self.schedules) > 1
        return tuple(
            f"{f'{_file_name(schedule)}-' if several else ''}seed-{seed}"
            for schedule in self.schedules
            for seed in self.seed_numbers
        )

    def args(self, part: str) -> Arguments:
        """The arguments of one of `PARTS`."""
        return getattr(self, f"{part}_args")

    def resolved(self) -> "TrainConfig":
        """The same with nothing left to the machine, so that it can be resumed elsewhere."""
        if self.precision != "auto":
            return self
        on_cpu = jax.default_backend() == "cpu"
        return replace(self, precision="float32" if on_cpu else "bfloat16")

    @staticmethod
    def preset(name: str, **changes: Any) -> "TrainConfig":
        """The paper's settings, or others by name, with some of them changed."""
        _choose("preset", name, tuple(PRESETS))
        known = {field.name for field in fields(TrainConfig)}
        for change in changes:
            choose("setting", change, sorted(known))
        return TrainConfig(**(PRESETS[name] | with_preset_args(name, changes)))

    @staticmethod
    def for_env(env: str, **changes: Any) -> "TrainConfig":
        """The settings that suit an environment and an agent, with some of them changed."""
        preset = preset_for(check_env(env), changes.get("agent"))
        return TrainConfig.preset(preset, **({"env": env} | changes))

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` understands."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"format": FORMAT} | {
            name: value.to_json() if isinstance(value, Arguments) else value
            for name, value in values.items()
        }

    @staticmethod
    def from_json(values: Any, source: str = "the configuration") -> "TrainConfig":
        """The configuration that `to_json` was called on; `source` is for complaints."""
        form = values.get("format") if isinstance(values, dict) else None
        if not isinstance(values, dict) or type(form) is not int or form < 1:
            raise InputError(f"{source} is no configuration of a training run")
        if form > FORMAT:
            raise InputError(
                f"{source} was written by a newer Windvane (format {form}, and this one reads up "
                f"to {FORMAT}): install a newer one"
            )
        values = _from_format_1(values) if form < 2 else values
        known = {field.name for field in fields(TrainConfig)}
        rest = {name: value for name, value in values.items() if name not in ("format", RUN_ID)}
        rest = _with_average_decay(rest)
        unknown = sorted(str(name) for name in set(rest) - known)
        if unknown:
            raise InputError(f"{source} has an unknown setting {shown(unknown[0])}")
        for name in ("seeds", "schedule"):
            if isinstance(rest.get(name), list):
                rest[name] = tuple(rest[name])
        try:
            config = TrainConfig(**rest)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error
        missing = sorted(known - set(rest) - set(ADDED_LATER))
        if missing and form == FORMAT:
            raise InputError(f"{source} lacks the setting {missing[0]!r}")
        return config

    @staticmethod
    def load(path: str | Path) -> "TrainConfig":
        """Read a JSON file."""
        return TrainConfig.from_json(read_json(Path(path)), str(path))


def with_preset_args(preset: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, with the preset's arguments of each part that is the preset's own; arguments that
    are given come on top. Another part gets none of them.
    """
    base, found = PRESETS[preset], dict(settings)
    for part in PARTS:
        name = f"{part}_args"
        if name not in base:
            continue
        if found.get(part, base.get(part)) != base.get(part):
            found.setdefault(name, {})
        elif name in found:
            found[name] = {**base[name], **Arguments(found[name], name)}
    return found


def _from_format_1(values: dict[str, Any]) -> dict[str, Any]:
    """Settings as the first format named them, under their names of today."""
    old = dict(values)
    moved = {
        "agent_args": ({"kappa": 0.01, "reuse": "full", "room": 24}, {"room": "max_policies"}),
        "replay_args": ({"trajectories": None}, {}),
        "schedule_args": ({"weights_every": None}, {"weights_every": "every"}),
    }
    for name, (defaults, names) in moved.items():
        given = {key: old.pop(key) for key in defaults if key in old}
        changed = {key: value for key, value in given.items() if value != defaults[key]}
        if name == "agent_args" and old.get("agent") != "mn":
            changed = {}  # only mn looked at them
        if name == "replay_args" and old.get("replay", "der") != "der":
            changed = {}
        old[name] = {names.get(key, key): value for key, value in changed.items()}
    for before, now in {"weights": "schedule", "encountered": "weight_history_size"}.items():
        if before in old:
            old[now] = old.pop(before)
    return old


def _with_average_decay(values: dict[str, Any]) -> dict[str, Any]:
    """Settings in which the average of networks is not yet an argument of the agent pqn."""
    args = values.get("agent_args")
    if "average_decay" in values or values.get("agent") != "pqn" or not isinstance(args, dict):
        return values
    rest = {name: value for name, value in args.items() if name != "average_decay"}
    return values | {"agent_args": rest, "average_decay": args.get("average_decay", 0.999)}


@dataclass(frozen=True)
class _Range:
    """Numbers from `low` to `high`; each bound may be left out itself."""

    low: float
    high: float | None = None
    open_low: bool = False
    open_high: bool = False

    def check(self, name: str, value: Any) -> float:
        good = is_number(value) and (value > self.low if self.open_low else value >= self.low)
        if good and self.high is not None:
            good = value < self.high if self.open_high else value <= self.high
        if not good:
            raise InputError(f"{name} must be a number {self}, not {shown(value)}")
        if 0 < abs(value) < SMALLEST:
            raise InputError(f"{name} must be 0 or at least {SMALLEST:g}, not {value!r}")
        return float(value)

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.open_low else f"of at least {self.low:g}"
        if self.high is None:
            return low
        return f"{low} and {'below' if self.open_high else 'at most'} {self.high:g}"


_CHOICES: dict[str, tuple[str, ...]] = {
    "observation": get_args(ObservationName),
    "precision": get_args(PrecisionName),
    "vector_mode": get_args(VectorMode),
    "feature_scaling": get_args(ScalingName),
}
_OPTIONAL = ("frame_size", "time_limit", "evaluate_every")
_WHOLE = dict.fromkeys(
    ("steps", "epsilon_steps", "update_interval", "target_interval", "learning_starts", "chunk",
     "time_limit", "evaluate_every"),
    LARGEST_COUNT,
) | {
    "batch_size": 65_536, "weight_history_size": 2**24, "capacity": 2**27, "width": 16_384,
    "depth": 64, "num_envs": 65_536, "frame_stack": 64, "frame_size": 1_024,
}  # fmt: skip
_WHOLE_OR_0 = {"one_hot": 65_536, "rollout": 65_536, "encoder_depth": 64}
_POSITIVE, _SHARE = _Range(0, 1e30, open_low=True), _Range(0, 1)
_NUMBERS = {
    "gamma": _Range(0, 1, open_low=True),
    "learning_rate": _POSITIVE,
    "momentum": _Range(0, 1, open_high=True),
    "adam_epsilon": _POSITIVE,
    "clip_norm": _POSITIVE,
    "clip_targets": _Range(0, 1e30),
    "epsilon_start": _SHARE,
    "epsilon_end": _SHARE,
    "reward_scale": _POSITIVE,
    "average_decay": _Range(0, 1, open_high=True),
    "priority_exponent": _Range(0, 100),
    "priority_offset": _POSITIVE,
    "checkpoint_seconds": _Range(0, 1e9),
}


def _choose(name: str, value: Any, choices: Collection[str]) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")
    choose(name, value, choices)


def _check_schedules(schedule: Any) -> str | tuple[str, ...]:
    names = tuple(schedule) if isinstance(schedule, list | tuple) else (schedule,)
    if len(names) > MAX_SCHEDULES:
        raise InputError(f"there may be at most {MAX_SCHEDULES} schedules, not {len(names):,}")
    if not names:
        raise InputError("there must be at least one schedule, and the list is empty")
    for name in names:
        check_schedule(name)
    if len(set(names)) < len(names):
        raise InputError(f"schedules must differ from one another, not {shown(list(names))}")
    return names[0] if len(names) == 1 else names


def _check_seeds(seeds: Any) -> int | tuple[int, ...]:
    if not isinstance(seeds, list | tuple):
        return require_int("the number of seeds", seeds, 1, MAX_RUNS)
    if not seeds:
        raise InputError("there must be at least one seed, and the list of seeds is empty")
    if len(seeds) > MAX_RUNS:
        raise InputError(f"there may be at most {MAX_RUNS:,} seeds, not {len(seeds):,}")
    numbers = tuple(require_int("a seed", seed, 0, LARGEST_COUNT) for seed in seeds)
    if len(set(numbers)) < len(numbers):
        raise InputError(f"seeds must differ from one another, not {shown(list(numbers))}")
    return numbers


def _check_start(start: Any, checksum: Any) -> None:
    if start is not None and not (isinstance(start, str) and start):
        raise InputError(f"start_from must be the path of a saved policy, not {shown(start)}")
    if checksum is None:
        return
    if start is None:
        raise InputError("start_checksum is for runs with start_from, and there is none")
    if not (isinstance(checksum, str) and re.fullmatch("[0-9a-f]{64}", checksum)):
        raise InputError(f"start_checksum must be a SHA-256 sum or None, not {shown(checksum)}")


def _file_name(schedule: str) -> str:
    """A schedule's name as part of a file's."""
    name = schedule.removeprefix(CUSTOM)
    return "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in name)
