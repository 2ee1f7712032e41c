"""Windvane: deep multi-objective reinforcement learning with weights that change while agents act.

The public names below are imported when they are first used, so that `import windvane` stays quick
and needs neither JAX nor the command line's packages. Importing the package also registers its
Gymnasium ids, as soon as Gymnasium is imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windvane.version import __version__

if TYPE_CHECKING:
    from windvane.agents.core import Agent
    from windvane.envs.deep_sea_treasure import DeepSeaTreasure
    from windvane.envs.environment import Environment, PixelObservations, Renderable
    from windvane.envs.minecart import Minecart
    from windvane.envs.minecart_config import MinecartConfig
    from windvane.errors import InputError
    from windvane.evaluation import Evaluation, evaluate
    from windvane.live import LiveWeights
    from windvane.oracle import CoverageSet, coverage_set, optimal_value, regret
    from windvane.policy import Policy
    from windvane.replay.buffer import ReplayBuffer
    from windvane.runs.records import read_records
    from windvane.runs.result import Result
    from windvane.runs.runner import resume, train
    from windvane.runs.stopping import TrainingStopped
    from windvane.schedules import (
        FixedWeights,
        RandomWeights,
        RegularChanges,
        SparseChanges,
        WeightSchedule,
        WeightSequence,
    )
    from windvane.search.tune import tune
    from windvane.spec import EnvSpec, FrameSpec
    from windvane.training.callbacks import TrainingProgress
    from windvane.training.config import TrainConfig

__all__ = [
    "Agent",
    "CoverageSet",
    "DeepSeaTreasure",
    "EnvSpec",
    "Environment",
    "Evaluation",
    "FixedWeights",
    "FrameSpec",
    "InputError",
    "LiveWeights",
    "Minecart",
    "MinecartConfig",
    "PixelObservations",
    "Policy",
    "RandomWeights",
    "RegularChanges",
    "Renderable",
    "ReplayBuffer",
    "Result",
    "SparseChanges",
    "TrainConfig",
    "TrainingProgress",
    "TrainingStopped",
    "WeightSchedule",
    "WeightSequence",
    "__version__",
    "coverage_set",
    "evaluate",
    "optimal_value",
    "read_records",
    "regret",
    "resume",
    "train",
    "tune",
]

_HOMES = {
    "Agent": "windvane.agents.core",
    "CoverageSet": "windvane.oracle",
    "DeepSeaTreasure": "windvane.envs.deep_sea_treasure",
    "EnvSpec": "windvane.spec",
    "Environment": "windvane.envs.environment",
    "Evaluation": "windvane.evaluation",
    "FixedWeights": "windvane.schedules",
    "FrameSpec": "windvane.spec",
    "InputError": "windvane.errors",
    "LiveWeights": "windvane.live",
    "Minecart": "windvane.envs.minecart",
    "MinecartConfig": "windvane.envs.minecart_config",
    "PixelObservations": "windvane.envs.environment",
    "Policy": "windvane.policy",
    "RandomWeights": "windvane.schedules",
    "RegularChanges": "windvane.schedules",
    "Renderable": "windvane.envs.environment",
    "ReplayBuffer": "windvane.replay.buffer",
    "Result": "windvane.runs.result",
    "SparseChanges": "windvane.schedules",
    "TrainConfig": "windvane.training.config",
    "TrainingProgress": "windvane.training.callbacks",
    "TrainingStopped": "windvane.runs.stopping",
    "WeightSchedule": "windvane.schedules",
    "WeightSequence": "windvane.schedules",
    "coverage_set": "windvane.oracle",
    "evaluate": "windvane.evaluation",
    "optimal_value": "windvane.oracle",
    "read_records": "windvane.runs.records",
    "regret": "windvane.oracle",
    "resume": "windvane.runs.runner",
    "train": "windvane.runs.runner",
    "tune": "windvane.search.tune",
}


def __getattr__(name: str) -> Any:
    """Import a public name from the file it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported yet or not."""
    return sorted({*globals(), *__all__})


from windvane.gymnasium_hook import register_with_gymnasium as _register  # noqa: E402

_register()
