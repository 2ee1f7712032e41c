"""Figures of a study: its history, what mattered, and values along each setting."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from windvane.figure_style import COLOURS, COLUMN, GREY, new_figure, short_label, styled
from windvane.search.report import Report, preset_value
from windvane.search.space import Interval
from windvane.search.study import PRESET, Study

STEEP = 20.0
"""Values that differ by such a factor are drawn on a log scale."""
WIDE = 30.0
"""A log axis that spans such a factor has a label at powers of ten alone."""
COLUMNS = 3
"""Panels beside each other."""


def figures(study: Study, report: Report) -> dict[str, Figure]:
    """All figures that there is something to show in, by file name."""
    trials = [t for t in study.finished if t.intermediate_values]
    if not trials:
        return {}
    found = {"history.png": history(report, trials), "slices.png": slices(report, trials)}
    if report.importances.early is not None:
        found["importances.png"] = shares(report)
    return found


def history(report: Report, trials: list[Any]) -> Figure:
    """Values of all trials in their order, the best so far, and the preset."""
    with styled():
        figure = new_figure(2.2, 1.6 * COLUMN)
        axes = figure.add_subplot()
        _scatter(axes, [(t.number, t) for t in trials])
        complete = [t for t in trials if t.state.name == "COMPLETE"]
        if complete:
            steps = [t.number for t in complete]
            lowest = np.minimum.accumulate([t.value for t in complete])
            axes.step(steps, lowest, where="post", color=COLOURS[0], label="best so far")
        _preset_line(axes, report)
        _scale(axes, trials)
        axes.set_xlabel("trial")
        axes.set_ylabel(report.measure)
        axes.legend(frameon=False)
    return figure


def slices(report: Report, trials: list[Any]) -> Figure:
    """A panel per setting: the values of trials along it."""
    names = list(report.plan.space)
    columns = min(len(names), COLUMNS)
    rows = -(-len(names) // columns)
    with styled():
        figure = new_figure(1.7 * rows + 0.4, 2.2 * COLUMN if columns > 1 else COLUMN)
        for number, name in enumerate(names):
            axes = figure.add_subplot(rows, columns, number + 1)
            dimension = report.plan.space[name]
            found = [(t.params[name], t) for t in trials if name in t.params]
            if isinstance(dimension, Interval):
                if dimension.log:
                    axes.set_xscale("log")
                    wide = dimension.high / dimension.low >= WIDE
                    axes.xaxis.set_major_locator(
                        LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0))
                    )
                    axes.xaxis.set_major_formatter("{x:g}")
                    axes.xaxis.set_minor_formatter(NullFormatter())
                places = found
            else:
                known = list(dimension.values)
                places = [(known.index(value), t) for value, t in found]
                axes.set_xticks(range(len(known)), [short_label(str(x), 10) for x in known])
                axes.set_xlim(-0.5, len(known) - 0.5)
            _scatter(axes, places)
            _preset_mark(axes, report, name)
            _scale(axes, trials)
            axes.set_xlabel(short_label(name, 30))
        figure.supylabel(report.measure)
        marks, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(marks, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def shares(report: Report) -> Figure:
    """How much of the differences between trials each setting explains."""
    found = report.importances
    early, end = found.early or {}, found.end
    names = list(early)[::-1]
    places = np.arange(len(names))
    with styled():
        figure = new_figure(0.3 * len(names) + 0.7, 1.6 * COLUMN)
        axes = figure.add_subplot()
        height = 0.38 if end else 0.7
        early_label = f"first rung ({found.early_trials} trials)"
        axes.barh(places + (height / 2 if end else 0), [early[name] for name in names], height,
                  color=COLOURS[0], label=early_label)  # fmt: skip
        if end:
            axes.barh(places - height / 2, [end.get(name, 0.0) for name in names], height,
                      color=COLOURS[1], label=f"end ({found.end_trials} trials)")  # fmt: skip
        axes.set_yticks(places, [short_label(name, 30) for name in names])
        axes.set_xlabel("share of the differences between trials")
        axes.legend(frameon=False)
    return figure


def _scatter(axes: Axes, places: Sequence[tuple[float, Any]]) -> None:
    """Trials that were stopped early in grey, at their last value."""
    kinds = {
        "stopped early": ("PRUNED", GREY, "x", 8),
        "trained to the end": ("COMPLETE", COLOURS[1], "o", 12),
    }
    for label, (state, colour, marker, size) in kinds.items():
        shown = [(x, _last(t)) for x, t in places if t.state.name == state]
        if shown:
            x, y = zip(*shown, strict=True)
            axes.scatter(x, y, s=size, color=colour, marker=marker, linewidths=0.7, label=label)


def _preset_line(axes: Axes, report: Report) -> None:
    if report.baseline is not None:
        axes.axhline(
            report.baseline.value, color=COLOURS[2], linestyle="--", linewidth=0.8, label=PRESET
        )


def _preset_mark(axes: Axes, report: Report, name: str) -> None:
    """The preset, where its own value lies in the search space."""
    trial = report.baseline
    if trial is None or name not in trial.params:
        return
    value, dimension = preset_value(report.plan, name), report.plan.space[name]
    x = value if isinstance(dimension, Interval) else list(dimension.values).index(value)
    axes.scatter([x], [trial.value], s=28, color=COLOURS[2], marker="D", label=PRESET)


def _scale(axes: Axes, trials: list[Any]) -> None:
    values = [_last(trial) for trial in trials]
    if min(values) > 0 and max(values) / min(values) > STEEP:
        axes.set_yscale("log")


def _last(trial: Any) -> float:
    if trial.value is not None:
        return trial.value
    return trial.intermediate_values[max(trial.intermediate_values)]
