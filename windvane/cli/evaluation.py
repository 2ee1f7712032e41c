"""The commands about trained policies: `windvane evaluate`, `front`, `watch`, `compare`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from windvane.cli.filming import Filming, amounts
from windvane.cli.options import POSITIONAL
from windvane.cli.printing import NOT_KNOWN, mean, number, print_table, unit, write_csv
from windvane.cli.training import Examples, Folder, Trust
from windvane.errors import InputError, require_int, require_positive_int
from windvane.files import make_folder, path_exists
from windvane.progress import progress_display, say

if TYPE_CHECKING:
    from rich.console import Console

    from windvane.evaluation import Evaluation
    from windvane.policy import Policy
    from windvane.runs.tables import Records
    from windvane.training.config import TrainConfig

PolicyName = Literal["best", "last"]
OracleName = Literal["auto", "on", "off"]

NAMED = 3
"""Weight vectors that are named as examples."""


@dataclass(frozen=True)
class Policies:
    """Policies and their optimum."""

    policy: PolicyName | None = None
    """Which policy of each run: the best that greedy evaluations found (see train
    --evaluate-every), or the last. Default: the best where there is one, else the last."""
    oracle: OracleName = "auto"
    """Whether regret is measured where the optimum can be computed; auto does as in training."""

    def load(self, folder: Path, trust: Trust) -> "dict[str, Policy]":
        """The policies of a finished training by name of run."""
        from windvane.runs.folder import load_config
        from windvane.runs.result import load_policies, policy_path

        names = load_config(folder).run_names
        best = None if self.policy is None else self.policy == "best"
        if best and not all(path_exists(policy_path(folder, name, True)) for name in names):
            raise InputError(
                f"there are no best policies in {folder}: it was trained without --evaluate-every"
            )
        policies = load_policies(folder, best=best, **trust.given)
        return dict(zip(names, policies, strict=True))

    def optimum(self, console: "Console", folder: Path, policy: "Policy") -> Any:
        """Values of a coverage set, discounted and unscaled; None where there are none."""
        from windvane.evaluation import known_values
        from windvane.oracle import SEARCHING
        from windvane.runs.folder import load_optimal

        if self.oracle == "off":
            return None
        try:
            given = load_optimal(folder, policy.spec.num_objectives)
        except InputError as error:
            raise InputError(f"{error}; or add --oracle off, and no regret is measured") from error
        if given is not None:
            return np.asarray(given)
        if self.oracle == "auto" and not policy.config.oracle:
            return None
        with progress_display(console, SEARCHING) as progress:
            return known_values(policy.world, policy.config.gamma, progress)


@dataclass(frozen=True)
class Episodes:
    """Greedy episodes."""

    episodes: int | None = None
    """Episodes per policy and weight vector. Default: 10 on the grid, 100 for weights that are
    given."""
    seed: int = 0
    """Seed of the episodes' random numbers."""

    def check(self) -> None:
        """Complain about numbers that cannot be meant, before anything takes long."""
        if self.episodes is not None:
            require_positive_int("--episodes", self.episodes, 1_000_000)
        require_int("--seed", self.seed, 0, 2**32 - 1)

    def play(
        self,
        console: "Console",
        policies: "dict[str, Policy]",
        weights: np.ndarray | None,
        optimal: Any,
    ) -> "dict[str, Evaluation]":
        """Evaluate every policy, for one weight vector or the grid."""
        from windvane.evaluation import evaluate

        episodes = self.episodes or (10 if weights is None else 100)
        with progress_display(console) as progress:
            return {
                name: evaluate(
                    policy, weights, episodes=episodes, seed=self.seed, optimal=optimal,
                    oracle=False, progress=_named(progress, name),
                )
                for name, policy in policies.items()
            }  # fmt: skip


@dataclass(frozen=True)
class Evaluate:
    """Play greedy episodes with all policies of a training, and measure utility and regret.

    The weights are a grid over the simplex unless some are given. Returns, utility (weights times
    returns) and regret (the optimal utility less that) are discounted and scaled as in training.
    """

    folder: Folder
    """Folder of a finished training."""
    policies: Policies
    episodes: Episodes
    trust: Trust
    weights: str | None = None
    """Weights, such as 0.3,0.7, that alone are evaluated, in more detail. Default: a grid over all
    weights."""

    examples: Examples = (
        ("windvane evaluate out/cn", "all runs of a training, over a grid of weights"),
        ("windvane evaluate out/cn --weights 0.3,0.7", "more detail for one weight vector"),
    )

    def run(self, console: "Console") -> None:
        """Play and print."""
        from windvane.machine import use_compilation_cache
        from windvane.weights import parse_weights

        self.episodes.check()
        use_compilation_cache()
        policies = self.policies.load(self.folder, self.trust)
        policy = next(iter(policies.values()))
        weights = None
        if self.weights is not None:
            weights = parse_weights(self.weights, policy.spec.num_objectives)
        optimal = self.policies.optimum(console, self.folder, policy)
        played = self.episodes.play(console, policies, weights, optimal)
        if weights is None:
            self._print_grid(console, policies, played)
        else:
            self._print_weights(console, policies, played)

    def _print_grid(
        self, console: "Console", policies: "dict[str, Policy]", played: "dict[str, Evaluation]"
    ) -> None:
        first = next(iter(policies.values()))
        vectors, episodes = next(iter(played.values())).returns.shape[:2]
        rows = [
            (
                name,
                f"{policies[name].step:,}",
                number(one.utility.mean()),
                number(one.utility.min()),
                number(one.regret.mean()),
                number(one.regret.max()),
                f"{100 * one.never_ending.mean():.1f}",
            )
            for name, one in played.items()
        ]
        print_table(
            console,
            f"Greedy episodes, {episodes} for each of {vectors} weight vectors "
            f"({unit(first.config)})",
            ("run", "trained for (steps)", "expected utility", "worst utility", "mean regret",
             "worst regret", "never ends (%)"),
            rows,
        )  # fmt: skip
        _print_means(console, "expected utility", [e.utility.mean() for e in played.values()])
        _print_means(console, "mean regret", [e.regret.mean() for e in played.values()])
        for name, one in played.items():
            if one.never_ending.any():
                say(console, f"{name}: {_never_ending(one)}")

    def _print_weights(
        self, console: "Console", policies: "dict[str, Policy]", played: "dict[str, Evaluation]"
    ) -> None:
        from windvane.evaluation import confidence

        policy = next(iter(policies.values()))
        names = policy.spec.objectives
        title = f"Greedy episodes for the weights {self.weights} ({unit(policy.config)})"
        rows = []
        for name, one in played.items():
            half = confidence(one.utilities[0])
            rows.append((
                name,
                *(number(value) for value in one.returns[0].mean(0)),
                number(one.utility[0]),
                number(one.regret[0]),
                f"+/- {half:.4f}" if np.isfinite(half) else NOT_KNOWN,
            ))  # fmt: skip
        print_table(console, title, ("run", *names, "utility", "regret", "95% interval"), rows)
        known = all(np.isfinite(one.regret).all() for one in played.values())
        what = "regret" if known else "utility"
        values = [one.regret[0] if known else one.utility[0] for one in played.values()]
        _print_means(console, f"mean {what}", values)
        for name, one in played.items():
            if one.never_ending.any():
                say(console, f"{name}: no episode ends by itself")


@dataclass(frozen=True)
class Front:
    """Measure and plot the front that trained policies reach.

    A point is the mean return of greedy episodes for one weight vector of a grid. Expected utility
    is the mean over the grid of the best point's utility. IGD, IGD+ and the maximum utility loss
    compare with the known front. All numbers are discounted and scaled as in training.
    """

    folder: Folder
    """Folder of a finished training."""
    policies: Policies
    episodes: Episodes
    trust: Trust
    reference: str | None = None
    """Point that the hypervolume is measured from, such as 0,-1, discounted and scaled. Default:
    the worst of each objective, reached or known, less 10% of its range."""
    out: Path | None = None
    """Folder for the plot and the points. Default: front, in the folder of the training."""

    examples: Examples = (
        ("windvane front out/cn", "plot and points go to out/cn/front"),
        ("windvane front out/cn --reference 0,-1", "a hypervolume that others can compare with"),
    )

    def run(self, console: "Console") -> None:
        """Play, measure, print and draw."""
        from windvane import fronts, plots
        from windvane.machine import use_compilation_cache

        self.episodes.check()
        use_compilation_cache()
        policies = self.policies.load(self.folder, self.trust)
        policy = next(iter(policies.values()))
        names, config = policy.spec.objectives, policy.config
        given = None if self.reference is None else _parse_point(self.reference, len(names))
        out = make_folder(self.folder / "front" if self.out is None else self.out)
        known = self.policies.optimum(console, self.folder, policy)
        played = self.episodes.play(console, policies, None, known)
        scaled = None if known is None else known * config.reward_scale
        reached = {name: one.returns.mean(1) for name, one in played.items()}
        best = {name: values[fronts.undominated(values)] for name, values in reached.items()}
        everything = [*reached.values(), *(() if scaled is None else (scaled,))]
        reference = fronts.reference_point(*everything) if given is None else given
        weights = next(iter(played.values())).weights
        fronts_by_name = best if scaled is None else best | {"known front": scaled}
        rows = [
            (name, str(len(values)), *_measures(values, reference, weights, scaled))
            for name, values in fronts_by_name.items()
        ]
        print_table(
            console,
            f"Fronts over {len(weights)} weight vectors ({unit(config)})",
            ("run", "points", "hypervolume", "expected utility", "sparsity", "IGD", "IGD+",
             "max. utility loss"),
            rows[: len(best)],
            footer=rows[len(best) :],
        )  # fmt: skip
        shown = ", ".join(f"{value:.6g}" for value in reference)
        say(console, f"reference point of the hypervolume: {shown}")
        figure = plots.reached_fronts(best, scaled, names, unit(config))
        written = [plots.save(figure, out / "front.png")]
        written.append(_write_points(out / "points.csv", played, names))
        say(console, "written: " + ", ".join(str(path) for path in written))


@dataclass(frozen=True)
class Watch:
    """Film one greedy episode of a trained policy: a GIF, an MP4 or a PNG strip of frames.

    It is the first episode that `windvane evaluate` plays with the same seed.
    """

    folder: Folder
    """Folder of a finished training."""
    weights: str
    """Weights, such as 0.3,0.7, one per objective."""
    filming: Filming
    policies: Policies
    trust: Trust
    run_seed: int | None = None
    """Seed of the run to film, the first if several share it. Default: the first run's."""
    out: Path = Path("out/watch.gif")
    """File of the film: .gif, .png, or .mp4, which needs ffmpeg."""

    examples: Examples = (
        ("windvane watch out/cn --weights 0.3,0.7", "writes out/watch.gif"),
        ("windvane watch out/cn --weights 0.9,0.1 --out out/cn.png", "a strip of frames"),
    )

    def run(self, console: "Console") -> None:
        """Play, draw and print."""
        from windvane.evaluation import evaluate_episode
        from windvane.machine import use_compilation_cache
        from windvane.rendering import film_policy
        from windvane.weights import parse_weights

        self.filming.check(self.out)
        use_compilation_cache()
        for driver in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
            os.environ.setdefault(driver, "dummy")  # pygame would look for a screen and speakers
        policy = self._policy()
        weights = parse_weights(self.weights, policy.spec.num_objectives)
        filming, names = self.filming, policy.spec.objectives
        episode = film_policy(policy, weights, filming.seed, filming.steps, filming.size)
        optimal = self.policies.optimum(console, self.folder, policy)
        judged = evaluate_episode(
            policy, weights, episode.rewards, episode.terminated, optimal=optimal, oracle=False
        )
        filming.write(console, episode, names, weights, self.out)
        say(console, f"return {amounts(names, judged.returns[0, 0])} ({unit(policy.config)})")
        regret = judged.regret[0]
        compared = f", regret {regret:.4f}" if np.isfinite(regret) else ""
        say(console, f"utility {judged.utility[0]:.4f}{compared} ({unit(policy.config)})")

    def _policy(self) -> "Policy":
        policies: dict[int, Policy] = {}
        for policy in self.policies.load(self.folder, self.trust).values():
            policies.setdefault(policy.seed, policy)
        if self.run_seed is None:
            return next(iter(policies.values()))
        if self.run_seed not in policies:
            known = ", ".join(map(str, policies))
            raise InputError(f"--run-seed must be one of {known}, not {self.run_seed}")
        return policies[self.run_seed]


@dataclass(frozen=True)
class Compare:
    """Compare trainings on one problem: a table, and a plot over the steps.

    They are compared by regret where all of them have it, else by utility.
    """

    folders: Annotated[tuple[Path, ...], POSITIONAL]
    """Folders of trainings, finished or not; the first is the baseline."""
    out: Path = Path("out/compare.png")
    """File of the plot, such as .png, .pdf or .svg."""

    examples: Examples = (
        ("windvane compare out/mo out/cn", "writes out/compare.png"),
        ("windvane compare out/mo out/cn --out out/regret.pdf", "the plot as a PDF"),
    )

    def run(self, console: "Console") -> None:
        """Read, print and draw."""
        from windvane import plots
        from windvane.experiments.report.palette import colour
        from windvane.runs.folder import load_config
        from windvane.runs.records import read_records
        from windvane.runs.result import run_means

        configs = [load_config(folder) for folder in self.folders]
        _check_same_problem(self.folders, configs)
        records = [read_records(folder) for folder in self.folders]
        for folder, found in zip(self.folders, records, strict=True):
            if not len(found.get("step", ())):
                raise InputError(f"no episode of the training in {folder} has ended yet")
        known = all(np.isfinite(found["regret"]).all() for found in records)
        column = "regret" if known else "utility"
        rows: list[tuple[str, ...]] = []
        curves: dict[str, Records] = {}
        agents: dict[str, str] = {}
        baseline = None
        for folder, config, found in zip(self.folders, configs, records, strict=True):
            seeds = len(config.seed_numbers)
            means = run_means(found, column, len(config.runs), config.steps)
            for index, schedule in enumerate(config.schedules):
                runs = slice(index * seeds, (index + 1) * seeds)
                overall, late = mean(means.overall[runs]), mean(means.last_quarter[runs])
                baseline = late if baseline is None else baseline
                several = f", {schedule}" if len(config.schedules) > 1 else ""
                same = sum(other.name == folder.name for other in self.folders) > 1
                where = folder if same else folder.name
                name = f"{config.agent}, {config.replay}{several} ({where})"
                share = 100 * late / baseline if baseline else float("nan")
                shown = f"{share:.0f}" if np.isfinite(share) else NOT_KNOWN
                rows.append((name, str(seeds), number(overall), number(late), shown))
                mask = found["run"] // seeds == index
                if mask.any():
                    curves[name] = {key: values[mask] for key, values in found.items()}
                    agents[name] = config.agent
        print_table(
            console,
            f"Mean {column} of training episodes ({unit(configs[0])})",
            ("training", "runs", "all episodes", "last quarter", "relative to first (%)"),
            rows,
        )
        # Of many environments some are recorded, so that their regrets add up to nothing.
        add_up = known and not any(config.rollout for config in configs)
        # An agent has its colour of every report where it is there once.
        once = len(set(agents.values())) == len(agents)
        colours = {name: colour(agent) for name, agent in agents.items()} if once else None
        if add_up:
            figure = plots.cumulative_regret(curves, colours)
        else:
            figure = plots.mean_curves(curves, column, colours=colours)
        say(console, f"written: {plots.save(figure, self.out)}")


def _named(progress: Callable[[str, int, int], None], run: str) -> Callable[[str, int, int], None]:
    return lambda what, done, total: progress(f"{what} of {run}", done, total)


def _print_means(console: "Console", what: str, values: "list[Any]") -> None:
    """The mean over runs, where there are several and all are known."""
    from windvane.evaluation import confidence

    array = np.asarray(values, float)
    if len(array) > 1 and np.isfinite(array).all():
        half = confidence(array)
        say(console, f"{what} of {len(array)} policies {array.mean():.4f} +/- {half:.4f} (95%)")


def _never_ending(one: "Evaluation") -> str:
    """Weights for which no episode ends, counted and some of them named."""
    vectors = one.weights[one.never_ending]
    picked = vectors[np.unique(np.linspace(0, len(vectors) - 1, NAMED).round().astype(int))]
    named = "; ".join(",".join(f"{weight:.3g}" for weight in vector) for vector in picked)
    such = "such as" if len(vectors) > len(picked) else "namely"
    return (
        f"no episode ends by itself for {len(vectors)} of {len(one.weights)} weight vectors, "
        f"{such} {named}"
    )


def _measures(
    values: np.ndarray, reference: np.ndarray, weights: np.ndarray, known: np.ndarray | None
) -> list[str]:
    from windvane import fronts

    found = [
        fronts.hypervolume(values, reference),
        fronts.expected_utility(values, weights),
        fronts.sparsity(values),
    ]
    if known is None:
        return [*(f"{value:.4g}" for value in found), *([NOT_KNOWN] * 3)]
    found += [
        fronts.igd(values, known),
        fronts.igd_plus(values, known),
        fronts.maximum_utility_loss(values, known, weights),
    ]
    return [f"{value:.4g}" for value in found]


def _parse_point(text: str, objectives: int) -> np.ndarray:
    try:
        point = np.asarray([float(part) for part in text.split(",")])
    except ValueError:
        point = np.zeros(0)
    if point.size != objectives or not np.isfinite(point).all():
        raise InputError(
            f"--reference must be {objectives} numbers separated by commas, one per objective, "
            f"not {text!r}"
        )
    return point


def _write_points(path: Path, played: "dict[str, Evaluation]", names: tuple[str, ...]) -> Path:
    from windvane import fronts

    header = ["run", *(f"weight of {n}" for n in names), *(f"return in {n}" for n in names)]
    rows: list[list[Any]] = []
    for run, one in played.items():
        values = one.returns.mean(1)
        best = set(fronts.undominated(values).tolist())
        for index, (vector, value) in enumerate(zip(one.weights, values, strict=True)):
            numbers = [f"{number:.6g}" for number in (*vector, *value)]
            ending = "no" if one.never_ending[index] else "yes"
            rows.append([run, *numbers, "yes" if index in best else "no", ending])
    return write_csv(path, [*header, "undominated", "ends by itself"], rows)


def _check_same_problem(folders: tuple[Path, ...], configs: "list[TrainConfig]") -> None:
    """Numbers of different problems, or in different units, cannot be compared."""
    first = configs[0]
    for folder, config in zip(folders, configs, strict=True):
        for name in ("env", "env_args", "gamma", "reward_scale"):
            one, other = getattr(first, name), getattr(config, name)
            if one != other:
                raise InputError(
                    f"{folders[0]} and {folder} are of different problems and cannot be compared: "
                    f"{name} is {one!r} and {other!r}"
                )
        if first.custom.get("env") != config.custom.get("env"):
            raise InputError(
                f"{folders[0]} and {folder} are of different problems and cannot be compared: "
                f"their environments, both {first.env}, have other parameters"
            )
