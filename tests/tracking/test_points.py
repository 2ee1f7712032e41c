"""Points of curves: true means, whatever the chunks are, and names that all trackers take."""

import math
from typing import Any

import numpy as np
import pytest

from windvane.tracking.points import Curves, Point, final_numbers, stretch_length
from windvane.training.callbacks import TrainingProgress
from windvane.training.config import TrainConfig

STEPS = 1000
CONFIG = TrainConfig.preset("quick-dst", steps=STEPS, seeds=2)


def episodes(number: int = 120, objectives: int = 2) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    step = np.sort(draw.integers(1, STEPS + 1, number)).astype(np.int32)
    table: dict[str, np.ndarray] = {
        "run": draw.integers(0, 2, number).astype(np.int32),
        "step": step,
        "length": draw.integers(1, 50, number).astype(np.int32),
        "regret": draw.normal(size=number),
        "utility": draw.normal(size=number),
        "epsilon": np.linspace(1, 0.1, number, dtype=np.float32),
        "loss": np.where(step < 300, 0, draw.random(number)).astype(np.float32),
    }
    returns = draw.normal(size=(objectives, number)).astype(np.float32)
    return table | {f"return_{i}": column for i, column in enumerate(returns)}


def told(
    table: dict[str, np.ndarray],
    stops: list[int],
    evaluations: dict[str, np.ndarray] | None = None,
    objectives: tuple[str, ...] = ("treasure", "time"),
) -> list[Point]:
    curves, found, start = Curves(STEPS, objectives), [], 0
    for stop in stops:
        mask = (table["step"] > start) & (table["step"] <= stop)
        greedy = None
        if evaluations is not None:
            chosen = (evaluations["step"] > start) & (evaluations["step"] <= stop)
            greedy = {name: column[chosen] for name, column in evaluations.items()}
        rows = {name: column[mask] for name, column in table.items()}
        progress = TrainingProgress(CONFIG, None, objectives, start, stop, rows, greedy)
        found += curves.add(progress)
        start = stop
    return found


@pytest.mark.parametrize(
    ("steps", "length"),
    [
        (1, 200),
        (100_000, 200),
        (100_001, 500),
        (250_000, 500),
        (1_000_000, 2_000),
        (1_000_001, 5_000),
        (100_000_000, 200_000),
    ],
)
def test_a_curve_has_at_most_500_points(steps: int, length: int) -> None:
    assert stretch_length(steps) == length
    assert -(-steps // length) <= 500


def test_points_are_means_of_what_ended_in_a_stretch() -> None:
    table = episodes()
    found = {(point.run, point.step): point.values for point in told(table, [STEPS])}
    assert sorted({step for _, step in found}) == [200, 400, 600, 800, 1000]
    for (run, step), values in found.items():
        mask = (table["run"] == run) & (table["step"] > step - 200) & (table["step"] <= step)
        assert values["training/regret"] == np.float32(table["regret"][mask].mean())
        assert values["training/episode_length"] == np.float32(table["length"][mask].mean())
        assert values["return/time"] == pytest.approx(table["return_1"][mask].mean(), abs=1e-6)
        losses = table["loss"][mask & (table["loss"] > 0)]
        if losses.size:
            assert values["training/loss"] == pytest.approx(losses.mean(), abs=1e-6)
        else:
            assert "training/loss" not in values


@pytest.mark.parametrize("stops", [[500, 1000], [1, 199, 200, 201, 777, 1000], [400, 600, 1000]])
def test_points_do_not_depend_on_chunks(stops: list[int]) -> None:
    assert told(episodes(), stops) == told(episodes(), [STEPS])


def test_a_stretch_is_told_when_it_is_complete() -> None:
    assert {point.step for point in told(episodes(), [399])} == {200}
    assert {point.step for point in told(episodes(), [400])} == {200, 400}


def test_what_is_not_known_has_no_point() -> None:
    table = episodes()
    table["regret"][:] = np.nan
    table["loss"][table["step"] > 600] = np.inf
    for point in told(table, [STEPS]):
        assert "training/regret" not in point.values
        assert ("training/loss" in point.values) == (400 <= point.step <= 600)
        assert all(map(math.isfinite, point.values.values()))


def test_evaluations_stand_at_their_own_steps_and_in_order() -> None:
    at = np.asarray([250, 250, 800, 800], np.int32)
    greedy: dict[str, Any] = {"run": np.asarray([0, 1, 0, 1], np.int32), "step": at}
    greedy |= {name: np.arange(4.0) for name in ("utility", "worst_utility", "never_ending")}
    greedy |= {name: np.full(4, np.nan) for name in ("regret", "worst_regret")}
    found = told(episodes(), [250, 900, 1000], greedy)
    order = [(point.step, point.run) for point in found]
    assert order == sorted(order)
    values = {(point.run, point.step): point.values for point in found}
    assert values[1, 250] == {
        "evaluation/utility": 1, "evaluation/worst_utility": 1, "evaluation/never_ending": 1,
    }  # fmt: skip
    assert values[0, 800].keys() > {"evaluation/utility", "training/utility"}


def test_names_that_every_tracker_takes() -> None:
    point = told(episodes(), [STEPS], objectives=("first ore (kg)", "fuel/s"))[0]
    assert {"return/first ore -kg-", "return/fuel-s"} < set(point.values)
    point = told(episodes(), [STEPS], objectives=("a(", "a)"))[0]
    assert {"return/0", "return/1"} < set(point.values)


def test_values_are_of_32_bits() -> None:
    for point in told(episodes(), [STEPS]):
        assert all(value == np.float32(value) for value in point.values.values())
    assert final_numbers({"utility": np.asarray([0.1, np.nan, 1e300])}, 0) == {
        "final/utility": float(np.float32(0.1))
    }
    assert final_numbers({"utility": np.asarray([0.1, np.nan, 1e300])}, 1) == {}
    assert final_numbers({"utility": np.asarray([0.1, np.nan, 1e300])}, 2) == {}
