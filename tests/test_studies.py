"""What the studies compute, against the oracle and against training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scripts.study_dst import EVEN, GAMMA, Sea, equal_shares, naive_regret
from scripts.study_maps import report as maps_report
from scripts.study_minecart import exploring, gaps, met_weights
from scripts.study_records import report, run_means, stretch_counts
from windvane import coverage_set
from windvane.envs.deep_sea_treasure import MAPS, DeepSeaTreasure
from windvane.errors import InputError
from windvane.experiments.report.summarise import summarise_run
from windvane.experiments.runs.store import Store
from windvane.runs.result import Result
from windvane.runs.runner import train
from windvane.training.config import TrainConfig

WEIGHTS = EVEN[5::20]


@pytest.mark.parametrize("name", sorted(MAPS))
def test_the_best_policies_are_worth_what_the_oracle_says(name: str) -> None:
    sea = Sea(MAPS[name])
    optimal = np.asarray(coverage_set(DeepSeaTreasure(name), GAMMA).optimal_value(WEIGHTS))
    for weights, value in zip(WEIGHTS, optimal, strict=True):
        q = sea.solve(lambda q, w=weights: sea.values(q, sea.greedy(q, w)))
        greedy = sea.greedy(q, weights)
        assert (sea.values(q, greedy)[sea.start] @ weights) == pytest.approx(value, rel=1e-5)
        assert sea.regret(weights, greedy) == pytest.approx(0, abs=1e-9)
        assert sea.regret(weights, np.full_like(greedy, 0.25)) > 0.1


def test_every_treasure_is_best_for_the_same_share_of_weights() -> None:
    sea_map = equal_shares((1, 2, 3, 4, 4, 4, 7, 7, 9, 10), 5.0)
    assert sea_map[1, 0] == pytest.approx(5)
    values = np.asarray(coverage_set(DeepSeaTreasure(sea_map), GAMMA).values)
    best = (EVEN @ values.T).argmax(1)
    assert sorted(np.bincount(best).tolist()) == [20] * 10


def test_the_page_about_the_maps_is_that_of_its_summaries() -> None:
    results = Path(__file__).parents[1] / "results"
    assert maps_report(results / "dst-maps") == (results / "dst-maps.md").read_text()


def test_one_treasure_leaves_naive_nothing_to_get_wrong() -> None:
    sea_map = np.zeros((3, 3))
    sea_map[2, 2] = 10
    assert naive_regret(sea_map) == pytest.approx((0, 0), abs=1e-9)
    assert min(naive_regret(MAPS["dcrac"])) > 0.01


@pytest.fixture(scope="module")
def trained() -> Result:
    small = {"observation": "features", "width": 8, "capacity": 500, "replay": "standard"}
    weights = {"schedule": "regular", "schedule_args": {"every": 3}, "seeds": (4, 5)}
    return train(TrainConfig.preset("paper-minecart", steps=1200, **small, **weights))


def test_the_weights_that_a_run_met_are_found_again(trained: Result) -> None:
    for number, run in enumerate(trained.config.runs):
        mine = {
            name: column[trained.records["run"] == number]
            for name, column in trained.records.items()
        }
        recorded = np.stack([mine[f"weights_{k}"] for k in range(3)], 1)
        np.testing.assert_allclose(met_weights(run, len(recorded)), recorded, atol=1e-6)
        ours, theirs = np.eye(3), 0.5 * np.eye(3)
        whole = summarise_run(run, mine, False, {})
        assert gaps(whole, ours, theirs)[0] == pytest.approx(recorded.max(1).mean() / 2, abs=1e-6)
        assert gaps(whole, ours, ours) == (0, 0)


def test_sparse_weights_last_as_many_steps_as_they_should() -> None:
    config = TrainConfig.preset("paper-minecart", seeds=(3,))
    weights = met_weights(config, 2000)
    numbers = np.unique(weights, axis=0, return_counts=True)[1]
    assert numbers.tolist() == [100] * 20


def test_all_who_explore_all_the_time_are_alike(trained: Result) -> None:
    one, other = trained.policies
    assert exploring(one, 1.0, 40) == exploring(other, 1.0, 40)
    assert exploring(one, 0.0, 40) != exploring(other, 0.0, 40)


def test_every_stretch_counts_the_same_however_many_episodes_end_in_it() -> None:
    ends, regrets = np.asarray([10, 20, 25, 95]), np.asarray([1.0, 3.0, 2.0, 5.0])
    assert np.average(regrets, weights=stretch_counts(ends, 25)) == pytest.approx(3.5)
    ends[2] = 26  # the first step of the next stretch
    assert np.average(regrets, weights=stretch_counts(ends, 25)) == pytest.approx(3)
    late = slice(3, None)
    assert np.average(regrets[late], weights=stretch_counts(ends, 25)[late]) == pytest.approx(5)


def test_all_means_of_one_regret_are_that_regret() -> None:
    lengths = np.random.default_rng(0).integers(1, 1000, 3000)
    ends = np.cumsum(lengths)
    records = {"step": ends, "length": lengths, "regret": np.full(3000, 0.3)}
    total = int(ends[-1]) // 200_000 * 200_000
    kept = {name: column[ends <= total] for name, column in records.items()}
    np.testing.assert_allclose(run_means(kept, total), 0.3)


def test_reports_take_the_same_means(trained: Result) -> None:
    for number, run in enumerate(trained.config.runs):
        mine = {
            name: column[trained.records["run"] == number]
            for name, column in trained.records.items()
        }
        found, means = summarise_run(run, mine, False, {}), run_means(mine, trained.config.steps)
        assert (found.overall, found.last) == pytest.approx(means[0], nan_ok=True)
        over_time = found.overall_over_time, found.last_over_time
        assert over_time == pytest.approx(means[-2], nan_ok=True)
        assert over_time[0] != pytest.approx(found.overall)


def test_early_long_episodes_count_by_their_steps() -> None:
    lengths = np.concatenate([np.full(500, 1000), np.full(20_000, 25)])
    records = {
        "step": np.cumsum(lengths),
        "length": lengths,
        "regret": np.where(lengths == 1000, 1.0, 0.1),
    }
    episodes, *stretches, steps = run_means(records, 1_000_000)
    assert episodes == pytest.approx((2500 / 20_500, 0.1))
    for mean in (*stretches, steps):
        assert mean[1] == pytest.approx(0.1)
    assert steps[0] == stretches[0][0] == stretches[1][0] == pytest.approx(0.55)
    assert stretches[2][0] == pytest.approx((500 * 1.0 + 2500 * 0.1) / 3000)  # of 200 steps


def test_the_last_quarter_begins_after_its_first_step() -> None:
    records = {
        "step": np.asarray([750_000, 999_000, 1_000_000]),
        "length": np.asarray([750_000, 249_000, 1_000]),
        "regret": np.asarray([8.0, 2.0, 4.0]),
    }
    episodes, *_, steps = run_means(records, 1_000_000)
    assert episodes[1] == pytest.approx(3)
    assert steps[1] == pytest.approx(2 * 0.996 + 4 * 0.004)


def test_what_is_told_of_a_store_stands_beside_the_papers(tmp_path: Path) -> None:
    lengths = np.full(40_000, 25, np.int32)
    ends = np.cumsum(lengths)
    mine = TrainConfig.preset("paper-minecart", agent="mo", replay="standard", seeds=(3,))
    for run, regret, loss in (
        (mine, 0.2, 0.1),
        (replace(mine, seeds=(4,)), 0.3, 40.0),  # lost
        (replace(mine, target_interval=37), 0.9, 50.0),  # does not count
        (replace(mine, replay="der"), 0.285, 0.1),
    ):
        records = {
            "step": ends,
            "length": lengths,
            "regret": np.full(40_000, regret),
            "loss": np.where(ends > 25_000, loss, 0.1),
        }
        Store(tmp_path).write(run, records, False, {})
    table = [line[2:-2].split(" | ") for line in report(tmp_path).splitlines() if "|" in line]
    head, _, der, standard, ratio = table[:5]
    assert [head[2], *head[-2:]] == ["episodes", "steps", "paper"]
    assert standard == ["mo-standard-sparse", "2", *["0.250 / 0.250"] * 5, "0.324 / 0.275"]
    assert der[1:3] == ["1", "0.285 / 0.285"]
    both = [(0.25 / 0.324 + 1) / 2, (0.25 / 0.275 + 0.285 / 0.207) / 2]
    assert ratio[-2] == " / ".join(f"{value:.3f}" for value in both)
    assert table[8] == [
        "mo-standard-sparse", "25", "0.0% to 0.0%", "10.0% to 10.0%", "0.10, 40.00",
    ]  # fmt: skip
    lost = table[9:]
    assert lost[0][0] == "mo-standard-sparse, seed 4"
    assert lost[2] == ["0 to 10,000", "0.100", "0.300", "25"]
    assert lost[4] == ["20,000 to 30,000", "20.050", "0.300", "25"]
    assert lost[-1] == ["80,000 to 1,000,000", "40.000", "0.300", "25"]
    with pytest.raises(InputError, match="no run of preset paper-minecart"):
        report(tmp_path / "nothing")
