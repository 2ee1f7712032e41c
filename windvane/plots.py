"""Figures: problems and their optima, replay content, training curves, and fronts.

Those that are in the paper, too, name its figure.
"""

import itertools
from pathlib import Path
from typing import Any

import jax
import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.deep_sea_treasure_drawing import drawable
from windvane.envs.environment import Environment, require_renderable
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_drawing import to_picture
from windvane.errors import choose
from windvane.files import atomic_write, make_folder
from windvane.oracle import CoverageSet
from windvane.oracle.minecart_trips import mine_name

DPI = 150
MAX_PIXELS = 2**25
"""Of a figure; one that is larger, with many panels or a long legend, gets fewer dots per inch."""
MAX_SIDE = 2**15
"""In pixels; matplotlib draws no more than twice that."""
LONGEST = 3_600
"""Pixels of the longer side of a map."""


def save(figure: Figure, path: Path) -> Path:
    """Write a figure, in the format of the file's suffix; its folder is created."""
    ending = path.suffix.removeprefix(".").lower()
    choose("format of a picture", ending, sorted(figure.canvas.get_supported_filetypes()))
    make_folder(path.parent)
    options: Any = {"format": ending, "dpi": _dots(figure), "bbox_inches": "tight"}
    atomic_write(path, lambda file: figure.savefig(file, **options))
    return path


def _dots(figure: Figure) -> float:
    """Dots per inch at which a figure has no more pixels than are allowed."""
    inches = figure.get_tightbbox()
    width, height = max(inches.width, 0.1), max(inches.height, 0.1)
    return min(DPI, (MAX_PIXELS / (width * height)) ** 0.5, MAX_SIDE / max(width, height))


def as_label(name: str) -> str:
    """A name as matplotlib can draw it: as text, and with dollars that begin no formula."""
    return name.encode("utf-8", "replace").decode().replace("$", r"\$")


def regions(coverage: CoverageSet) -> tuple[list[str], np.ndarray]:
    """Names of the groups of similar entries and, for each entry, the index of its group."""
    names = list(dict.fromkeys(coverage.groups))
    return names, np.asarray([names.index(group) for group in coverage.groups])


def weight_space(env: Environment, coverage: CoverageSet, resolution: int = 400) -> Figure:
    """Which behaviour is optimal for which weights of three objectives (Figure 2, right)."""
    names, groups = regions(coverage)
    axis = np.linspace(0.0, 1.0, resolution)
    first, second = np.meshgrid(axis, axis)
    rest = 1 - first - second
    weights = np.stack([first, second, rest], -1)
    best = groups[(weights @ coverage.values.T).argmax(-1)].astype(float)
    best[rest < -1e-9] = np.nan
    colours = matplotlib.colormaps["tab20"](np.arange(len(names)) % 20)
    figure = Figure(figsize=(8, 5))
    axes = figure.add_subplot()
    axes.imshow(
        best, origin="lower", extent=(0, 100, 0, 100), cmap=ListedColormap(colours),
        vmin=-0.5, vmax=len(names) - 0.5, interpolation="nearest",
    )  # fmt: skip
    shares = _shares(groups, coverage)
    for group, name in enumerate(names):
        label = f"{group + 1}  {name}  ({100 * shares[group]:.1f}% of the weights)"
        axes.scatter([], [], marker="s", s=70, color=colours[group], label=label)
        rows, columns = np.nonzero(best == group)
        if rows.size > 60:
            # The point nearest to the centroid lies inside a region that is not convex, too.
            distances = (rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2
            at = distances.argmin()
            x, y = 100 * float(axis[columns[at]]), 100 * float(axis[rows[at]])
            axes.text(x, y, str(group + 1), ha="center", va="center", fontsize=9, weight="bold")
    axes.set_xlabel(f"weight of {env.objective_names[0]} (%)")
    axes.set_ylabel(f"weight of {env.objective_names[1]} (%)")
    axes.set_title(
        f"Optimal behaviour, gamma = {coverage.gamma:g} (the rest is {env.objective_names[2]})"
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False, fontsize=8)
    return figure


def _shares(groups: np.ndarray, coverage: CoverageSet, samples: int = 200_000) -> np.ndarray:
    """Share of the weights (uniform on the simplex) for which each group is optimal."""
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(coverage.values.shape[1]), samples)
    best = groups[(weights @ coverage.values.T).argmax(1)]
    return np.bincount(best, minlength=groups.max() + 1) / samples


def weight_line(env: Environment, coverage: CoverageSet) -> Figure:
    """Which behaviour is optimal along the weights of two objectives (appendix, colour map)."""
    first = np.linspace(0.0, 1.0, 20_001)
    best = (np.stack([first, 1 - first], 1) @ coverage.values.T).argmax(1)
    colours = matplotlib.colormaps["tab10"](np.arange(len(coverage)) % 10)
    figure = Figure(figsize=(8, 1.6))
    axes = figure.add_subplot()
    axes.imshow(
        best[None], aspect="auto", extent=(0, 100, 0, 1), cmap=ListedColormap(colours),
        vmin=-0.5, vmax=len(coverage) - 0.5, interpolation="nearest",
    )  # fmt: skip
    for entry in range(len(coverage)):
        here = first[best == entry]
        if here.size:
            label = f"{coverage.values[entry, 0]:.1f}\n{100 * here.size / first.size:.1f}%"
            colour = "white" if colours[entry, :3] @ (0.3, 0.6, 0.1) < 0.5 else "black"
            middle = 50 * (here[0] + here[-1])
            axes.text(middle, 0.5, label, ha="center", va="center", fontsize=7, color=colour)
    axes.set_yticks([])
    axes.set_xlabel(f"weight of {env.objective_names[0]} (%); the rest is {env.objective_names[1]}")
    axes.set_title("Optimal policy: discounted treasure, share of the weights")
    return figure


def front(env: Environment, coverage: CoverageSet, others: np.ndarray) -> Figure:
    """Value vectors of a coverage set of two objectives, with the undominated rest."""
    colours = matplotlib.colormaps["tab10"](np.arange(len(coverage)) % 10)
    figure = Figure(figsize=(5, 4))
    axes = figure.add_subplot()
    axes.plot(*coverage.values.T, color="0.6", zorder=1)
    if len(others) > len(coverage):
        axes.scatter(*others.T, color="0.7", s=18, zorder=1, label="undominated, never optimal")
    axes.scatter(*coverage.values.T, color=colours, s=40, zorder=2, label="coverage set")
    axes.set_xlabel(f"discounted {env.objective_names[0]}")
    axes.set_ylabel(f"discounted {env.objective_names[1]}")
    axes.set_title(f"Convex coverage set, gamma = {coverage.gamma:g}")
    axes.legend(frameon=False)
    return figure


def replay_content(recent: np.ndarray, diverse: np.ndarray, names: tuple[str, ...]) -> Figure:
    """Returns of the trajectories that a diverse buffer holds (Figure 3, middle): a dot each, for
    every pair of objectives.
    """
    names = tuple(map(as_label, names))
    pairs = list(itertools.combinations(range(len(names)), 2))
    figure = Figure(figsize=(4 * len(pairs), 3.8))
    for index, (first, second) in enumerate(pairs):
        axes = figure.add_subplot(1, len(pairs), index + 1)
        label = f"diverse half ({len(diverse)} trajectories)"
        axes.scatter(diverse[:, first], diverse[:, second], s=9, color="tab:blue", label=label)
        label = f"first-in first-out half ({len(recent)})"
        axes.scatter(recent[:, first], recent[:, second], s=9, color="tab:orange", label=label)
        axes.set_xlabel(f"return in {names[first]}")
        axes.set_ylabel(f"return in {names[second]}")
        if index == 0:
            axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def cumulative_regret(trainings: dict[str, dict[str, np.ndarray]]) -> Figure:
    """Cumulative regret over the steps (Figure 3, left and right): the mean of a training's runs,
    with a band of one standard error where there are several.
    """
    figure = Figure(figsize=(7, 4.5))
    axes = figure.add_subplot()
    for name, records in trainings.items():
        steps = np.linspace(0, records["step"].max(), 400)
        curves = []
        for run in np.unique(records["run"]):
            mask = records["run"] == run
            total = np.concatenate([[0.0], np.cumsum(records["regret"][mask])])
            curves.append(total[np.searchsorted(records["step"][mask], steps, side="right")])
        mean = np.mean(curves, axis=0)
        (line,) = axes.plot(steps, mean, label=as_label(name))
        if len(curves) > 1:
            error = np.std(curves, axis=0, ddof=1) / np.sqrt(len(curves))
            band = (mean - error, mean + error)
            axes.fill_between(steps, *band, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xlabel("steps")
    axes.set_ylabel("cumulative regret (discounted and scaled)")
    axes.legend(frameon=False)
    return figure


def mean_curves(
    trainings: dict[str, dict[str, np.ndarray]], column: str = "utility", bins: int = 50
) -> Figure:
    """Utility or regret over the steps: the mean of the episodes that ended in each of `bins`
    intervals, and of a training's runs, with a band of one standard error where there are several.
    """
    figure = Figure(figsize=(7, 4.5))
    axes = figure.add_subplot()
    for name, records in trainings.items():
        edges = np.linspace(0, records["step"].max(), bins + 1)
        curves = []
        for run in np.unique(records["run"]):
            mask = records["run"] == run
            interval = np.searchsorted(edges, records["step"][mask], side="left") - 1
            count = np.bincount(interval, minlength=bins)
            total = np.bincount(interval, records[column][mask], minlength=bins)
            curves.append(np.where(count > 0, total / np.maximum(count, 1), np.nan))
        table = np.asarray(curves)
        known = np.isfinite(table)
        number = known.sum(0)
        shown = number > 0
        middle = ((edges[:-1] + edges[1:]) / 2)[shown]
        values = np.where(known, table, 0.0)[:, shown]
        mean = values.sum(0) / number[shown]
        (line,) = axes.plot(middle, mean, label=as_label(name))
        if len(curves) > 1:
            squares = np.where(known[:, shown], (values - mean) ** 2, 0.0).sum(0)
            error = np.sqrt(squares / np.maximum(number[shown] - 1, 1) / number[shown])
            band = (mean - error, mean + error)
            axes.fill_between(middle, *band, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xlabel("steps")
    axes.set_ylabel(f"mean {column} of episodes (discounted and scaled)")
    axes.legend(frameon=False)
    return figure


def reached_fronts(
    fronts: dict[str, np.ndarray], known: np.ndarray | None, names: tuple[str, ...], unit: str
) -> Figure:
    """Undominated returns that policies reach, beside a known front: a panel for every pair of
    objectives.
    """
    names = tuple(map(as_label, names))
    pairs = list(itertools.combinations(range(len(names)), 2)) or [(0, 0)]
    columns = min(len(pairs), 3)
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(4.5 * columns, 4 * rows))
    for index, (first, second) in enumerate(pairs):
        axes = figure.add_subplot(rows, columns, index + 1)
        if known is not None:
            order = known[known[:, first].argsort()]
            style = {"color": "0.6", "marker": "s", "markersize": 6, "markerfacecolor": "none"}
            line = "-" if len(names) == 2 else ""
            axes.plot(
                order[:, first], order[:, second], linestyle=line, label="known front", **style
            )
        for name, values in fronts.items():
            axes.scatter(values[:, first], values[:, second], s=22, alpha=0.8, label=as_label(name))
        axes.set_xlabel(f"return in {names[first]}")
        axes.set_ylabel(f"return in {names[second]}")
        if index == 0:
            axes.legend(frameon=False, fontsize=8)
    figure.suptitle(f"Fronts ({unit})", fontsize=10)
    figure.tight_layout()
    return figure


def picture(env: Environment, size: int = 480) -> Figure | None:
    """The rendered environment at the start of an episode; None of a map that is too long."""
    rows, columns = env.sea_map.shape if isinstance(env, DeepSeaTreasure) else (1, 1)
    size = max(min(size, LONGEST * rows // columns), 1)
    if not drawable(rows, columns, size):
        return None
    image = np.asarray(require_renderable(env).render(env.reset(jax.random.key(0)), size))
    width = min(4 * image.shape[1] / image.shape[0], LONGEST / DPI)
    figure = Figure(figsize=(max(width, 0.5), 4))
    axes = figure.add_subplot()
    axes.imshow(image)
    if isinstance(env, Minecart):
        positions = np.asarray(to_picture(env.mine_positions)) * size
        for mine, (x, y) in enumerate(positions):
            axes.text(x, y, mine_name(mine), color="white", ha="center", va="center", fontsize=9)
    axes.set_axis_off()
    return figure


def oracle_figures(
    env: Environment, coverage: CoverageSet, front_values: np.ndarray
) -> dict[str, Figure]:
    """All figures that apply to `env`, by file name."""
    name = "dst" if isinstance(env, DeepSeaTreasure) else "minecart"
    start = picture(env)
    figures = {} if start is None else {f"{name}-map.png": start}
    if env.num_objectives == 3:
        figures[f"{name}-weight-space.png"] = weight_space(env, coverage)
    if env.num_objectives == 2:
        figures[f"{name}-coverage-set.png"] = front(env, coverage, front_values)
        figures[f"{name}-weight-space.png"] = weight_line(env, coverage)
    return figures
