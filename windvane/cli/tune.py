"""The command `windvane tune`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from windvane.cli.training import Examples, TrainingSettings
from windvane.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from windvane.search.report import Report


@dataclass(frozen=True)
class Tune(TrainingSettings):
    """Search for settings that lower the greedy regret, and confirm the best on fresh seeds.

    The settings of `windvane train` are the same for all trials, but for those in --space. Trials
    are trained together in one program and stopped early where they are poor. Ctrl-C or a kill
    loses nothing but trials in training: the same command goes on with the study. Several processes
    with the same --out share it. It needs the extra windvane[tune].
    """

    space: tuple[str, ...] = ()
    """Settings to search, with a range (epsilon_end=0.01..0.1, learning_rate=log:0.001..0.1) or
    choices (width=32,64). Arguments of a part are agent_args.NAME and so on. Default: the learning
    rate, exploration, clipping and momentum."""
    trials: int = 60
    """Configurations to try, the preset included."""
    minutes: float | None = None
    """Minutes after which the search ends, counted while any process works on it. Default: no
    limit."""
    parallel_trials: int | None = None
    """Configurations that share a program. Default: 8, or 32 on an accelerator."""
    episodes: int = 1
    """Greedy episodes per weight vector. More than 1 is for environments with chance."""
    best: int = 3
    """Configurations that are trained again, beside the preset, on fresh seeds."""
    confirm_seeds: int = 10
    """Fresh seeds for each of these; 0 confirms nothing."""
    storage: str | None = None
    """URL of a database for the trials, such as sqlite:///study.db. Default: a file in --out."""
    cluster: str | None = None
    """Address of a Ray cluster to run on, such as auto or ray://head:10001. All nodes must reach
    --out under the same path. It needs the extra windvane[cluster], here and on every node.
    Default: this machine."""
    tasks: int | None = None
    """Tasks on the cluster. Default: one per GPU, or per two cores."""
    report: bool = False
    """Only show what the study in --out has found so far."""
    out: Path = Path("out/tune")
    """Folder of the study."""

    examples: Examples = (
        ("windvane tune --preset quick-dst --minutes 10", "the default search space"),
        ("windvane tune --preset quick-dst --space width=32,64 --out out/width",
         "a search space of your own"),
    )  # fmt: skip
    everyday: ClassVar[tuple[str, ...]] = (
        "preset", "space", "trials", "minutes", "seeds", "steps", "best", "confirm_seeds", "report",
        "out",
    )  # fmt: skip

    @classmethod
    def defaults(cls, arguments: list[str]) -> TrainingSettings:
        """As those of `windvane train`, but for the number of seeds."""
        found = super().defaults(arguments)
        return replace(found, task=replace(found.task, seeds=2))

    def run(self, console: "Console") -> None:
        """Search, and print what was found."""
        from windvane.search.tune import report, tune

        if self.report:
            return print_report(console, report(self.out, self.storage))
        if self.cluster is None and self.tasks is not None:
            raise InputError("--tasks is for --cluster")
        found = tune(
            self.config,
            self.space,
            preset=self.base,
            trials=self.trials,
            minutes=self.minutes,
            out=self.out,
            storage=self.storage,
            episodes=self.episodes,
            parallel_trials=self.parallel_trials,
            best=self.best,
            confirm_seeds=self.confirm_seeds,
            cluster=self.cluster,
            tasks=self.tasks,
            console=console,
        )
        return print_report(console, found)


def print_report(console: "Console", report: "Report") -> None:
    """Print the best configurations and what may be said of them, and name all files."""
    from windvane.cli.printing import print_table, unit
    from windvane.progress import say
    from windvane.search.report import table

    counts = report.counts
    say(
        console,
        f"{counts['complete']} trials were trained to the end, {counts['pruned']} stopped early"
        + (f", {counts['running']} are in training" if counts["running"] else ""),
    )
    header, rows = table(report)
    config = report.plan.config
    seeds = len(config.seed_numbers)
    title = f"Mean {report.measure} of {seeds} seed{'s' * (seeds > 1)}, less is better"
    print_table(console, f"{title} ({unit(config)})", header, rows)
    found = report.importances
    say(console, found.sentence)
    if found.early is not None:
        end = found.end or {}
        shares = [
            (name, f"{share:.2f}", f"{end[name]:.2f}" if name in end else "-")
            for name, share in found.early.items()
        ]
        print_table(console, "What mattered", ("setting", "first rung", "end"), shares)
    say(console, report.verdict)
    if report.command is not None:
        say(console, f"train with it: {report.command}")
    for path in report.files:
        say(console, f"written: {path}")
