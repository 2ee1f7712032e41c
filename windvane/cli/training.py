"""The commands that train: `windvane train`, `windvane resume`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from windvane.cli.options import POSITIONAL, OneOf
from windvane.errors import InputError
from windvane.learning.hyperparameters import Hyperparameters
from windvane.registry import Arguments
from windvane.training.presets import PRESETS, preset_for
from windvane.training.settings import (
    HostSettings,
    NetworkSettings,
    ParallelSettings,
    ReplaySettings,
    RunSettings,
    Settings,
    Task,
)

if TYPE_CHECKING:
    from rich.console import Console

    from windvane.runs.result import Result
    from windvane.training.config import TrainConfig

Folder = Annotated[Path, POSITIONAL]
Examples = ClassVar[tuple[tuple[str, str], ...]]
"""Command lines, and what each does."""


@dataclass(frozen=True)
class TaskOptions(Task):
    """Environment, agent, replay and weights.

    The fields of `Task`, as a command line takes them.
    """

    env: Annotated[str, OneOf("windvane.envs:ENVS")] = "minecart"
    """Environment to train on: a name, mo:ID of MO-Gymnasium, any Gymnasium id, or module:factory
    for your own."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, such as map=concave for dst."""
    agent: Annotated[str, OneOf("windvane.agents:AGENTS")] = "cn"
    """Agent that learns: a name, or module:factory for your own."""
    agent_args: tuple[str, ...] = ()
    """Arguments of the agent, such as kappa=0.02 for mn."""
    replay: Annotated[str, OneOf("windvane.replay:REPLAYS")] = "der"
    """Replay rule, which says what the replay buffer keeps: a name, or module:factory for your own.
    Agents without a replay buffer, such as pqn, take none."""
    replay_args: tuple[str, ...] = ()
    """Arguments of the replay rule, such as trajectories=500 for der."""
    schedule: Annotated[tuple[str, ...], OneOf("windvane.schedule_registry:SCHEDULES")] = (
        "sparse",
    )
    """How the weights change during training: a name, fixed weights such as 0.3,0.7, live:FILE for
    weights from a watched file, or module:factory for your own. With several, every seed is trained
    with each."""
    schedule_args: tuple[str, ...] = ()
    """Arguments of the schedule, such as every=1000: steps for sparse, episodes for regular."""


@dataclass(frozen=True)
class TrainingSettings:
    """All settings of a training; the commands that have them derive from it."""

    task: TaskOptions
    learning: Hyperparameters
    network: NetworkSettings
    replay_buffer: ReplaySettings
    parallel: ParallelSettings
    gymnasium: HostSettings
    running: RunSettings
    preset: Annotated[str | None, OneOf("windvane.training.presets:SUMMARIES")] = None
    """Settings to start from; the defaults shown here are its own. Default: the preset that suits
    --env and --agent."""

    @classmethod
    def defaults(cls, arguments: list[str]) -> "TrainingSettings":
        """Settings that depend on what the user asks for: --preset, else the one for --env."""
        preset, env, agent = (
            _value_of(arguments, flag) for flag in ("--preset", "--env", "--agent")
        )
        if preset not in PRESETS:
            preset = preset_for(env or "minecart", agent)
        # Not a TrainConfig: help is shown without importing what trains.
        settings = {field.name: field.default for field in fields(Settings)} | PRESETS[preset]
        settings |= _sizes(_value_of(arguments, "--start-from"))
        for part in ("env", "agent", "replay", "schedule"):
            # Arguments of the preset's part are not for another one.
            if _value_of(arguments, f"--{part}") not in ("", settings[part]):
                settings[f"{part}_args"] = ()
        return cls(*(_options(group, settings) for group in _GROUPS))

    @property
    def base(self) -> str:
        """The preset that the settings start from."""
        return self.preset or preset_for(self.task.env, self.task.agent)

    @property
    def config(self) -> "TrainConfig":
        """The settings, checked."""
        from windvane.training.config import TrainConfig, with_preset_args

        if self.preset is not None:
            TrainConfig.preset(self.preset)
        groups = (getattr(self, field.name) for field in fields(self)[: len(_GROUPS)])
        settings = {name: value for group in groups for name, value in vars(group).items()}
        return TrainConfig(**with_preset_args(self.base, settings))


@dataclass(frozen=True)
class Train(TrainingSettings):
    """Train an agent: one run, or many at once.

    Ctrl-C writes a checkpoint and stops. `windvane resume` continues from the last checkpoint, also
    after a crash, to the same result.
    """

    out: Path = Path("out/train")
    """Folder for the records, the checkpoints and, in the end, the policies."""
    track: tuple[str, ...] = ()
    """Trackers that get the curves: tensorboard, mlflow, wandb, or module:factory."""

    examples: Examples = (
        ("windvane train --preset quick-dst --out out/quick", "a minute or two on any computer"),
        ("windvane train --env mo:four-room-v0 --seeds 3 --out out/three-rooms",
         "three runs on an environment of MO-Gymnasium"),
    )  # fmt: skip
    everyday: ClassVar[tuple[str, ...]] = (
        "preset", "env", "agent", "schedule", "steps", "seeds", "evaluate_every", "track", "out",
    )  # fmt: skip

    def run(self, console: "Console") -> None:
        """Train and print the outcome."""
        from windvane.runs.runner import train

        print_result(console, train(self.config, out=self.out, track=self.track, console=console))


_GROUPS = (
    TaskOptions, Hyperparameters, NetworkSettings, ReplaySettings, ParallelSettings, HostSettings,
    RunSettings,
)  # fmt: skip
"""Classes of the settings, in the order of the fields of `TrainingSettings`."""


@dataclass(frozen=True)
class Trust:
    """Code of your own that the run folder names.

    Importing runs code. A name that is neither Windvane's nor MO-Gymnasium's is imported only if it
    is given again, or with --trust.
    """

    trust: bool = False
    """Import whatever the run folder names, such as your own environment. Importing runs code: say
    so only of folders that you trust. Default: off."""
    env: str | None = None
    """Name of the environment, given again to allow its import. Default: only names of Windvane
    and MO-Gymnasium are imported."""
    agent: str | None = None
    """Name of the agent, given again to allow its import. Default: as with --env."""

    @property
    def given(self) -> dict[str, Any]:
        """As `Policy.load` takes it."""
        return vars(self)


@dataclass(frozen=True)
class TrustAll(Trust):
    """Code of your own that the run folder names.

    As in `Trust`, for what is needed to train.
    """

    replay: str | None = None
    """Name of the replay rule, given again to allow its import. Default: as with --env."""
    schedule: str | None = None
    """Name of the schedule, given again to allow its import. Default: as with --env."""


@dataclass(frozen=True)
class Resume:
    """Resume an interrupted training from its last checkpoint.

    The result is the same as without the interruption, except that open episodes of a Gymnasium
    environment begin anew. A finished training is only read.
    """

    folder: Folder
    """Folder of the training."""
    trust: TrustAll
    start_from: str | None = None
    """File of the policy that the runs start with, if it was moved before the first checkpoint.
    Default: where it was."""
    track: tuple[str, ...] | None = None
    """Trackers that get the curves; none if nothing follows. Default: those it was begun with."""

    examples: Examples = (
        ("windvane resume out/cn", "continue where it stopped; a finished training is only read"),
        (
            "windvane resume out/rooms --trust",
            "import what the folder names, too, such as your own environment",
        ),
    )

    def run(self, console: "Console") -> None:
        """Resume and print the outcome."""
        from windvane.runs.runner import resume

        given = {"start_from": self.start_from, "track": self.track, **self.trust.given}
        print_result(console, resume(self.folder, console=console, **given))


def print_result(console: "Console", result: "Result") -> None:
    """Print the regret of every run, or its utility where regret is not known."""
    import numpy as np

    from windvane.cli.printing import mean, number, print_table, unit
    from windvane.progress import say

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
        say(console, f"written: {result.folder}; judge it with: windvane evaluate {result.folder}")


def _options(group: type, settings: dict[str, Any]) -> Any:
    """A group of settings as the command line takes them."""
    values = {field.name: settings[field.name] for field in fields(group)}
    for name, value in values.items():
        if name.endswith("_args"):
            values[name] = Arguments(value).to_texts()
    if "schedule" in values:
        schedule = values["schedule"]
        values["schedule"] = (schedule,) if isinstance(schedule, str) else schedule
    return group(**values)


def _sizes(start_from: str) -> dict[str, Any]:
    """Sizes of the network of a policy; one that cannot be read is refused by training itself."""
    if not start_from:
        return {}
    from windvane.runs.starting import architecture_of, open_start

    try:
        return architecture_of(open_start(start_from))
    except InputError:
        return {}


def _value_of(arguments: list[str], flag: str) -> str:
    """What follows a flag, or its equals sign; the last one counts."""
    value = ""
    for index, this in enumerate(arguments):
        name, equals, text = this.partition("=")
        if name.replace("_", "-") == flag:
            value = text if equals else "".join(arguments[index + 1 : index + 2])
    return value
