"""Colours that everybody can tell apart, and labels that keep clear of each other."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from windvane.experiments.report.palette import colour
from windvane.experiments.report.titles import known_agents
from windvane.figure_style import COLOURS, format_steps, short_label, spread

CONFUSIONS = {
    "none": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
"""How linear RGB looks to people without one kind of cone (Machado et al., 2009)."""


def linear(colours: list[str]) -> np.ndarray:
    values = np.asarray([to_rgb(colour) for colour in colours])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(values: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = np.asarray([0.9505, 1.0, 1.089])
    scaled = np.clip(values, 0, 1) @ np.asarray(to_xyz).T / white
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)


@pytest.mark.parametrize("kind", CONFUSIONS)
def test_colours_are_told_apart(kind: str) -> None:
    seen = lab(linear(list(COLOURS)) @ np.asarray(CONFUSIONS[kind]).T)
    closest = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))
    assert closest > 15  # 2.3 is just noticeable


def test_lines_are_dark_enough_on_white() -> None:
    luminance = linear(list(COLOURS)) @ [0.2126, 0.7152, 0.0722]
    assert (1.05 / (luminance + 0.05)).min() > 2


def test_every_agent_of_the_registry_has_one_of_them() -> None:
    assert {colour(agent) for agent in known_agents()} == set(COLOURS)


def test_labels_keep_clear_of_each_other() -> None:
    assert spread([], 1, 0, 10) == []
    assert spread([2, 5], 1, 0, 10) == [2, 5]
    assert spread([4.9, 5.1], 1, 0, 10) == pytest.approx([4.5, 5.5])
    assert spread([5, 5, 5], 1, 0, 10) == pytest.approx([4, 5, 6])
    assert spread([0, 0, 3], 1, 0, 10) == pytest.approx([0, 1, 3])
    assert spread([10, 10], 1, 0, 10) == pytest.approx([9, 10])
    # Two that are moved meet a third.
    moved = spread([1, 1, 1.6], 1, 0, 10)
    assert np.diff(moved) == pytest.approx([1, 1])
    assert np.mean(moved) == pytest.approx(1.2)
    # More than there is room for.
    assert np.diff(spread([1] * 5, 1, 0, 2)) == pytest.approx([1] * 4)


def test_steps_on_an_axis() -> None:
    assert [format_steps(n) for n in (0, 500, 2_500, 1e6)] == ["0", "500", "2.5k", "1M"]


def test_long_names_are_shortened() -> None:
    assert short_label("CN-ACTIVE") == "CN-ACTIVE"
    assert short_label("a" * 40) == "a" * 21 + "…"
    assert short_label("_$x") == r" _\$x"
