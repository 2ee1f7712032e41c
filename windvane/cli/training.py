"""The commands that train: `windvane train`, `windvane resume`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from rich.console import Console

from windvane.cli.printing import mean, number, print_table, unit
from windvane.errors import InputError
from windvane.learning.hyperparameters import Hyperparameters
from windvane.progress import say
from windvane.registry import Arguments
from windvane.training.config import TrainConfig, with_preset_args
from windvane.training.presets import PRESETS, preset_for
from windvane.training.settings import (
    HostSettings,
    NetworkSettings,
    ParallelSettings,
    ReplaySettings,
    RunSettings,
    Task,
)

if TYPE_CHECKING:
    from windvane.runs.result import Result

Folder = Annotated[Path, tyro.conf.Positional]
Preset = Annotated[
    str | None,
    tyro.conf.arg(
        help=f"Preset that sets the defaults shown here: {', '.join(PRESETS)}. None for the one "
        "that suits --env and --agent.",
    ),
]
PartArguments = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        metavar="[NAME=VALUE ...]",
        help_behavior_hint=lambda default: f"(default: {default or 'none'})",
    ),
]


@dataclass(frozen=True)
class TaskOptions(Task):
    """What is trained on what, how often and for how long."""

    env_args: PartArguments = ()
    """Arguments of the environment, such as map=concave for dst."""
    agent_args: PartArguments = ()
    """Arguments of the agent, such as kappa=0.02 for mn."""
    replay_args: PartArguments = ()
    """Arguments of the replay rule, such as trajectories=500 for der."""
    schedule: tuple[str, ...] = ("sparse",)
    """How weights change: sparse, regular, random, chosen, live:FILE, module:factory, or 0.3,0.7.
    random draws new weights for every episode; chosen leaves them to an agent such as gpi-ls.
    0.3,0.7 are fixed weights.
    live:FILE takes the weights from a watched file.
    With several schedules, every seed is trained with each of them."""
    schedule_args: PartArguments = ()
    """Arguments of the schedule, such as every=N: steps for sparse, episodes for regular."""


@dataclass(frozen=True)
class Train:
    """Train an agent: one run or many in parallel, interruptible and resumable.

    Ctrl-C writes a checkpoint and stops. `windvane resume` continues from the last checkpoint, also
    after a crash, to the same result.
    """

    task: tyro.conf.OmitArgPrefixes[TaskOptions]
    learning: tyro.conf.OmitArgPrefixes[Hyperparameters]
    network: tyro.conf.OmitArgPrefixes[NetworkSettings]
    replay_buffer: tyro.conf.OmitArgPrefixes[ReplaySettings]
    parallel: tyro.conf.OmitArgPrefixes[ParallelSettings]
    gymnasium: tyro.conf.OmitArgPrefixes[HostSettings]
    running: tyro.conf.OmitArgPrefixes[RunSettings]
    preset: Preset = None
    out: Path = Path("out/train")
    """Folder for the records, the checkpoints and, in the end, the policies."""
    track: tuple[str, ...] = ()
    """Trackers that get the curves: tensorboard, mlflow, wandb, or module:factory."""

    @staticmethod
    def defaults(arguments: list[str]) -> "Train":
        """Settings that depend on what the user asks for: --preset, else the one for --env."""
        preset, env, agent = (
            _value_of(arguments, flag) for flag in ("--preset", "--env", "--agent")
        )
        if preset not in PRESETS:
            preset = preset_for(env or "minecart", agent)
        config = TrainConfig.preset(preset, **_sizes(_value_of(arguments, "--start-from")))
        return Train(*(_options(group, config) for group in _GROUPS))

    @property
    def config(self) -> TrainConfig:
        """The settings, checked."""
        if self.preset is not None:
            TrainConfig.preset(self.preset)
        groups = (getattr(self, field.name) for field in fields(self)[: len(_GROUPS)])
        settings = {name: value for group in groups for name, value in vars(group).items()}
        preset = self.preset or preset_for(self.task.env, self.task.agent)
        return TrainConfig(**with_preset_args(preset, settings))

    def run(self, console: Console) -> None:
        """Train and print the outcome."""
        from windvane.runs.runner import train

        print_result(console, train(self.config, out=self.out, track=self.track, console=console))


_GROUPS = (
    TaskOptions, Hyperparameters, NetworkSettings, ReplaySettings, ParallelSettings, HostSettings,
    RunSettings,
)  # fmt: skip
"""Classes of the settings, in the order of the fields of `Train`."""


@dataclass(frozen=True)
class Trust:
    """Which names in a run folder may be imported.

    Importing runs code. A name that is neither Windvane's nor MO-Gymnasium's is imported only if it
    is given again, or with --trust.
    """

    trust: bool = False
    """Import whatever the run folder names."""
    env: str | None = None
    """The environment's name, given again to allow its import."""
    agent: str | None = None
    """The agent's name, given again to allow its import."""

    @property
    def given(self) -> dict[str, Any]:
        """As `Policy.load` takes it."""
        return vars(self)


@dataclass(frozen=True)
class TrustAll(Trust):
    """Which names in a run folder may be imported.

    Importing runs code. A name that is neither Windvane's nor MO-Gymnasium's is imported only if it
    is given again, or with --trust.
    """

    replay: str | None = None
    """The replay rule's name, given again to allow its import."""
    schedule: str | None = None
    """The schedule's name, given again to allow its import."""


@dataclass(frozen=True)
class Resume:
    """Resume an interrupted training from its last checkpoint.

    The result is the same as without the interruption, except that open episodes of a Gymnasium
    environment begin anew. A finished training is only read.
    """

    folder: Folder
    """Folder of the training."""
    trust: tyro.conf.OmitArgPrefixes[TrustAll]
    start_from: str | None = None
    """Where the policy is now that the runs start with, if there is no checkpoint yet."""
    track: tuple[str, ...] | None = None
    """Trackers that get the curves; nothing after it for none. None for those it was begun with."""

    def run(self, console: Console) -> None:
        """Resume and print the outcome."""
        from windvane.runs.runner import resume

        given = {"start_from": self.start_from, "track": self.track, **self.trust.given}
        print_result(console, resume(self.folder, console=console, **given))


def print_result(console: Console, result: "Result") -> None:
    """Print the regret of every run, or its utility where regret is not known."""
    config = result.config
    known = np.isfinite(result.regret.overall).any()
    name, means = ("regret", result.regret) if known else ("utility", result.utility)
    title = f"Mean {name} of training episodes ({unit(config)})"
    columns = np.stack([means.overall, means.last_quarter], 1)
    rows = [(run, *map(number, row)) for run, row in zip(config.run_names, columns, strict=True)]
    schedules, seeds = config.schedules, len(config.seed_numbers)
    footer = []
    if seeds > 1:
        for schedule, part in zip(schedules, np.split(columns, len(schedules)), strict=True):
            label = f"mean, {schedule}" if len(schedules) > 1 else "mean"
            footer.append((label, *(number(mean(column)) for column in part.T)))
    print_table(console, title, ("run", "all episodes", "last quarter"), rows, footer)
    for sentence in result.sentences:
        say(console, sentence)
    if result.folder is not None:
        say(console, f"written: {result.folder}")


def _options(group: type, config: TrainConfig) -> Any:
    """A group of settings as the command line takes them."""
    values = {field.name: getattr(config, field.name) for field in fields(group)}
    for name, value in values.items():
        if isinstance(value, Arguments):
            values[name] = value.to_texts()
    if "schedule" in values:
        values["schedule"] = config.schedules
    return group(**values)


def _sizes(start_from: str) -> dict[str, Any]:
    """Sizes of the network of a policy; one that cannot be read is refused by training itself."""
    from windvane.runs.starting import architecture_of, open_start

    try:
        return architecture_of(open_start(start_from)) if start_from else {}
    except InputError:
        return {}


def _value_of(arguments: list[str], flag: str) -> str:
    """What follows a flag, or its equals sign; the last one counts."""
    value = ""
    for index, this in enumerate(arguments):
        if this == flag:
            value = "".join(arguments[index + 1 : index + 2])
        elif this.startswith(f"{flag}="):
            value = this.removeprefix(f"{flag}=")
    return value
