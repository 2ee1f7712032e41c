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


CAPTION = rendering.Caption(3, ("treasure", "time"), (0.25, 0.75), (5.0, -3.0))


def caption_of(caption: rendering.Caption, height: int = 48) -> np.ndarray:
    """What is written below a grey frame."""
    frame = np.full((1, height, height, 3), 128, np.uint8)
    (picture,) = rendering.with_captions(frame, [caption])
    assert (picture[:height] == 128).any()
    return picture[height:]


def test_a_caption_has_the_step_the_weights_and_the_return() -> None:
    whole = caption_of(CAPTION)
    for changes in ({"step": 4}, {"returns": (5.0, -4.0)}, {"weights": (0.26, 0.74)}):
        assert not np.array_equal(caption_of(CAPTION._replace(**changes)), whole)
    assert not np.array_equal(caption_of(CAPTION._replace(objectives=("gold", "time"))), whole)
    bars = (whole == rendering._BAR).all(-1).sum(1)
    first, second = sorted(set(bars.tolist()) - {0})
    assert (second - 1) / (first - 1) == pytest.approx(3, rel=0.2)  # as the weights
    assert not (caption_of(CAPTION._replace(weights=None)) == rendering._BAR).all(-1).any()


def test_captions_grow_with_the_picture_and_long_names_are_cut() -> None:
    small, large = caption_of(CAPTION), caption_of(CAPTION, 480)
    assert large.shape[0] > 1.5 * small.shape[0]
    assert (small.shape[1], large.shape[1]) == (200, 480)
    long = CAPTION._replace(objectives=("n" * 100, "n" * 99))
    names = caption_of(long)[16:, : int(0.3 * 200)]
    assert (names < 128).all(-1).sum() > 20
    bars = (caption_of(long) == rendering._BAR).all(-1)
    assert np.array_equal(bars, (small == rendering._BAR).all(-1))  # nothing is written over them


def test_a_comparison_has_few_lines_and_the_first_training_in_every_panel() -> None:
    records = {
        "step": np.tile([1, 2], 2), "run": np.repeat([0, 1], 2), "regret": np.arange(4.0),
    }  # fmt: skip
    few, many = ({f"training {n}": records for n in range(number)} for number in (4, 9))
    for draw in (plots.cumulative_regret, lambda runs: plots.mean_curves(runs, "regret")):
        [axes] = draw(few).axes
        assert [text.get_text() for text in axes.texts] == list(few)
        panels = draw(many).axes
        assert [len(axes.lines) for axes in panels] == [4, 4, 3]
        assert all(axes.texts[0].get_text() == "training 0" for axes in panels)
        assert len({axes.get_ylim() for axes in panels}) == 1
        assert "Bands: one standard error" in draw(many).get_supxlabel()
    figure = plots.cumulative_regret(few, dict.fromkeys(few, "#123456"))
    assert {line.get_color() for line in figure.axes[0].lines} == {"#123456"}


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
