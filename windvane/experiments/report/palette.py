"""Colours of agents and line styles of replay rules: for any of them, and the same in every figure.

Known names have the colours and styles of their place in the order. Those of all others follow from
the name alone, so that they do not depend on what else is shown.
"""

import colorsys
import hashlib
from typing import Any

from matplotlib.colors import to_hex

from windvane.experiments.report.titles import known_agents
from windvane.figure_style import COLOURS
from windvane.replay import REPLAYS

_STYLES = ("-", "--", ":", "-.")


def colour(agent: str) -> str:
    """The colour of an agent."""
    known = known_agents()
    if agent in known and known.index(agent) < len(COLOURS):
        return COLOURS[known.index(agent)]
    number = _number(agent)
    hue, lightness = number % 360 / 360, (0.28, 0.38, 0.48)[number // 360 % 3]
    return to_hex(colorsys.hls_to_rgb(hue, lightness, 0.75))


def line_style(replay: str) -> Any:
    """The line style of a replay rule, as Matplotlib takes it."""
    known = tuple(REPLAYS)
    if replay in known and known.index(replay) < len(_STYLES):
        return _STYLES[known.index(replay)]
    number = _number(replay)
    dash, gap, dots = 3 + 2 * (number % 5), 1 + number // 5 % 3, 2 + number // 15 % 3
    return 0, (dash, gap, *(1, gap) * dots)


def _number(name: str) -> int:
    """A number that follows from a name, on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
