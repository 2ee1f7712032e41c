"""Figures: problems and their optima, replay content, training curves, and fronts.

Those that are in the paper, too, name its figure.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.deep_sea_treasure_drawing import drawable
from windvane.envs.environment import Environment, require_renderable
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_drawing import to_picture
from windvane.errors import choose
from windvane.figure_style import (
    BAND_ALPHA,
    COLOURS,
    COLUMN,
    GREY,
    MOST_LINES,
    End,
    describe,
    format_steps,
    label_ends,
    new_figure,
    short_label,
    styled,
)
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
MAX_LABEL = 36
"""Characters of a training's name beside its line."""
MOST_NAMES = 24
"""Fronts that a legend names."""


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
    return min(
        max(DPI, figure.dpi), (MAX_PIXELS / (width * height)) ** 0.5, MAX_SIDE / max(width, height)
    )


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
    names = tuple(map(short_label, names))
    halves = {
        f"first-in first-out half ({len(recent):,} trajectories)": (recent, COLOURS[1], "o", 8),
        f"diverse half ({len(diverse):,})": (diverse, COLOURS[0], "^", 3),
    }
    with styled():
        figure, panels = _pairs(len(names), COLUMN)
        for axes, first, second in panels:
            for values, colour, marker, size in halves.values():
                axes.scatter(
                    values[:, first], values[:, second], s=size, color=colour, marker=marker,
                    alpha=0.5, linewidths=0,
                )  # fmt: skip
            axes.set_xlabel(f"return in {names[first]}")
            axes.set_ylabel(f"return in {names[second]}")
        marks = [
            Line2D([], [], color=colour, marker=marker, linestyle="", label=text)
            for text, (_, colour, marker, _) in halves.items()
        ]
        figure.legend(handles=marks, loc="outside upper center", frameon=False, handletextpad=0.1)
    return figure


def _pairs(objectives: int, width: float) -> tuple[Figure, list[tuple[Axes, int, int]]]:
    """A figure with a panel for every pair of objectives, two beside each other; of a single
    objective, one with itself.
    """
    pairs = list(itertools.combinations(range(objectives), 2)) or [(0, 0)]
    columns = min(len(pairs), 2)
    rows = -(-len(pairs) // columns)
    shape = 0.7 if columns == 1 else 0.85
    figure = new_figure(rows * shape * width / columns + 0.4, width)
    grid = (figure.add_subplot(rows, columns, number + 1) for number in range(len(pairs)))
    return figure, [(axes, *pair) for axes, pair in zip(grid, pairs, strict=True)]


Curve = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Steps, the mean over runs, and its standard error if there are several."""


def cumulative_regret(
    trainings: dict[str, dict[str, np.ndarray]], colours: Mapping[str, str] | None = None
) -> Figure:
    """Cumulative regret over the steps (Figure 3, left and right): the mean of a training's runs,
    with a band of one standard error where there are several. `colours` are by training.
    """
    found = {}
    for name, records in trainings.items():
        steps = np.linspace(0, records["step"].max(), 400)
        curves = []
        for run in np.unique(records["run"]):
            mask = records["run"] == run
            total = np.concatenate([[0.0], np.cumsum(records["regret"][mask])])
            curves.append(total[np.searchsorted(records["step"][mask], steps, side="right")])
        error = np.std(curves, axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else None
        found[name] = steps, np.mean(curves, axis=0), error
    return _comparison(found, "cumulative regret (discounted and scaled)", colours)


def mean_curves(
    trainings: dict[str, dict[str, np.ndarray]],
    column: str = "utility",
    bins: int = 50,
    colours: Mapping[str, str] | None = None,
) -> Figure:
    """Utility or regret over the steps: the mean of the episodes that ended in each of `bins`
    intervals, and of a training's runs, with a band of one standard error where there are several.
    `colours` are by training.
    """
    found = {}
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
        error = None
        if len(curves) > 1:
            squares = np.where(known[:, shown], (values - mean) ** 2, 0.0).sum(0)
            error = np.sqrt(squares / np.maximum(number[shown] - 1, 1) / number[shown])
        found[name] = middle, mean, error
    return _comparison(found, f"mean {column} of episodes (discounted and scaled)", colours)


def _comparison(
    curves: Mapping[str, Curve], what: str, colours: Mapping[str, str] | None
) -> Figure:
    """Panels below each other on one scale, with at most four lines each: in every one after the
    first, the first training is there in grey.
    """
    first, *others = curves
    size = MOST_LINES - 1
    parts = [others[at : at + size] for at in range(0, len(others), size)] or [[]]
    shades = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(curves)}
    shades |= dict(colours or {})
    with styled():
        height = 2.2 if len(parts) == 1 else 1.6
        figure = new_figure(height * len(parts) + 0.5, 1.6 * COLUMN)
        panels: list[tuple[Axes, list[End]]] = []
        for number, part in enumerate(parts):
            top = panels[0][0] if panels else None
            axes = figure.add_subplot(len(parts), 1, number + 1, sharex=top, sharey=top)
            ends = []
            for name in (first, *part):
                steps, mean, error = curves[name]
                grey = name == first and number > 0
                shade = GREY if grey else shades[name]
                axes.plot(steps, mean, color=shade, zorder=1.5 if grey else 2)
                if error is not None and not grey:
                    axes.fill_between(
                        steps, mean - error, mean + error, color=shade, alpha=BAND_ALPHA,
                        linewidth=0,
                    )  # fmt: skip
                ends.append(End(float(steps[-1]), float(mean[-1]), name, shade))
            axes.xaxis.set_major_formatter(format_steps)
            axes.yaxis.set_major_formatter("{x:,g}")
            panels.append((axes, ends))
        longest = max(float(steps[-1]) for steps, _, _ in curves.values())
        for axes, ends in panels:
            axes.set_xlim(0, longest)
            ends = [end._replace(x=longest) for end in ends]
            label_ends(axes, ends, 0.85 * height, longest=MAX_LABEL)
        figure.supylabel(what)
        banded = any(error is not None for _, _, error in curves.values())
        describe(figure, "steps", "Bands: one standard error of the mean over runs." * banded)
    return figure


def reached_fronts(
    fronts: dict[str, np.ndarray], known: np.ndarray | None, names: tuple[str, ...], unit: str
) -> Figure:
    """Undominated returns that policies reach, beside a known front: a panel for every pair of
    objectives.
    """
    names = tuple(map(short_label, names))
    with styled():
        figure, panels = _pairs(len(names), 2 * COLUMN if len(names) > 2 else 1.2 * COLUMN)
        for axes, first, second in panels:
            if known is not None:
                order = known[known[:, first].argsort()]
                line = "-" if len(names) == 2 else ""
                axes.plot(
                    order[:, first], order[:, second], linestyle=line, color=GREY, marker="s",
                    markerfacecolor="none", label="known front",
                )  # fmt: skip
            for index, (name, values) in enumerate(fronts.items()):
                axes.scatter(
                    values[:, first], values[:, second], s=10, alpha=0.8, linewidths=0,
                    color=COLOURS[index % len(COLOURS)], label=short_label(name),
                )  # fmt: skip
            axes.set_xlabel(f"return in {names[first]}")
            axes.set_ylabel(f"return in {names[second]}")
        marks, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            marks[:MOST_NAMES], labels[:MOST_NAMES], loc="outside right upper", frameon=False
        )
        figure.suptitle(f"Fronts ({unit})", fontsize=7)
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
