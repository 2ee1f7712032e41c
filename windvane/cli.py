"""The command line: `windvane oracle`, `windvane render`, and those of the two `commands` files.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

import os
import sys
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from windvane.commands import Compare, Evaluate, Resume, Train, Watch, base_settings
from windvane.envs.deep_sea_treasure import MAPS, MAX_CELLS, DeepSeaTreasure
from windvane.envs.environment import Environment
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER, MinecartConfig
from windvane.errors import InputError
from windvane.experiments.commands import Report, Reproduce
from windvane.files import atomic_write, make_folder, path_exists, read_text
from windvane.filming import Filming
from windvane.progress import progress_display, say
from windvane.version import __version__
from windvane.weights import parse_weights

if TYPE_CHECKING:
    from windvane.oracle import CoverageSet

Problem = Annotated[Literal["minecart", "dst"], tyro.conf.Positional]

PAPER_GAMMA = {"minecart": 0.98, "dst": 0.95}

MAX_MAP_BYTES = 16 * MAX_CELLS
"""Sixteen characters for each cell of the largest map."""

OWNERS = dict.fromkeys(("config", "deterministic", "frame_skip"), "minecart") | {"map": "dst"}
"""Options of an instance that one problem alone has."""

DESCRIPTION = """Multi-objective deep reinforcement learning whose priorities change while the
agent acts.

Try first:

  windvane oracle dst                 what is optimal in Deep Sea Treasure, and for which weights
  windvane oracle minecart            the same for Minecart
  windvane render minecart --weights 0.6,0.2,0.2 --out trip.gif
                                      watch the optimal trip for these prices
  windvane train --preset quick-dst --out out/quick
                                      train for a minute or two on any computer
  windvane evaluate out/quick --weights 0.5,0.5
                                      how near the optimum it comes for these priorities
"""


@dataclass(frozen=True)
class Instance:
    """Which instance of the problem."""

    config: Path | None = None
    """Minecart only: a JSON file with mines, ores and capacity. Default: the paper's instance."""
    deterministic: bool = False
    """Minecart only: every mine yields exactly its mean."""
    frame_skip: int | None = None
    """Minecart only: frames that each action lasts. Default: 4."""
    map: str | None = None
    """Deep Sea Treasure only: paper, convex, concave, or a text file with one row of numbers per
    line (0 is sea, above 0 a treasure, below 0 sea floor). Default: paper."""
    time_limit: int | None = None
    """Steps after which an episode is truncated. Default: 1000 for minecart, 100 for dst."""

    def build(self, problem: str) -> Environment:
        """The environment."""
        for option in fields(self):
            owner = OWNERS.get(option.name, problem)
            if owner != problem and getattr(self, option.name) != option.default:
                flag = "--" + option.name.replace("_", "-")
                raise InputError(f"{flag} is for {owner} only, and the problem is {problem}")
        if problem == "dst":
            sea_map = "paper" if self.map is None else _read_map(self.map)
            return DeepSeaTreasure(sea_map, time_limit=_default(self.time_limit, 100))
        config = PAPER if self.config is None else MinecartConfig.from_json(self.config)
        return Minecart(
            config,
            deterministic=self.deterministic,
            frame_skip=_default(self.frame_skip, 4),
            time_limit=_default(self.time_limit, 1000),
        )


@dataclass(frozen=True)
class Oracle:
    """Print the coverage set of a problem and draw which behaviour is optimal for which weights.

    Minecart's search takes a few minutes for an instance it has not seen; its result is cached,
    and a stopped search goes on where it was.
    """

    problem: Problem
    """The problem."""
    instance: tyro.conf.OmitArgPrefixes[Instance]
    gamma: float | None = None
    """Discount factor. Default: the paper's, 0.98 for minecart and 0.95 for dst."""
    out: Path = Path("out")
    """Folder for the figures and for coverage-set.csv."""

    def run(self, console: Console) -> None:
        """Solve, print, draw."""
        from windvane import oracle, plots

        env = self.instance.build(self.problem)
        gamma = _discount(self.problem, self.gamma)
        make_folder(self.out)
        with progress_display(console) as progress:
            coverage = oracle.coverage_set(env, gamma, progress)
        console.print(_coverage_table(env, coverage))
        for what, error in coverage.errors.items():
            say(console, f"{what}: {error:.2g}", style="dim")
        names = plots.regions(coverage)[0]
        say(console, f"{len(coverage)} policies with {len(names)} distinct behaviours")
        front = oracle.pareto_front(env, gamma) if self.problem == "dst" else coverage
        figures = plots.oracle_figures(env, coverage, front.values)
        written = [plots.save(figure, self.out / name) for name, figure in figures.items()]
        written.append(_write_csv(env, coverage, self.out / f"{self.problem}-coverage-set.csv"))
        say(console, "written: " + ", ".join(str(path) for path in written))


@dataclass(frozen=True)
class Render:
    """Write a GIF (animated) or a PNG (a strip of frames) of one episode."""

    problem: Problem
    """The problem."""
    instance: tyro.conf.OmitArgPrefixes[Instance]
    filming: tyro.conf.OmitArgPrefixes[Filming]
    weights: str | None = None
    """Weights such as 0.6,0.2,0.2: show the optimal policy for them. Default: random actions."""
    gamma: float | None = None
    """Discount factor of the optimal policy. Default: the paper's."""
    out: Path = Path("out/episode.gif")
    """File to write; its ending, .gif or .png, says what."""

    def run(self, console: Console) -> None:
        """Play and draw."""
        from windvane import oracle, rendering

        self.filming.check(self.out)
        env = self.instance.build(self.problem)
        gamma = _discount(self.problem, self.gamma)
        plan_key, episode_key = jax.random.split(jax.random.key(self.filming.seed))
        plan = rendering.RandomPlan(env.num_actions, plan_key)
        if self.weights is not None:
            weights = parse_weights(self.weights, env.num_objectives)
            with progress_display(console) as progress:
                coverage = oracle.coverage_set(env, gamma, progress)
            best = int(coverage.best(weights))
            plan = coverage.plan(best)
            value = float(weights @ coverage.values[best])
            say(console, f"{coverage.behaviours[best]}; value {value:.4f}")
        self.filming.film(console, env, plan, episode_key, self.out)


def _commands(arguments: list[str]) -> Any:
    """All commands; the defaults of `train` depend on the preset that is asked for."""
    subcommand = tyro.conf.subcommand
    return (
        Annotated[Oracle, subcommand("oracle")]
        | Annotated[Render, subcommand("render")]
        | Annotated[Train, subcommand("train", default=Train(base_settings(arguments)))]
        | Annotated[Resume, subcommand("resume")]
        | Annotated[Compare, subcommand("compare")]
        | Annotated[Evaluate, subcommand("evaluate")]
        | Annotated[Watch, subcommand("watch")]
        | Annotated[Reproduce, subcommand("reproduce")]
        | Annotated[Report, subcommand("report")]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 if it went well, 2 on bad input, 130 when stopped from the keyboard and 141
    when nobody reads on.
    """
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # as in `windvane --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python has left
        return 141


def _run(arguments: list[str]) -> int:
    console = Console()
    if arguments[:1] == ["--version"]:
        console.print(f"windvane {__version__}", highlight=False)
        return 0
    command = tyro.cli(
        _commands(arguments), prog="windvane", description=DESCRIPTION, args=arguments or ["--help"]
    )
    try:
        command.run(console)
    except InputError as error:
        print(f"windvane: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        if str(stop):
            print(f"windvane: {stop}", file=sys.stderr)
            return 130
        goes_on = "; the same command goes on where it was" if isinstance(command, Oracle) else ""
        print(f"windvane: stopped{goes_on}", file=sys.stderr)
        return 130
    return 0


def _default(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _discount(problem: str, gamma: float | None) -> float:
    from windvane import oracle

    return oracle.check_gamma(PAPER_GAMMA[problem] if gamma is None else gamma)


def _read_map(name: str) -> "str | np.ndarray":
    if name in MAPS:
        return name
    path = Path(name)
    if not path_exists(path):
        raise InputError(f"unknown map {name!r}; choose {', '.join(MAPS)} or name a text file")
    text = read_text(path, "the map", MAX_MAP_BYTES)
    try:
        with warnings.catch_warnings(action="ignore"):  # of an empty file, which is refused below
            table = np.loadtxt(text.splitlines(), ndmin=2)
    except ValueError as error:
        raise InputError(f"the map {path} is not a table of numbers: {error}") from error
    if table.size == 0:
        raise InputError(f"the map {path} is not a table of numbers: it is empty")
    return table


def _coverage_table(env: Environment, coverage: "CoverageSet") -> Table:
    table = Table(title=f"Coverage set, gamma = {coverage.gamma:g}", title_justify="left")
    table.add_column("", justify="right")
    for name in env.objective_names:
        table.add_column(name, justify="right")
    table.add_column("behaviour")
    for index, (value, behaviour) in enumerate(
        zip(coverage.values, coverage.behaviours, strict=True)
    ):
        table.add_row(str(index + 1), *(f"{v:.4f}" for v in value), behaviour)
    return table


def _write_csv(env: Environment, coverage: "CoverageSet", path: Path) -> Path:
    lines = [",".join([*env.objective_names, "behaviour"])]
    for value, behaviour in zip(coverage.values, coverage.behaviours, strict=True):
        lines.append(",".join([*(f"{v:.6f}" for v in value), f'"{behaviour}"']))
    text = "\n".join(lines) + "\n"
    atomic_write(path, lambda file: file.write(text.encode()))
    return path


if __name__ == "__main__":
    sys.exit(main())
