"""Curves over the steps: cumulative regret, as in Figures 3 and 4 of the paper and in its appendix,
or the scalarised return where the optimum is not known; and both after a change of weights.

A colour is an agent and a line style is a replay rule, whichever of them were run.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from windvane.experiments.paper.published import published_tables
from windvane.experiments.report.palette import colour, line_style
from windvane.experiments.report.statistics import band
from windvane.experiments.report.summary import POINTS, RunSummary
from windvane.experiments.report.tables import Section
from windvane.experiments.report.titles import (
    agent_order,
    agent_titles,
    replay_order,
    replay_titles,
    schedule_order,
    schedule_title,
)
from windvane.experiments.runs.cells import Cell, steps_between_changes

LEAST_POINTS, LEAST_PERIODS = 5, 4
"""Points of a curve between two changes, and changes, that are needed to show what follows them."""
MOST_CHANGES = 100
"""More weight changes than this would make a grey panel, and are not marked."""
COLUMNS = 3
"""Most panels beside each other."""


def section_figures(section: Section) -> dict[str, Figure]:
    """The figures of a section by what they show: as many as there are curves for.

    `regret` has the cells of the paper's first table about the problem, and `replays` has all, if
    there are more; of other problems `regret` has all. `utility` is in place of both where the
    optimum is not known. `adaptation` has the cells of the first with sparse changes.
    """
    ran = {summary.cell for summary in section.summaries}
    figures = {}
    if section.measure == "utility":
        main = ran
        figures["utility"] = curve_figure(section, ran)
    else:
        tables = list(published_tables(section.problem).values())
        main = {published.cell for published in tables[0]} if tables else ran
        if ran & main:
            figures["regret"] = curve_figure(section, ran & main)
        if ran - main:
            figures["replays"] = curve_figure(section, ran)
    after: dict[Cell, list[list[float]]] = {}
    for summary in section.summaries:
        if summary.cell in main and (values := _after_changes(section, summary)):
            after.setdefault(summary.cell, []).append(values)
    if after:
        figures["adaptation"] = adaptation_figure(section, after)
    return figures


def curve_figure(section: Section, cells: Collection[Cell]) -> Figure:
    """A panel per schedule, sparse changes first; a panel without a curve is left out."""
    schedules = sorted({cell.schedule for cell in cells}, key=schedule_order)
    columns = min(len(schedules), COLUMNS)
    rows = -(-len(schedules) // columns)
    figure = Figure(figsize=(1.7 + 5 * columns, 4.2 * rows))
    here = [summary for summary in section.summaries if summary.cell in cells]
    for index, schedule in enumerate(schedules):
        axes = figure.add_subplot(rows, columns, index + 1)
        _panel(axes, section, [summary for summary in here if summary.schedule == schedule])
        if index % columns == 0:
            cumulative = section.measure == "regret"
            axes.set_ylabel("cumulative regret" if cumulative else "scalarised return")
    return _with_legend(figure, cells)


def adaptation_figure(section: Section, after: Mapping[Cell, list[list[float]]]) -> Figure:
    """The measure by the steps since the weights changed, over the second half of the training: for
    every run of a cell the values of `_after_changes`.
    """
    figure = Figure(figsize=(6.7, 4.2))
    axes = figure.add_subplot()
    each = section.steps / POINTS
    for cell, values in after.items():
        curves = np.asarray(values)
        _draw(axes, cell, (np.arange(curves.shape[1]) + 0.5) * each, curves)
    axes.set_title(schedule_title("sparse"))
    axes.set_xlabel("steps since the weights changed")
    regret = section.measure == "regret"
    axes.set_ylabel("regret per 1,000 steps" if regret else "scalarised return")
    _format(axes, from_zero=regret)
    axes.set_xlim(left=0)
    return _with_legend(figure, after)


def _after_changes(section: Section, summary: RunSummary) -> list[float]:
    """The mean at each point between two sparse changes, in the second half of the training: the
    regret of 1,000 steps, or the scalarised return. Empty where changes do not lie on points, or
    are too few or close to see.
    """
    steps, every = summary.config.steps, steps_between_changes(summary.config)
    if every is None or steps < POINTS or not summary.episodes:
        return []
    points, rest = divmod(every * POINTS, steps)
    periods = steps // every
    if rest or points < LEAST_POINTS or periods < LEAST_PERIODS:
        return []
    if section.measure == "regret":
        values = np.diff(summary.curve, prepend=0.0) * POINTS / steps * 1000
    elif summary.utility_curve is None:
        return []
    else:
        values = _carried_forward(summary.utility_curve)
    late = values[: periods * points].reshape(periods, points)[-(-periods // 2) :]
    return late.mean(0).tolist()


def _with_legend(figure: Figure, cells: Collection[Cell]) -> Figure:
    figure.tight_layout(rect=(0, 0, 1 - 1.5 / figure.get_figwidth(), 1))
    handles = _legend({cell.agent for cell in cells}, {cell.replay for cell in cells})
    figure.legend(
        handles=handles, loc="center left", frameon=False, handlelength=2.6,
        bbox_to_anchor=(1 - 1.45 / figure.get_figwidth(), 0.5),
    )  # fmt: skip
    return figure


def _panel(axes: Axes, section: Section, summaries: Sequence[RunSummary]) -> None:
    """The curves of one schedule; the summaries are sorted by cell."""
    config = summaries[0].config
    every = steps_between_changes(config)
    changes = range(every, config.steps, every) if every else ()
    for change in changes if len(changes) <= MOST_CHANGES else ():
        axes.axvline(change, color="0.85", linewidth=0.6, zorder=0)
    for cell, runs in groupby(summaries, key=lambda summary: summary.cell):
        drawn = [summary for summary in runs if summary.episodes]
        if section.measure == "regret":
            curves = [summary.curve for summary in drawn]
            steps = np.arange(POINTS + 1) * config.steps / POINTS
            if curves:
                _draw(axes, cell, steps, np.pad(curves, ((0, 0), (1, 0))))
        else:
            steps = (np.arange(POINTS) + 0.5) * config.steps / POINTS
            curves = [s.utility_curve for s in drawn if s.utility_curve is not None]
            _draw_means(axes, cell, steps, curves)
    axes.set_title(_label(schedule_title(summaries[0].schedule)))
    axes.set_xlabel("steps")
    _format(axes, from_zero=section.measure == "regret")
    axes.set_xlim(0, config.steps)


def _draw_means(axes: Axes, cell: Cell, steps: np.ndarray, curves: Sequence[np.ndarray]) -> None:
    """Curves of windows, from the first in which every run had finished an episode."""
    if curves:
        filled = np.stack([_carried_forward(curve) for curve in curves])
        there = np.isfinite(filled).all(0)
        if there.any():
            _draw(axes, cell, steps[there], filled[:, there])


def _carried_forward(curve: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
    """Windows in which no episode ended have the value of the one before."""
    known = np.isfinite(curve)
    last = np.maximum.accumulate(np.where(known, np.arange(len(curve)), -1))
    return np.where(last < 0, np.nan, curve[np.maximum(last, 0)])


def _draw(axes: Axes, cell: Cell, steps: np.ndarray, curves: np.ndarray) -> None:
    """The mean of a cell's runs and its band; runs that are not finite everywhere are left out."""
    curves = curves[np.isfinite(curves).all(1)]
    if not len(curves):
        return
    style = {"color": colour(cell.agent), "linestyle": line_style(cell.replay)}
    axes.plot(steps, curves.mean(0), linewidth=1.5, **style)
    ends = band(curves)
    if ends is not None:
        axes.fill_between(steps, *ends, color=style["color"], alpha=0.12, linewidth=0)


def _format(axes: Axes, from_zero: bool) -> None:
    if from_zero:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_major_formatter(lambda step, _: f"{step / 1000:g}k" if step else "0")
    axes.spines[["top", "right"]].set_visible(False)


def _label(text: str) -> str:
    """Text that Matplotlib shows as it is: dollars are no formula, and no label is hidden."""
    shown = text.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _legend(agents: Collection[str], replays: Collection[str]) -> list[Line2D]:
    """One entry per agent and one per replay, rather than one per curve: there may be 28."""
    agents, replays = sorted(agents, key=agent_order), sorted(replays, key=replay_order)
    names, rules = agent_titles(agents), replay_titles(replays)
    entries = [Line2D([], [], color=colour(a), linewidth=3, label=_label(names[a])) for a in agents]
    blank = Line2D([], [], linestyle="", label=" ")
    styles = [
        Line2D([], [], color="0.3", linestyle=line_style(r), label=_label(rules[r]))
        for r in replays
    ]
    return [*entries, blank, *styles]
