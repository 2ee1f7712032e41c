"""What a training run is made of, as plain values: checked, written to JSON and read back.

What may not live here: how the parts are built from it (see `parts`), or anything that trains.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import jax

from windvane.errors import LARGEST_COUNT, InputError, choose, is_number, require_int
from windvane.training.settings import (
    AgentName,
    EnvName,
    ObservationName,
    PrecisionName,
    PresetName,
    ReplayName,
    ReuseName,
    Settings,
    WeightsName,
)

if TYPE_CHECKING:
    from windvane.training.loop import Trainer

FORMAT = 1
"""Raised when the meaning of a written configuration changes."""


@dataclass(frozen=True)
class TrainConfig(Settings):
    """A training run, checked. The defaults are the paper's for Minecart, as `paper-minecart`."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            _choose(name, getattr(self, name), choices)
        self._set("weights", _check_kinds(self.weights))
        for name, least in _WHOLE.items():
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                self._set(name, require_int(name, value, least, LARGEST_COUNT))
        for name, allowed in _NUMBERS.items():
            self._set(name, allowed.check(name, getattr(self, name)))
        self._set("seeds", _check_seeds(self.seeds))
        self._check_together()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        if self.steps % self.update_interval:
            raise InputError(
                f"steps must be a multiple of update_interval, {self.update_interval}, "
                f"not {self.steps}"
            )
        if self.batch_size > self.capacity:
            raise InputError(
                f"batch_size must be at most the capacity, {self.capacity}, not {self.batch_size}"
            )
        if self.weights_every is not None and len(self.kinds) > 1:
            raise InputError(
                "weights_every counts steps for sparse and episodes for regular weights: choose "
                f"one of them, not {' and '.join(self.kinds)}, or leave it out"
            )
        if self.replay != "standard" and self.capacity < 2:
            raise InputError(f"capacity must be at least 2 for {self.replay}, not {self.capacity}")
        if self.epsilon_end > self.epsilon_start:
            raise InputError(
                f"epsilon_end must be at most epsilon_start, {self.epsilon_start:g}, "
                f"not {self.epsilon_end:g}"
            )

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds, for each kind of weight changes."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def kinds(self) -> tuple[WeightsName, ...]:
        """The kinds of weight changes."""
        return (self.weights,) if isinstance(self.weights, str) else self.weights

    @property
    def runs(self) -> tuple["TrainConfig", ...]:
        """Each of the runs side by side, as a configuration of that run alone."""
        return tuple(
            replace(self, weights=kind, seeds=(seed,))
            for kind in self.kinds
            for seed in self.seed_numbers
        )

    @property
    def run_names(self) -> tuple[str, ...]:
        """A name for each run: its seed and, where they differ in it, its weight changes."""
        several = len(self.kinds) > 1
        return tuple(
            f"{f'{kind}-' if several else ''}seed-{seed}"
            for kind in self.kinds
            for seed in self.seed_numbers
        )

    def resolved(self) -> "TrainConfig":
        """The same with nothing left to the machine, so that it can go on elsewhere."""
        if self.precision != "auto":
            return self
        on_cpu = jax.default_backend() == "cpu"
        return replace(self, precision="float32" if on_cpu else "bfloat16")

    def build(self, **own: Any) -> "Trainer":
        """The parts of the run; `env`, `agent`, `replay` and `weights` may be the user's own."""
        from windvane.training.parts import make_trainer

        return make_trainer(self, **own)

    @staticmethod
    def preset(name: str, **changes: Any) -> "TrainConfig":
        """The paper's settings, or others by name, with some of them changed."""
        _choose("preset", name, get_args(PresetName))
        known = {field.name for field in fields(TrainConfig)}
        for change in changes:
            choose("setting", change, sorted(known))
        return TrainConfig(**(_PRESETS[name] | changes))

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` understands."""
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(values: Any, source: str = "the configuration") -> "TrainConfig":
        """The configuration that `to_json` was called on; `source` is for complaints."""
        if not isinstance(values, dict) or not isinstance(values.get("format"), int):
            raise InputError(f"{source} is no configuration of a training run")
        if values["format"] > FORMAT:
            raise InputError(
                f"{source} was written by a newer Windvane (format {values['format']}, and this "
                f"one reads up to {FORMAT}): install a newer one"
            )
        known = {field.name for field in fields(TrainConfig)}
        rest = {name: value for name, value in values.items() if name != "format"}
        unknown = sorted(set(rest) - known)
        if unknown:
            raise InputError(f"{source} has an unknown setting {unknown[0]!r}")
        for name in ("seeds", "weights"):
            if isinstance(rest.get(name), list):
                rest[name] = tuple(rest[name])
        return TrainConfig(**rest)

    @staticmethod
    def load(path: str | Path) -> "TrainConfig":
        """Read a JSON file."""
        try:
            values = json.loads(Path(path).read_text())
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from error
        except ValueError as error:
            raise InputError(f"{path} is not JSON: {error}") from error
        return TrainConfig.from_json(values, str(path))


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
            raise InputError(f"{name} must be a number {self}, not {value!r}")
        return float(value)

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.open_low else f"of at least {self.low:g}"
        if self.high is None:
            return low
        return f"{low} and {'below' if self.open_high else 'at most'} {self.high:g}"


_CHOICES: dict[str, tuple[str, ...]] = {
    "env": get_args(EnvName),
    "observation": get_args(ObservationName),
    "agent": get_args(AgentName),
    "replay": get_args(ReplayName),
    "reuse": get_args(ReuseName),
    "precision": get_args(PrecisionName),
}
_OPTIONAL = ("weights_every", "trajectories")
_WHOLE = dict.fromkeys(
    (*_OPTIONAL, "steps", "epsilon_steps", "batch_size", "update_interval", "target_interval",
     "learning_starts", "encountered", "room", "width", "depth", "encoder_depth", "capacity",
     "chunk"),
    1,
)  # fmt: skip
_POSITIVE, _SHARE = _Range(0, open_low=True), _Range(0, 1)
_NUMBERS = {
    "gamma": _Range(0, 1, open_low=True),
    "learning_rate": _POSITIVE,
    "momentum": _Range(0, 1, open_high=True),
    "clip_norm": _POSITIVE,
    "epsilon_start": _SHARE,
    "epsilon_end": _SHARE,
    "reward_scale": _POSITIVE,
    "kappa": _Range(0),
    "priority_exponent": _Range(0),
    "priority_offset": _POSITIVE,
    "checkpoint_seconds": _Range(0),
}

_PAPER_DST: dict[str, Any] = {
    "env": "dst",
    "steps": 100_000,
    "gamma": 0.95,
    "epsilon_start": 0.1,
    "epsilon_end": 0.01,
    "epsilon_steps": 10_000,
    "batch_size": 16,
    "reward_scale": 0.01,
    "capacity": 10_000,
}
_PRESETS: dict[str, dict[str, Any]] = {
    "paper-minecart": {},
    "paper-dst": _PAPER_DST,
    # Of the paper's learning rate and last exploration most of the regret on features would come.
    "quick-dst": _PAPER_DST
    | {"observation": "features", "width": 64, "learning_rate": 0.005, "epsilon_end": 0.001},
}


def _choose(name: str, value: Any, choices: Collection[str]) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    choose(name, value, choices)


def _check_kinds(weights: Any) -> WeightsName | tuple[WeightsName, ...]:
    kinds = tuple(weights) if isinstance(weights, list | tuple) else (weights,)
    if not kinds:
        raise InputError("there must be at least one kind of weight changes, and the list is empty")
    for kind in kinds:
        _choose("weights", kind, get_args(WeightsName))
    if len(set(kinds)) < len(kinds):
        raise InputError(f"weights must differ from one another, not {list(kinds)}")
    return kinds[0] if len(kinds) == 1 else kinds


def _check_seeds(seeds: Any) -> int | tuple[int, ...]:
    if not isinstance(seeds, list | tuple):
        return require_int("the number of seeds", seeds, 1)
    if not seeds:
        raise InputError("there must be at least one seed, and the list of seeds is empty")
    numbers = tuple(require_int("a seed", seed, 0, LARGEST_COUNT) for seed in seeds)
    if len(set(numbers)) < len(numbers):
        raise InputError(f"seeds must differ from one another, not {list(numbers)}")
    return numbers
