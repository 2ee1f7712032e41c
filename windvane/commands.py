"""The commands about training: `windvane train`, `resume`, `evaluate`, `watch`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from windvane.errors import InputError, require_int, require_positive_int
from windvane.filming import Filming
from windvane.progress import say
from windvane.training.config import TrainConfig
from windvane.training.records import read_records
from windvane.training.settings import EnvName, PresetName, Settings
from windvane.weights import parse_weights

if TYPE_CHECKING:
    from windvane.policy import Policy
    from windvane.training.result import Result

Folder = Annotated[Path, tyro.conf.Positional]


@dataclass(frozen=True)
class Train:
    """Train an agent: many runs side by side, stopped and gone on with at will.

    Ctrl-C stops with a checkpoint; `windvane resume` goes on from it, or from the last one after a
    crash, to the very same outcome.
    """

    settings: tyro.conf.OmitArgPrefixes[Settings]
    preset: PresetName | None = None
    """Settings that all others start from; the defaults shown here are its own. Without it, the
    paper's settings for --env."""
    out: Path = Path("out/train")
    """Folder for the records, the checkpoints and, in the end, the policies."""

    def run(self, console: Console) -> None:
        """Train and print what came of it."""
        from windvane.training.runner import train

        config = TrainConfig(**vars(self.settings))
        report(console, train(config, out=self.out, console=console))


@dataclass(frozen=True)
class Resume:
    """Go on with a training that was stopped, to the same outcome as without the stop."""

    folder: Folder
    """Folder of the training."""

    def run(self, console: Console) -> None:
        """Go on and print what came of it."""
        from windvane.training.runner import resume

        report(console, resume(self.folder, console=console))


@dataclass(frozen=True)
class Evaluate:
    """Play greedy episodes with trained policies, and compare them with the optimum."""

    folder: Folder
    """Folder of a finished training."""
    weights: str
    """Weights such as 0.2,0.3,0.5."""
    episodes: int = 100
    """Episodes a policy."""
    seed: int = 0
    """Seed of the episodes."""

    def run(self, console: Console) -> None:
        """Play and print."""
        from windvane.evaluation import confidence, evaluate
        from windvane.training.runner import CONFIG

        require_positive_int("--episodes", self.episodes)
        require_int("--seed", self.seed, 0, 2**32 - 1)
        policies = _policies(self.folder)
        env = policies[0].env
        weights = parse_weights(self.weights, env.num_objectives)
        table = Table(title=f"Weights {self.weights}", title_justify="left")
        for name in ("run", *env.objective_names, "regret", "95% interval"):
            table.add_column(name, justify="left" if name == "run" else "right")
        means = []
        run_names = TrainConfig.load(self.folder / CONFIG).run_names
        for name, policy in zip(run_names, policies, strict=True):
            played = evaluate(policy, weights, self.episodes, self.seed)
            means.append(played.regrets.mean())
            table.add_row(
                name,
                *(f"{value:.4f}" for value in played.returns.mean(0)),
                f"{means[-1]:.4f}",
                f"± {confidence(played.regrets):.4f}",
            )
        console.print(table)
        if len(policies) > 1:
            mean, half = np.mean(means), confidence(np.asarray(means))
            say(console, f"mean regret of {len(means)} policies {mean:.4f} ± {half:.4f} (95%)")


@dataclass(frozen=True)
class Watch:
    """Write a GIF (animated) or a PNG (a strip of frames) of one episode of a trained policy."""

    folder: Folder
    """Folder of a finished training."""
    weights: str
    """Weights such as 0.2,0.3,0.5."""
    filming: tyro.conf.OmitArgPrefixes[Filming]
    run_seed: int | None = None
    """Seed of the run whose policy is shown; of two runs with it, the first. Default: the first."""
    out: Path = Path("out/watch.gif")
    """File to write; its ending, .gif or .png, says what."""

    def run(self, console: Console) -> None:
        """Play and draw."""
        import jax

        self.filming.check(self.out)
        policy = self._policy()
        plan = policy.plan(parse_weights(self.weights, policy.env.num_objectives))
        key = jax.random.key(self.filming.seed)
        self.filming.film(console, policy.env, plan, key, self.out)

    def _policy(self) -> "Policy":
        policies: dict[int, Policy] = {}
        for policy in _policies(self.folder):
            policies.setdefault(policy.seed, policy)
        if self.run_seed is None:
            return next(iter(policies.values()))
        if self.run_seed not in policies:
            known = ", ".join(map(str, policies))
            raise InputError(f"--run-seed must be one of {known}, not {self.run_seed}")
        return policies[self.run_seed]


@dataclass(frozen=True)
class Compare:
    """Print the regret of several trainings side by side, and draw it added up over their steps."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of trainings, finished or not; the first is the baseline."""
    out: Path = Path("out/regret.png")
    """Picture to write."""

    def run(self, console: Console) -> None:
        """Read, print and draw."""
        from windvane.plots import cumulative_regret, save
        from windvane.training.result import regret_of
        from windvane.training.runner import CONFIG

        if not self.folders:
            raise InputError("give at least one folder of a training to compare")
        table = Table(title="Mean regret of all runs", title_justify="left")
        for name in ("training", "runs", "all episodes", "last quarter", "of the first's"):
            table.add_column(name, justify="left" if name == "training" else "right")
        curves, baseline = {}, None
        for folder in self.folders:
            if not (folder / CONFIG).exists():
                raise InputError(f"there is no training run in {folder}")
            config = TrainConfig.load(folder / CONFIG)
            found, seeds = read_records(folder), len(config.seed_numbers)
            regret = regret_of(found, len(config.runs), config.steps)
            for number, kind in enumerate(config.kinds):
                mine = slice(number * seeds, (number + 1) * seeds)
                overall, late = (np.nanmean(r[mine]) for r in (regret.overall, regret.last_quarter))
                baseline = late if baseline is None else baseline
                several = f", {kind}" if len(config.kinds) > 1 else ""
                name = f"{config.agent}, {config.replay}{several} ({folder.name})"
                share = f"{100 * late / baseline:.0f}%"
                table.add_row(name, str(seeds), f"{overall:.4f}", f"{late:.4f}", share)
                rows = found["run"] // seeds == number
                curves[name] = {column: values[rows] for column, values in found.items()}
        console.print(table)
        say(console, f"written: {save(cumulative_regret(curves), self.out)}")


def base_settings(arguments: list[str]) -> Settings:
    """What the settings of `windvane train` start from: --preset, else the paper's for --env."""
    preset, env = (_value_of(arguments, flag) for flag in ("--preset", "--env"))
    if preset in get_args(PresetName):
        return Settings(**vars(TrainConfig.preset(preset)))
    name = env if env in get_args(EnvName) else "minecart"
    return Settings(**vars(TrainConfig.preset(f"paper-{name}")))


def report(console: Console, result: "Result") -> None:
    """Print the regret of every run and where things are."""
    regret = result.regret
    table = Table(title="Mean regret", title_justify="left")
    for name in ("run", "all episodes", "last quarter"):
        table.add_column(name, justify="left" if name == "run" else "right")
    columns = np.stack([regret.overall, regret.last_quarter], 1)
    for name, row in zip(result.config.run_names, columns, strict=True):
        table.add_row(name, *(f"{value:.4f}" for value in row))
    kinds, seeds = result.config.kinds, len(result.config.seed_numbers)
    if seeds > 1:
        table.add_section()
        for kind, rows in zip(kinds, np.split(columns, len(kinds)), strict=True):
            label = f"mean, {kind}" if len(kinds) > 1 else "mean"
            table.add_row(label, *(f"{value:.4f}" for value in rows.mean(0)))
    console.print(table)
    if result.sentence:
        say(console, result.sentence)
    if result.folder is not None:
        say(console, f"written: {result.folder}")


def _policies(folder: Path) -> "tuple[Policy, ...]":
    from windvane.training.result import load_policies

    return load_policies(folder)


def _value_of(arguments: list[str], flag: str) -> str:
    """What follows a flag, or its equals sign; the last one counts."""
    value = ""
    for this, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if this == flag:
            value = following
        elif this.startswith(f"{flag}="):
            value = this.removeprefix(f"{flag}=")
    return value
