"""Which runs are said to have diverged although their loss stayed finite."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs.small import small
from windvane.agents import AGENTS
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.experiments.runs.frames import LARGEST
from windvane.experiments.runs.store import Store
from windvane.runs.divergence import LossCheck, check_loss, exploded_runs
from windvane.runs.result import Result, read_summary
from windvane.runs.runner import read_result, train
from windvane.training.config import TrainConfig

MINECART = TrainConfig.preset("paper-minecart", agent="cn", replay="standard", seeds=(0,))


def episodes(losses: Any, **returns: Any) -> dict[str, np.ndarray]:
    return {
        "loss": np.asarray(losses, np.float32),
        **{name: np.asarray(values, np.float32) for name, values in returns.items()},
    }


# --- the rule


def test_a_loss_is_compared_with_the_widest_range_of_returns() -> None:
    """Ranges of 1.5, of 4 and, with 0, of 3."""
    returns = {"return_0": [0.5, 1.5], "return_1": [-1, 3], "return_2": [-2, -3]}
    just = check_loss(episodes([0.1, 40], **returns), MINECART)
    assert just == pytest.approx((40, 40))
    assert not just.exploded
    assert check_loss(episodes([0.1, 40.1], **returns), MINECART).exploded


def test_a_run_like_one_that_was_lost_is_marked_whatever_its_returns_were() -> None:
    """A loss that goes from 0.03 to 840; no episode of Minecart can earn or cost more than this."""
    low, high = Minecart().reward_bounds
    widest = float((high - low)[-1]) / (1 - MINECART.gamma)
    path = [0.03, 0.08, 5.0, 30.0, 140.0, 840.0, 40.0]
    returns = {"return_0": [1.5] * 7, "return_1": [1.5] * 7, "return_2": [-widest] * 7}
    assert widest > 8  # one as bad was held by a buffer
    found = check_loss(episodes(path, **returns), MINECART)
    assert found.exploded
    assert found.largest > 5 * found.limit


def test_a_run_that_recovers_from_a_small_excess_is_not_marked() -> None:
    returns = {"return_0": [0, 1.1, 1], "return_1": [0, 0, 1], "return_2": [-3, -1, -0.5]}
    assert not check_loss(episodes([0.03, 1.9, 0.05], **returns), MINECART).exploded


def test_the_first_loss_is_no_sign() -> None:
    """Of a network that has learned nothing yet, where returns are tiny, or there are none."""
    tiny = {"return_0": [0.0, 0, 0, 1e-6]}
    assert not check_loss(episodes([0, 0.5, 4, 0.1], **tiny), MINECART).exploded
    assert check_loss(episodes([0, 0.5, 6, 0.1], **tiny), MINECART).exploded


@pytest.mark.parametrize(
    "rows",
    [
        {},
        {"loss": np.asarray([1.0, 1e9])},
        episodes([], return_0=[]),
        episodes([0, 0], return_0=[1, 1]),  # learning has not started
        episodes([np.nan, np.inf], return_0=[1, 1]),
        {"return_0": np.ones(2)},
    ],
)
def test_where_nothing_is_known_nothing_is_marked(rows: dict[str, np.ndarray]) -> None:
    found = check_loss(rows, MINECART)
    assert np.isnan(found).all()
    assert not found.exploded


def test_what_is_not_finite_does_not_hide_what_is() -> None:
    assert check_loss(episodes([0.1, 50, np.nan], return_0=[1, 1, 1]), MINECART) == (50, 10)
    huge = episodes([0.1, 3e38], return_0=[1, 1])
    assert check_loss(huge, MINECART).exploded
    squared = check_loss(episodes([0.1, 1], return_0=[3e38, -3e38]), replace(MINECART, agent="pqn"))
    assert not squared.exploded


def test_squared_errors_are_compared_with_squares() -> None:
    assert {name for name in AGENTS if AGENTS[name].factory().loss_power == 2} == {
        "envelope", "pqn",
    }  # fmt: skip
    rows = episodes([0.01, 350], return_0=[0, 2], return_1=[-1, 0])
    assert check_loss(rows, MINECART) == pytest.approx((350, 20))
    assert check_loss(rows, replace(MINECART, agent="pqn")) == pytest.approx((350, 400))
    assert check_loss(rows, replace(MINECART, agent="elsewhere:Agent")).limit == pytest.approx(400)
    rows = episodes([16, 350], return_0=[0, 0.2])  # a first error of 4
    assert check_loss(rows, replace(MINECART, agent="pqn")).limit == pytest.approx(1600)


def test_the_property_is_the_rule() -> None:
    assert LossCheck(2, 1).exploded
    assert not LossCheck(1, 1).exploded


# --- where it is said


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return train(small(steps=240), out=tmp_path_factory.mktemp("trained") / "run")


def exploding(result: Result, run: int) -> Result:
    """The same with a loss of one run, at the end, that is far too large."""
    loss = result.records["loss"].copy()
    loss[np.flatnonzero(result.records["run"] == run)[-1]] = 1e4
    return replace(result, records=result.records | {"loss": loss})


def test_an_honest_run_is_not_marked(trained: Result) -> None:
    assert trained.exploded == trained.failed == ()
    assert trained.sentences == []
    assert trained.folder is not None
    summary = json.loads((trained.folder / "summary.json").read_text())
    assert summary["exploded"] == []


def test_a_result_names_its_runs(trained: Result, tmp_path: Path) -> None:
    result = exploding(trained, 1)
    assert result.exploded == exploded_runs(result.records, result.config) == (1,)
    assert result.sentences == [
        "1 of 2 runs diverged with a finite loss (seed-5): it was above 10 times what their "
        "returns allow, and they went on learning"
    ]
    # A run that stopped learning is not named twice.
    assert replace(result, failed=(1,)).exploded == ()
    assert len(replace(result, failed=(1,)).sentences) == 1


def test_run_folders_say_so_and_old_ones_are_read(trained: Result) -> None:
    folder = trained.folder
    assert folder is not None
    path = folder / "summary.json"
    whole = path.read_text()
    summary = json.loads(whole)
    del summary["exploded"]  # as it was written before
    path.write_text(json.dumps(summary))
    assert read_summary(folder, trained.config).failed == ()
    assert read_result(folder).exploded == ()
    for wrong, fault in (
        ([7], "a run that exploded must be"),
        ([1, 1], "it lists a run that exploded twice"),
        ("no", "it must list the runs that exploded"),
    ):
        path.write_text(json.dumps(summary | {"exploded": wrong}))
        with pytest.raises(InputError, match=fault):
            read_summary(folder, trained.config)
    path.write_text(whole)


def test_stores_and_summaries_say_so(trained: Result, tmp_path: Path) -> None:
    result, store = exploding(trained, 1), Store(tmp_path)
    for number, run in enumerate(result.config.runs):
        mask = result.records["run"] == number
        store.write(run, {name: x[mask] for name, x in result.records.items()}, False, {})
        assert store.exploded(run) == (number == 1)
        assert not store.diverged(run)
    one, other = store.summaries()
    assert (one.exploded, other.exploded) == (False, True)
    assert (other.largest_loss, other.loss_limit < 1e4) == (1e4, True)
    assert not replace(other, failed=True).exploded
    assert not replace(other, largest_loss=np.nan).exploded
    assert max(one.largest_loss, one.loss_limit) < LARGEST
