"""Cells, and how a configuration names them.

A cell is what a table has a number for: an agent, a replay rule and a schedule of weights. This is
the one place of `experiments` that knows which settings of a configuration hold its schedule.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from windvane.envs import ENVS
from windvane.training.config import TrainConfig

SCHEDULE = "schedule"
"""The setting that names the schedule, or several."""
SCHEDULES = ("sparse", "regular")
"""The paper's schedules, in its order."""
_NOT_SHARED = {
    "format", "agent", "replay", SCHEDULE, "seeds", "chunk", "checkpoint_seconds", "evaluate_every",
}  # fmt: skip
"""Settings that tell cells and seeds apart, and those that do not change a result."""
_ONE_PROGRAM = {SCHEDULE, "seeds"}
"""Settings in which runs of one compiled program may differ."""

_FIRST_NAMES = {
    "weight_history_size": "encountered",
    "agent_args.kappa": "kappa",
    "agent_args.reuse": "reuse",
    "agent_args.max_policies": "room",
    "replay_args.trajectories": "trajectories",
    "schedule_args.every": "weights_every",
}
"""Settings that were renamed, with the names that the fingerprints of runs know them by."""


class Cell(NamedTuple):
    """What is compared: an agent, its replay rule, and the schedule of the weights."""

    agent: str
    replay: str
    schedule: str

    def __str__(self) -> str:
        return "-".join(self)

    def settings(self) -> dict[str, Any]:
        """The cell as settings of a configuration."""
        return {"agent": self.agent, "replay": self.replay, SCHEDULE: self.schedule}


def cell_of(config: TrainConfig) -> Cell:
    """The cell of a single run."""
    return Cell(config.agent, config.replay, schedules_of(config)[0])


def schedules_of(config: TrainConfig) -> tuple[str, ...]:
    """The names of the schedules that a configuration trains with."""
    names = getattr(config, SCHEDULE)
    return (names,) if isinstance(names, str) else tuple(names)


def with_runs(
    config: TrainConfig, schedules: Sequence[str], seeds: Sequence[int]
) -> TrainConfig:  # fmt: skip
    """The same settings for other schedules and seeds."""
    changes: dict[str, Any] = {SCHEDULE: tuple(schedules), "seeds": tuple(seeds)}
    return replace(config, **changes)


def schedule_every(config: TrainConfig) -> int | None:
    """The number of steps or episodes between changes, where a configuration sets it."""
    return config.args("schedule").get("every")


def steps_between_changes(config: TrainConfig) -> int | None:
    """The steps between two changes of the weights; None where they do not come at fixed steps."""
    if cell_of(config).schedule != "sparse":
        return None
    entry = ENVS.get(config.env)
    return schedule_every(config) or (entry.about.get("sparse_every") if entry else None)


def setting(config: TrainConfig) -> dict[str, Any]:
    """All settings that runs must share to stand in one table, as plain JSON values."""
    values = config.to_json().items()
    return {name: value for name, value in values if name not in _NOT_SHARED}


def changed_settings(config: TrainConfig) -> dict[str, Any]:
    """The shared settings that differ from their defaults, by the names that they had at first, so
    that runs keep their paths when settings are renamed.
    """
    defaults, values = _flat(setting(TrainConfig())), _flat(setting(config))
    return {
        _FIRST_NAMES.get(name, name): value
        for name, value in values.items()
        if name not in defaults or value != defaults[name]
    }


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """Settings with the arguments of each part as settings of their own."""
    flat = {name: value for name, value in values.items() if not isinstance(value, dict)}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": argument for key, argument in value.items()}
    return flat


def program_settings(config: TrainConfig) -> dict[str, Any]:
    """All settings that runs must share to be trained in parallel, in one compiled program."""
    # A rhythm that is set counts steps for one schedule and episodes for another.
    apart = _ONE_PROGRAM if schedule_every(config) is None else {"seeds"}
    return {name: value for name, value in config.to_json().items() if name not in apart}


def paper_preset(env: str) -> str | None:
    """The preset with the paper's settings for an environment, or None for all others."""
    entry = ENVS.get(env)
    return entry.about.get("preset") if entry else None


def rank(known: Sequence[str], name: str) -> tuple[int, str]:
    """A sort key: known names in their order, then all others by name."""
    return (known.index(name) if name in known else len(known)), name
