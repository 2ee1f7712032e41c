"""Curves over the steps: cumulative regret, as in Figures 3 and 4 of the paper and in its appendix,
or the scalarised return where the optimum is not known; and both after a change of weights.

A panel shows one agent: at most four lines, which are its replay rules, and in grey the baseline. A
colour is an agent and a line style is a replay rule, whichever of them were run.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from windvane.experiments.paper.published import published_tables
from windvane.experiments.report.adaptation import after_changes, carried_forward
from windvane.experiments.report.palette import colour, line_style
from windvane.experiments.report.statistics import band
from windvane.experiments.report.summary import POINTS
from windvane.experiments.report.tables import BASELINE, Section, comparable
from windvane.experiments.report.titles import (
    agent_order,
    agent_titles,
    replay_order,
    replay_titles,
    schedule_order,
    schedule_title,
)
from windvane.experiments.runs.cells import Cell, steps_between_changes
from windvane.figure_style import (
    BAND_ALPHA,
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

MOST_CHANGES = 100
"""More weight changes than this would make a grey panel, and are not marked."""
COLUMNS = 2
"""Most panels beside each other."""
ROW, ONLY_ROW, REST = 1.05, 2.0, 0.65
"""Inches: the height of a row of panels, of a single one, and of what is around them."""
ROOM, MOST_ROOM = 1.15, 1.5
"""How much higher a panel is than the highest line in it, and at most, to hold all bands."""
_NOTE = "Bands: 95% interval of the mean over seeds (Student)."


class Curves(NamedTuple):
    """The curves of a cell's runs."""

    cell: Cell
    steps: Float[np.ndarray, " points"]
    runs: Float[np.ndarray, "runs points"]


class Panel(NamedTuple):
    """What is drawn into one panel: lines of one agent, and in grey what they compare with."""

    agent: str
    schedule: str
    curves: tuple[Curves, ...]
    reference: Curves | None

    @property
    def highest(self) -> float:
        """The highest value of a line."""
        drawn = (*self.curves, *([self.reference] if self.reference else []))
        return max(float(curves.runs.mean(0).max()) for curves in drawn)


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
    for summary in comparable([run for run in section.summaries if run.cell in main]):
        if values := after_changes(section, summary):
            after.setdefault(summary.cell, []).append(values)
    if after:
        figures["adaptation"] = adaptation_figure(section, after)
    return figures


def curve_figure(section: Section, cells: Collection[Cell]) -> Figure:
    """A column per schedule, sparse changes first, and a row per agent. More schedules than
    `COLUMNS` continue in rows below. All panels have one scale.
    """
    curves = _curves_of(section, cells)
    schedules = sorted({cell.schedule for cell in cells}, key=schedule_order)
    blocks = [schedules[at : at + COLUMNS] for at in range(0, len(schedules), COLUMNS)]
    grids = [[_panels(curves, cells, schedule) for schedule in block] for block in blocks]
    heights = [max(map(len, grid)) for grid in grids]
    columns = min(len(schedules), COLUMNS)
    figure, row_height = _figure(sum(heights), columns)
    every = [panel for grid in grids for panels in grid for panel in panels]
    cumulative = section.measure == "regret"
    with styled():
        top = 0
        for grid, height in zip(grids, heights, strict=True):
            for column, panels in enumerate(grid):
                for row, panel in enumerate(panels):
                    number = (top + row) * columns + column + 1
                    axes = figure.add_subplot(sum(heights), columns, number)
                    _mark_changes(axes, section, panel.schedule)
                    _draw_panel(axes, panel, every, row_height, from_zero=cumulative)
                    axes.set_xlim(0, section.steps)
                    if row == 0:
                        axes.set_title(short_label(schedule_title(panel.schedule)), pad=14)
                    if column and cumulative:
                        axes.tick_params(labelleft=False)
                    if row < len(panels) - 1:
                        axes.tick_params(labelbottom=False)
            top += height
        figure.supylabel("cumulative regret" if cumulative else "scalarised return")
        describe(figure, "steps", _note(every, section, changes="sparse" in schedules))
    return figure


def adaptation_figure(section: Section, after: Mapping[Cell, list[list[float]]]) -> Figure:
    """The measure by the steps since the weights changed, over the second half of the training: for
    every run of a cell the values of `after_changes`. A panel per agent, all with one scale.
    """
    each = section.steps / POINTS
    curves = {}
    for cell, values in after.items():
        runs = np.asarray(values)
        runs = runs[np.isfinite(runs).all(1)]
        if len(runs):
            curves[cell] = Curves(cell, (np.arange(runs.shape[1]) + 0.5) * each, runs)
    (schedule,) = {cell.schedule for cell in after}
    panels = _panels(curves, after, schedule)
    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    figure, row_height = _figure(rows, columns)
    regret = section.measure == "regret"
    with styled():
        for index, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, index + 1)
            _draw_panel(axes, panel, panels, row_height, from_zero=regret)
            axes.set_xlim(0, max(each * values.runs.shape[1] for values in panel.curves))
            if index % columns and regret:
                axes.tick_params(labelleft=False)
            if index + columns < len(panels):
                axes.tick_params(labelbottom=False)
        figure.supylabel("regret per 1,000 steps" if regret else "scalarised return")
        describe(figure, "steps since the weights changed", _note(panels, section, changes=False))
    return figure


def _figure(rows: int, columns: int) -> tuple[Figure, float]:
    """A figure for so many rows of panels, and about how high each of these is."""
    height = ONLY_ROW if rows == columns == 1 else ROW
    with styled():
        return new_figure(rows * height + REST, COLUMN), 0.85 * height


def _note(panels: Sequence[Panel], section: Section, changes: bool) -> str:
    """How to read a figure, below it."""
    said = [_NOTE]
    if section.measure == "regret" and _cut(panels):
        said.append("Where they reach further than the panel they are cut.")
    reference = next((panel.reference for panel in panels if panel.reference), None)
    if reference is not None:
        titles = agent_titles([reference.cell.agent]), replay_titles([reference.cell.replay])
        said.append(f"Grey: {titles[0][BASELINE[0]]} with {titles[1][BASELINE[1]]}.")
    if changes and _changes(section, "sparse"):
        said.append("Vertical lines: the weights change.")
    return " ".join(said)


def _curves_of(section: Section, cells: Collection[Cell]) -> dict[Cell, Curves]:
    """The curves of the cells that have some; the summaries are sorted by cell."""
    here = comparable([summary for summary in section.summaries if summary.cell in cells])
    found = {}
    for cell, runs in groupby(here, key=lambda summary: summary.cell):
        drawn = [summary for summary in runs if summary.episodes]
        if section.measure == "regret":
            steps = np.arange(POINTS + 1) * section.steps / POINTS
            curves = [np.pad(summary.curve, (1, 0)) for summary in drawn]
        else:
            steps = (np.arange(POINTS) + 0.5) * section.steps / POINTS
            curves = [
                carried_forward(s.utility_curve) for s in drawn if s.utility_curve is not None
            ]
        if not curves:
            continue
        values = np.stack(curves)
        if section.measure == "utility":  # from the first window in which every run had an episode
            there = np.isfinite(values).all(0)
            steps, values = steps[there], values[:, there]
        values = values[np.isfinite(values).all(1)]
        if values.size:
            found[cell] = Curves(cell, steps, values)
    return found


def _panels(curves: Mapping[Cell, Curves], cells: Collection[Cell], schedule: str) -> list[Panel]:
    """The panels of a schedule: one per agent, or several where it has more than four replays."""
    reference = curves.get(Cell(*BASELINE, schedule))
    panels = []
    here = [cell for cell in cells if cell.schedule == schedule]
    for agent in sorted({cell.agent for cell in here}, key=agent_order):
        mine = sorted(
            (cell for cell in here if cell.agent == agent), key=lambda c: replay_order(c.replay)
        )
        drawn = [curves[cell] for cell in mine if cell in curves]
        for at in range(0, max(len(drawn), 1), MOST_LINES):
            part = tuple(drawn[at : at + MOST_LINES])
            own = agent == BASELINE[0] or not 0 < len(part) < MOST_LINES
            panels.append(Panel(agent, schedule, part, None if own else reference))
    return panels


def _draw_panel(
    axes: Axes, panel: Panel, beside: Sequence[Panel], height: float, from_zero: bool
) -> None:
    """Draw a panel on the scale of all that are `beside` it, itself among them."""
    ends = []
    if panel.reference is not None:
        ends.append(_draw(axes, panel.reference, GREY, with_band=False))
    titles = replay_titles([curves.cell.replay for curves in panel.curves])
    for curves in panel.curves:
        end = _draw(axes, curves, colour(panel.agent), with_band=True)
        ends.append(end._replace(text=titles[curves.cell.replay].removesuffix(" ER")))
    if from_zero:
        axes.set_ylim(0, _top(beside))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_formatter(format_steps)
    label_ends(axes, ends, height)
    name = short_label(agent_titles([panel.agent])[panel.agent])
    axes.annotate(
        name, (0, 1), (2, 2), xycoords="axes fraction", textcoords="offset points", va="bottom",
        weight="bold", color=colour(panel.agent),
    )  # fmt: skip


def _draw(axes: Axes, curves: Curves, shade: str, with_band: bool) -> End:
    """The mean of a cell's runs and its band; where the line ends."""
    mean = curves.runs.mean(0)
    axes.plot(
        curves.steps, mean, color=shade, linestyle=line_style(curves.cell.replay),
        zorder=2 if with_band else 1.5,
    )  # fmt: skip
    ends = band(curves.runs)
    if with_band and ends is not None:
        axes.fill_between(curves.steps, *ends, color=shade, alpha=BAND_ALPHA, linewidth=0)
    title = agent_titles([curves.cell.agent])[curves.cell.agent]
    return End(float(curves.steps[-1]), float(mean[-1]), title, shade)


def _top(panels: Sequence[Panel]) -> float | None:
    """The upper end of the scale that panels share; None where nothing is above 0."""
    highest = max((panel.highest for panel in panels if panel.curves), default=0.0)
    top = min(max(ROOM * highest, _highest_band(panels)), MOST_ROOM * highest)
    return top if highest > 0 else None


def _cut(panels: Sequence[Panel]) -> bool:
    """Whether a band reaches further than the panels."""
    top = _top(panels)
    return top is not None and _highest_band(panels) > top


def _highest_band(panels: Sequence[Panel]) -> float:
    """The highest value of a band; 0 without one."""
    bands = [band(curves.runs) for panel in panels for curves in panel.curves]
    return max((float(ends[1].max()) for ends in bands if ends is not None), default=0.0)


def _mark_changes(axes: Axes, section: Section, schedule: str) -> None:
    """Thin lines where the weights change."""
    for change in _changes(section, schedule):
        axes.axvline(change, color="0.9", linewidth=0.4, zorder=0)


def _changes(section: Section, schedule: str) -> Sequence[int]:
    """The steps of a schedule's changes of weights; none where there are too many to be marked."""
    config = next(s.config for s in section.summaries if s.schedule == schedule)
    every = steps_between_changes(config)
    changes = range(every, config.steps, every) if every else ()
    return changes if len(changes) <= MOST_CHANGES else ()
