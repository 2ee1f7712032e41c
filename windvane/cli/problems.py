"""The commands about problems and their optima: `windvane oracle`, `windvane render`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from windvane.cli.filming import Filming
from windvane.cli.options import POSITIONAL
from windvane.cli.training import Examples
from windvane.errors import InputError
from windvane.files import make_folder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from windvane.envs.environment import Environment
    from windvane.oracle import CoverageSet

Problem = Annotated[Literal["minecart", "dst"], POSITIONAL]

OWNERS = dict.fromkeys(("config", "deterministic", "frame_skip"), "minecart") | {"map": "dst"}
"""Options of an instance that one problem alone has."""


@dataclass(frozen=True)
class Instance:
    """The instance of the problem."""

    config: Path | None = None
    """File in JSON with mines, ores and capacity, for minecart alone. Default: the paper's."""
    deterministic: bool = False
    """Every mine yields exactly its mean, for minecart alone."""
    frame_skip: int | None = None
    """Frames per action, for minecart alone. Default: 4."""
    map: str | None = None
    """Map, for dst alone: dcrac, tenths, convex, concave, or a text file with a row of numbers per
    line, where 0 is sea, a number above 0 a treasure, and one below 0 sea floor. Default: dcrac."""
    time_limit: int | None = None
    """Steps after which an episode is truncated. Default: 1000 for minecart, 100 for dst."""

    def build(self, problem: str) -> "Environment":
        """The environment."""
        from windvane.envs import ENVS

        self._warn_of_former_names()
        args: dict[str, Any] = {}
        for option in fields(self):
            value, owner = getattr(self, option.name), OWNERS.get(option.name, problem)
            if value == option.default:
                continue
            if owner != problem:
                flag = "--" + option.name.replace("_", "-")
                raise InputError(f"{flag} is for {owner} only, and the problem is {problem}")
            args[option.name] = value
        return ENVS.make(problem, args, "auto")

    def _warn_of_former_names(self) -> None:
        from windvane.deprecation import current_name
        from windvane.envs.deep_sea_treasure import FORMER_NAMES

        if self.map is not None:
            current_name("map", self.map, FORMER_NAMES)


@dataclass(frozen=True)
class Oracle:
    """Print and plot which behaviour is optimal for which weights.

    It prints the coverage set: the values of every policy that some weights make optimal,
    discounted and unscaled. Those of the paper's instances come with the package. For another
    instance of Minecart the search takes a few minutes. Its result is cached, and an interrupted
    search can be resumed.
    """

    problem: Problem
    """The problem; dst is Deep Sea Treasure."""
    instance: Instance
    gamma: float | None = None
    """Discount factor. Default: the paper's, 0.98 for minecart and 0.95 for dst."""
    out: Path = Path("out")
    """Folder for the plots and the coverage set as CSV."""

    examples: Examples = (
        ("windvane oracle dst", "Deep Sea Treasure, in a few seconds"),
        ("windvane oracle minecart --out out/minecart", "Minecart, as it comes with the package"),
    )

    def run(self, console: "Console") -> None:
        """Solve, print, draw."""
        from windvane import oracle, plots
        from windvane.machine import use_compilation_cache
        from windvane.progress import progress_display, say

        env = self.instance.build(self.problem)
        gamma = discount(self.problem, self.gamma)
        make_folder(self.out)
        use_compilation_cache()
        with progress_display(console, oracle.SEARCHING) as progress:
            coverage = oracle.coverage_set(env, gamma, progress)
        console.print(_coverage_table(env, coverage))
        for what, error in coverage.errors.items():
            say(console, f"{what}: {error:.2g}", style="dim")
        names = plots.regions(coverage)[0]
        say(console, f"{len(coverage)} policies with {len(names)} distinct behaviours")
        front = oracle.pareto_front(env, gamma)
        figures = plots.oracle_figures(env, coverage, front.values)
        if f"{self.problem}-map.png" not in figures:
            say(console, "the map is too long to be drawn")
        written = [plots.save(figure, self.out / name) for name, figure in figures.items()]
        written.append(_write_csv(env, coverage, self.out / f"{self.problem}-coverage-set.csv"))
        say(console, "written: " + ", ".join(str(path) for path in written))


@dataclass(frozen=True)
class Render:
    """Film one episode of a problem: a GIF, an MP4 or a PNG strip of frames."""

    problem: Problem
    """The problem; dst is Deep Sea Treasure."""
    instance: Instance
    filming: Filming
    weights: str | None = None
    """Weights, such as 0.6,0.2,0.2, whose optimal policy is filmed. Default: random actions."""
    gamma: float | None = None
    """Discount factor of the optimal policy. Default: the paper's, 0.98 for minecart and 0.95 for
    dst."""
    out: Path = Path("out/episode.gif")
    """File of the film: .gif, .png, or .mp4, which needs ffmpeg."""

    examples: Examples = (
        ("windvane render minecart --weights 0.6,0.2,0.2", "the optimal trip for these weights"),
        ("windvane render dst --out out/dst.png", "random actions, as a strip of frames"),
    )

    def run(self, console: "Console") -> None:
        """Play and draw."""
        import jax

        from windvane import oracle, rendering
        from windvane.machine import use_compilation_cache
        from windvane.progress import progress_display, say
        from windvane.weights import parse_weights

        self.filming.check(self.out)
        env = self.instance.build(self.problem)
        gamma = discount(self.problem, self.gamma)
        use_compilation_cache()
        plan_key, episode_key = jax.random.split(jax.random.key(self.filming.seed))
        plan, weights = rendering.RandomPlan(env.num_actions, plan_key), None
        if self.weights is not None:
            weights = parse_weights(self.weights, env.num_objectives)
            with progress_display(console, oracle.SEARCHING) as progress:
                coverage = oracle.coverage_set(env, gamma, progress)
            best = int(coverage.best(weights))
            plan = coverage.plan(best)
            value = float(weights @ coverage.values[best])
            behaviour = coverage.behaviours[best]
            say(console, f"{behaviour}; optimal utility {value:.4f} (discounted, rewards times 1)")
        episode = rendering.film(env, plan, episode_key, self.filming.steps, self.filming.size)
        self.filming.write(console, episode, env.objective_names, weights, self.out)


def discount(problem: str, gamma: float | None) -> float:
    """A discount factor, by default the paper's for the problem."""
    from windvane import oracle
    from windvane.training.config import TrainConfig

    return oracle.check_gamma(TrainConfig.for_env(problem).gamma if gamma is None else gamma)


def _coverage_table(env: "Environment", coverage: "CoverageSet") -> "Table":
    from rich.table import Table

    title = f"Coverage set, discounted by {coverage.gamma:g}, rewards times 1"
    table = Table(title=title, title_justify="left")
    table.add_column("", justify="right")
    for name in env.objective_names:
        table.add_column(name, justify="right")
    table.add_column("behaviour")
    for index, (value, behaviour) in enumerate(
        zip(coverage.values, coverage.behaviours, strict=True)
    ):
        table.add_row(str(index + 1), *(f"{v:.4f}" for v in value), behaviour)
    return table


def _write_csv(env: "Environment", coverage: "CoverageSet", path: Path) -> Path:
    from windvane.cli.printing import write_csv

    rows = [
        [*(f"{v:.6f}" for v in value), behaviour]
        for value, behaviour in zip(coverage.values, coverage.behaviours, strict=True)
    ]
    return write_csv(path, [*env.objective_names, "behaviour"], rows)
