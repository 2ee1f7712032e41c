"""What the study of DST computes, against the oracle."""

import numpy as np
import pytest

from scripts.study_dst import EVEN, GAMMA, Sea, equal_shares, naive_regret
from windvane import coverage_set
from windvane.envs.deep_sea_treasure import MAPS, DeepSeaTreasure

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


def test_one_treasure_leaves_naive_nothing_to_get_wrong() -> None:
    sea_map = np.zeros((3, 3))
    sea_map[2, 2] = 10
    assert naive_regret(sea_map) == pytest.approx((0, 0), abs=1e-9)
    assert min(naive_regret(MAPS["paper"])) > 0.01
