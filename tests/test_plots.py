"""Figures and films take a bounded number of pixels, whatever they show."""

from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image

from windvane import InputError, plots, rendering
from windvane.envs.deep_sea_treasure import DeepSeaTreasure


def sea(rows: int, columns: int) -> DeepSeaTreasure:
    table = np.zeros((rows, columns))
    table[-1, -1] = 5.0
    return DeepSeaTreasure(table, observation="features")


@pytest.mark.parametrize(("rows", "columns"), [(1, 151), (151, 1), (3, 3)])
def test_a_map_of_any_shape_is_a_picture_of_some_size(
    rows: int, columns: int, tmp_path: Path
) -> None:
    figure = plots.picture(sea(rows, columns))
    assert figure is not None
    (drawn,) = figure.axes[0].get_images()
    shape = np.asarray(drawn.get_array()).shape
    assert max(shape) <= plots.LONGEST
    with Image.open(plots.save(figure, tmp_path / "map.png")) as image:
        assert max(image.size) <= plots.LONGEST


def test_a_map_that_is_too_long_is_not_drawn() -> None:
    env = sea(1, 20_000)
    assert plots.picture(env) is None
    with pytest.raises(InputError, match="1 x 20,000 cells is too large to be drawn 48 pixels"):
        env.render(env.reset(jax.random.key(0)), 48)


def test_a_figure_of_many_panels_has_fewer_dots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "MAX_PIXELS", 100_000)
    names = tuple("abcde")
    points = {"run": np.random.default_rng(0).random((4, 5))}
    figure = plots.reached_fronts(points, None, names, "unit")
    with Image.open(plots.save(figure, tmp_path / "front.png")) as image:
        assert 50_000 < image.size[0] * image.size[1] < 150_000


def test_a_film_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    env = sea(3, 3)
    plan = rendering.RandomPlan(env.num_actions, jax.random.key(0))
    monkeypatch.setattr(rendering, "MAX_BYTES", 3 * 24 * 24 * 3)
    with pytest.raises(InputError, match=r"too long: its first 3 frames .* a smaller --size"):
        rendering.film(env, plan, jax.random.key(5), 50, 24)


def test_names_may_hold_anything(tmp_path: Path) -> None:
    name = "a $\\frac$ l\udcc3\udca4ufe"
    records = {"step": np.asarray([1, 2]), "run": np.zeros(2, int), "regret": np.ones(2)}
    points = {name: np.eye(2)}
    figures = {
        "fronts": plots.reached_fronts(points, None, (name, "cost in $"), "unit"),
        "means": plots.mean_curves({name: records}, "regret"),
        "sums": plots.cumulative_regret({name: records}),
    }
    for what, figure in figures.items():
        assert plots.save(figure, tmp_path / f"{what}.png").exists()
