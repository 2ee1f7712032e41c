"""Sweeps: configurations that differ only in numbers, trained in one compiled program.

A compiled program can be given numbers, but not shapes or choices: two learning rates share one,
two widths do not. What may not live here: which configurations are worth training.
"""

from collections.abc import Sequence
from dataclasses import replace

from windvane.agents import AGENTS
from windvane.envs.environment import Environment
from windvane.learning.learner import PRIORITIES, Learner
from windvane.replay import REPLAYS
from windvane.schedules import LIVE, WeightSchedule
from windvane.training.build import Training, build
from windvane.training.config import MAX_RUNS, PARTS, TrainConfig
from windvane.training.session import Session

NUMBERS: dict[str, float] = {
    "learning_rate": 0.01,
    "momentum": 0.0,
    "adam_epsilon": 1e-5,
    "clip_norm": 1.0,
    "clip_targets": 1.0,
    "epsilon_start": 1.0,
    "epsilon_end": 0.0,
    "epsilon_steps": 1,
    "average_decay": 0.5,
    "reward_scale": 1.0,
}
"""Settings that a program is given, with a value that stands for all others."""
OF_REPLAY: dict[str, float] = {"gamma": 0.5, **dict.fromkeys(PRIORITIES, 1.0)}
"""Likewise, where the replay rule is one of Windvane's own; but not gamma for DER, which judges
trajectories by their discounted returns."""
OFF_AT_0 = ("clip_targets", "average_decay")
"""Numbers that are not in the program where they are 0."""


def numbers_of(config: TrainConfig) -> dict[str, float]:
    """The settings of a configuration that its program is given."""
    names = [*NUMBERS, *(OF_REPLAY if config.replay in REPLAYS else ())]
    values = {name: float(getattr(config, name)) for name in names}
    if config.replay == "der":
        del values["gamma"]
    return {name: value for name, value in values.items() if value or name not in OFF_AT_0}


def program_of(config: TrainConfig) -> TrainConfig:
    """A configuration that is the same for all that share a program."""
    standing = NUMBERS | OF_REPLAY
    return replace(config, **{name: standing[name] for name in numbers_of(config)})


def can_sweep(training: Training) -> bool:
    """Whether a training is one of those that can share a program: a native environment, weights
    by rule, and an agent with a replay buffer that never asks the host.
    """
    learner, schedule = training.learner, training.schedule
    return (
        isinstance(learner, Learner)
        and isinstance(training.world, Environment)
        and isinstance(schedule, WeightSchedule)
        and not any(name.startswith(LIVE) for name in training.config.schedules)
        and training.config.agent in AGENTS
        and learner.agent.iteration_interval is None
    )


def open_sweep(training: Training, configs: Sequence[TrainConfig]) -> Session:
    """The runs of all configurations, which share the program of `training`, one configuration
    after another; before their first step.
    """
    # Complains where the machine has no memory for all of them.
    seeds = min(len(configs) * len(training.config.seed_numbers), MAX_RUNS)
    build(replace(training.config, seeds=seeds), trusted=PARTS)
    return training.session([numbers_of(config) for config in configs])
