"""How figures look: sizes and fonts for a column of a page, colours that everybody can tell apart,
and labels at the ends of lines.

What may not live here: what a figure shows.
"""

import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN = 85 / 25.4
"""Width of a page's column in inches."""
DOTS = 300
"""Per inch, of figures as small as that."""
MOST_LINES = 4
"""Lines that a panel may have; others are in panels of their own."""

COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#D55E00", "#332288", "#882255",
    "#7B3F00", "#000000",
)  # fmt: skip
"""Okabe and Ito's colours but for the yellow, which is too light for lines; two of Paul Tol's, and
a brown. `tests/test_figure_style.py` checks them."""
GREY = "0.55"
"""Of what is there to compare with."""
BAND_ALPHA = 0.15

STYLE: dict[str, Any] = {
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "figure.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
    "axes.titlepad": 4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),
}
_LABEL_SIZE = 6.5
_LONGEST = 22
"""Characters of a label within a figure."""
_NOTE_WIDTH = 64
"""Characters of a line below a figure that is as wide as a column."""


class End(NamedTuple):
    """A line's last point and what is written beside it."""

    x: float
    y: float
    text: str
    colour: Any


def styled() -> AbstractContextManager[None]:
    """A context in which figures of a column's width are built."""
    settings: Any = STYLE  # its keys are typed as literals
    return matplotlib.rc_context(settings)


def new_figure(height: float, width: float = COLUMN) -> Figure:
    """A figure of so many inches, whose parts make room for each other."""
    figure = Figure(figsize=(width, height), dpi=DOTS, layout="constrained")
    # Typed as an engine of any kind.
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.03, h_pad=0.03, wspace=0.04, hspace=0.04)
    return figure


def as_label(name: str) -> str:
    """A name as matplotlib can draw it: as text, with dollars that begin no formula, and shown even
    where it begins with an underscore.
    """
    shown = name.encode("utf-8", "replace").decode().replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def short_label(name: str, longest: int = _LONGEST) -> str:
    """The same of a name that may be too long for a figure."""
    return as_label(name if len(name) <= longest else f"{name[: longest - 1]}…")


def label_ends(axes: Axes, ends: Iterable[End], height: float, longest: int = _LONGEST) -> None:
    """Write beside the ends of lines what they are, each clear of the others; `height` is about
    that of the axes, in inches. To be called when the limits of the axes are set.
    """
    low, high = axes.get_ylim()
    least = 1.15 * _LABEL_SIZE / 72 / height * (high - low)
    for beside in _side_by_side(axes, list(ends), longest):
        ordered = sorted(beside, key=lambda end: end.y)
        places = spread([end.y for end in ordered], least, low + least / 2, high)
        for end, y in zip(ordered, places, strict=True):
            axes.annotate(
                short_label(end.text, longest), (end.x, y), (3, 0), textcoords="offset points",
                va="center", color=end.colour, fontsize=_LABEL_SIZE, annotation_clip=False,
            )  # fmt: skip


def _side_by_side(axes: Axes, ends: Sequence[End], longest: int) -> list[list[End]]:
    """Ends whose labels could meet, as they stand above each other. Others need no room."""
    letter = 0.55 * _LABEL_SIZE / 72 * axes.figure.dpi / axes.bbox.width
    to_fraction = axes.transData + axes.transAxes.inverted()
    starts = [float(to_fraction.transform((end.x, end.y))[0]) for end in ends]
    groups: list[list[End]] = []
    reach = -np.inf
    for start, end in sorted(zip(starts, ends, strict=True), key=lambda one: one[0]):
        if start > reach:
            groups.append([])
        groups[-1].append(end)
        reach = max(reach, start + letter * (min(len(end.text), longest) + 2))
    return groups


def spread(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Places in increasing order, moved as little as needed to be `least` apart, and, where there
    is room, between `low` and `high`.
    """
    groups: list[tuple[list[float], float]] = []  # the places in each, and its middle
    for place in places:
        members, middle = [place], place
        while groups:
            before, centre = groups[-1]
            apart = least * (len(before) + len(members)) / 2
            if middle - centre >= apart:
                break
            groups.pop()
            members = [*before, *members]
            middle = sum(members) / len(members)
        half = least * (len(members) - 1) / 2
        middle = min(max(middle, low + half), max(high - half, low + half))
        groups.append((members, middle))
    return [
        middle + least * (number - (len(members) - 1) / 2)
        for members, middle in groups
        for number in range(len(members))
    ]


def describe(figure: Figure, axis: str, note: str = "") -> None:
    """What lies along the bottom of all panels and, below it, how to read the figure."""
    width = int(_NOTE_WIDTH * figure.get_figwidth() / COLUMN)
    lines = textwrap.wrap(note, width)
    figure.supxlabel("\n".join([axis, *lines]), linespacing=1.4)


def format_steps(step: float, _: Any = None) -> str:
    """A number of steps on an axis."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(step) >= unit:
            return f"{step / unit:g}{name}"
    return f"{step:g}"
