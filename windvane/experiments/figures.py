"""Cumulative regret over the steps: Figures 3 and 4 of the paper, and the appendix's with SEL and
EXP; and how regret falls after a change of weights. A colour is an agent and a style of line is a
replay, whichever of them were run.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TABLEAU_COLORS
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from windvane.experiments.digest import POINTS, Digest
from windvane.experiments.layout import REPLAYS
from windvane.experiments.published import published_results
from windvane.experiments.statistics import band
from windvane.experiments.tables import Section
from windvane.training.parts import SPARSE_EVERY

CellName = tuple[str, str, str]
"""Agent, replay, weights."""

STYLES: dict[str, Literal["-", "--", ":", "-."]] = {
    "standard": "-",
    "der": "--",
    "sel": ":",
    "exp": "-.",
}
LEAST_POINTS, LEAST_PERIODS = 5, 4
"""Points of a curve between two changes, and changes, that it takes to show what follows them."""
MOST_CHANGES = 100
"""More weight changes than this would be a grey panel, and are not marked."""


def section_figures(section: Section) -> dict[str, Figure]:
    """The figures of a section by what they show: as many as there are curves for.

    `regret` has the cells of the paper's first table about the problem, and `replays` has all, if
    there are more. `adaptation` has those of the first table with sparse changes.
    """
    ran = {digest.cell for digest in section.digests}
    first = published_results(problem=section.problem)[0].table
    main = {(cell.agent, cell.replay, cell.weights) for cell in published_results(table=first)}
    figures = {}
    if ran & main:
        figures["regret"] = regret_figure(section, ran & main)
    if ran - main:
        figures["replays"] = regret_figure(section, ran)
    after: dict[CellName, list[list[float]]] = {}
    for digest in section.digests:
        if digest.cell in main and (regrets := _after_changes(digest)):
            after.setdefault(digest.cell, []).append(regrets)
    if after:
        figures["adaptation"] = adaptation_figure(after, section.digests[0].config.steps / POINTS)
    return figures


def regret_figure(section: Section, cells: Collection[CellName]) -> Figure:
    """Sparse changes left, regular ones right; a panel without a curve is left out."""
    panels = [name for name in ("sparse", "regular") if any(cell[2] == name for cell in cells)]
    figure = Figure(figsize=(1.7 + 5 * len(panels), 4.2))
    for index, weights in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        here = [digest for digest in section.digests if digest.cell in cells]
        _panel(axes, weights, [digest for digest in here if digest.cell[2] == weights])
        if index == 0:
            axes.set_ylabel("cumulative regret")
    return _with_legend(figure, cells)


def adaptation_figure(after: Mapping[CellName, list[list[float]]], each: float) -> Figure:
    """Regret by the steps since the weights changed, over the second half of the training: for
    every run of a cell what `_after_changes` says, for points that are `each` steps apart.
    """
    figure = Figure(figsize=(6.7, 4.2))
    axes = figure.add_subplot()
    for cell, regrets in after.items():
        curves = np.asarray(regrets)
        _draw(axes, cell, (np.arange(curves.shape[1]) + 0.5) * each, curves)
    axes.set_title("sparse weight changes")
    axes.set_xlabel("steps since the weights changed")
    axes.set_ylabel("regret per 1,000 steps")
    _tidy(axes)
    axes.set_xlim(left=0)
    return _with_legend(figure, after)


def _after_changes(digest: Digest) -> list[float]:
    """Mean regret of 1,000 steps at each point between two sparse changes, in the second half of
    the training; nothing where changes do not lie on points or are too few or close to see.
    """
    config = digest.config
    every = config.weights_every or SPARSE_EVERY[config.env]
    points, rest = divmod(every * POINTS, config.steps)
    periods = config.steps // every
    few = points < LEAST_POINTS or periods < LEAST_PERIODS or config.steps < POINTS
    if config.weights != "sparse" or rest or few or not digest.episodes:
        return []
    regret = np.diff(digest.curve, prepend=0.0)[: periods * points].reshape(periods, points)
    return (regret[-(-periods // 2) :].mean(0) * POINTS / config.steps * 1000).tolist()


def _with_legend(figure: Figure, cells: Collection[CellName]) -> Figure:
    figure.tight_layout(rect=(0, 0, 1 - 1.5 / figure.get_figwidth(), 1))
    handles = _legend({cell[0] for cell in cells}, {cell[1] for cell in cells})
    figure.legend(
        handles=handles, loc="center left", frameon=False, handlelength=2.6,
        bbox_to_anchor=(1 - 1.45 / figure.get_figwidth(), 0.5),
    )  # fmt: skip
    return figure


def _panel(axes: Axes, weights: str, digests: list[Digest]) -> None:
    config = digests[0].config
    steps = np.arange(POINTS + 1) * config.steps / POINTS
    if weights == "sparse":
        every = config.weights_every or SPARSE_EVERY[config.env]
        changes = range(every, config.steps, every)
        for change in changes if len(changes) <= MOST_CHANGES else ():
            axes.axvline(change, color="0.85", linewidth=0.6, zorder=0)
    for cell in dict.fromkeys(digest.cell for digest in digests):
        curves = [digest.curve for digest in digests if digest.cell == cell and digest.episodes]
        if curves:
            _draw(axes, cell, steps, np.pad(curves, ((0, 0), (1, 0))))
    axes.set_title(f"{weights} weight changes")
    axes.set_xlabel("steps")
    _tidy(axes)
    axes.set_xlim(0, config.steps)


def _draw(axes: Axes, cell: CellName, steps: np.ndarray, curves: np.ndarray) -> None:
    """The mean of a cell's runs and its band; one that came to no number is left out."""
    curves = curves[np.isfinite(curves).all(1)]
    if not len(curves):
        return
    colour, style = _colours()[cell[0]], STYLES[cell[1]]
    axes.plot(steps, curves.mean(0), color=colour, linestyle=style, linewidth=1.5)
    ends = band(curves)
    if ends is not None:
        axes.fill_between(steps, *ends, color=colour, alpha=0.12, linewidth=0)


def _tidy(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_major_formatter(lambda step, _: f"{step / 1000:g}k" if step else "0")
    axes.spines[["top", "right"]].set_visible(False)


def _legend(agents: Collection[str], replays: Collection[str]) -> list[Line2D]:
    """One entry an agent and one a replay, rather than one a curve: there may be 28 of these."""
    colours = _colours()
    entries = [
        Line2D([], [], color=colours[agent], linewidth=3, label=agent.upper())
        for agent in colours
        if agent in agents
    ]
    blank = Line2D([], [], linestyle="", label=" ")
    styles = [
        Line2D([], [], color="0.3", linestyle=STYLES[replay], label=REPLAYS[replay])
        for replay in STYLES
        if replay in replays
    ]
    return [*entries, blank, *styles]


def _colours() -> dict[str, str]:
    """A colour for every agent, in the order of the paper, the same in every figure."""
    agents = dict.fromkeys(cell.agent for cell in published_results())
    return dict(zip(agents, TABLEAU_COLORS, strict=False))
