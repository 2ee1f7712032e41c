"""Deep Sea Treasure's optimum against brute force and the figures of the paper's map."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windvane import oracle
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def value_iteration(sea_map: np.ndarray, weights: np.ndarray, gamma: float) -> float:
    """The optimum by plain dynamic programming over the cells, knowing nothing of shortest ways."""
    rows, columns = sea_map.shape
    value = np.zeros(sea_map.shape)
    for _ in range(400):
        new = np.full(sea_map.shape, -np.inf)
        for row in range(rows):
            for column in range(columns):
                if sea_map[row, column] != 0:
                    continue
                for down, right in MOVES:
                    to = (row + down, column + right)
                    inside = 0 <= to[0] < rows and 0 <= to[1] < columns
                    if not inside or sea_map[to] < 0:
                        to = (row, column)
                    ends = sea_map[to] > 0
                    reward = weights[0] * max(sea_map[to], 0.0) - weights[1]
                    new[row, column] = max(
                        new[row, column], reward + gamma * value[to] * (not ends)
                    )
        value = np.where(np.isfinite(new), new, 0.0)
    return float(value[0, 0])


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_random_maps_agree_with_value_iteration(seed: int) -> None:
    generator = np.random.default_rng(seed)
    sea_map = np.where(generator.random((5, 6)) < 0.25, generator.integers(1, 60, (5, 6)), 0.0)
    sea_map[generator.random((5, 6)) < 0.2] = -10
    sea_map[0, 0] = 0
    try:
        env = DeepSeaTreasure(sea_map, time_limit=1000)
    except InputError:
        return
    for treasure in (0.0, 0.1, 0.5, 0.9):
        weights = np.asarray([treasure, 1 - treasure])
        expected = value_iteration(sea_map, weights, 0.9)
        assert oracle.optimal_value(env, 0.9, weights) == pytest.approx(expected, abs=1e-9)


def test_the_papers_map_has_ten_policies_with_the_stated_shares() -> None:
    coverage = oracle.coverage_set(DeepSeaTreasure(), 0.95)
    first = np.linspace(0, 1, 100_001)
    best = (np.stack([first, 1 - first], 1) @ coverage.values.T).argmax(1)
    shares = 100 * np.bincount(best, minlength=len(coverage)) / len(first)
    expected = [12.4, 9.2, 7.1, 5.9, 9.5, 12.9, 9.1, 9.6, 12.3, 11.9]
    assert np.allclose(shares, expected, atol=0.06)


def test_a_value_by_hand() -> None:
    # Treasure 18 is two steps down: 18 gamma, and -1 - gamma of time.
    coverage = oracle.coverage_set(DeepSeaTreasure(), 0.95)
    assert np.allclose(coverage.values[0], [18 * 0.95, -1.95])


@pytest.mark.parametrize("sea_map", ["dcrac", "tenths", "convex", "concave"])
@pytest.mark.parametrize("gamma", [0.95, 1.0])
def test_every_plan_earns_its_value(sea_map: str, gamma: float) -> None:
    env = DeepSeaTreasure(sea_map)
    front = oracle.pareto_front(env, gamma)
    for index, value in enumerate(front.values):
        outcome = oracle.rollout_episode(env, front.plan(index), gamma, jax.random.key(0))
        assert np.allclose(outcome.returns, value, rtol=1e-5)
        assert bool(outcome.terminated)


@pytest.mark.parametrize("sea_map", ["convex", "concave"])
def test_the_front_is_the_peers(sea_map: str) -> None:
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    from mo_gymnasium.envs.deep_sea_treasure.deep_sea_treasure import CONCAVE_MAP, DEFAULT_MAP

    peer_map = DEFAULT_MAP if sea_map == "convex" else CONCAVE_MAP
    peer = mo_gymnasium.make("deep-sea-treasure-v0", dst_map=peer_map)
    # At smaller discounts the peer's list holds treasures that a nearer one dominates.
    expected = np.asarray(peer.unwrapped.pareto_front(0.99))
    ours = oracle.pareto_front(DeepSeaTreasure(sea_map), 0.99).values
    assert np.allclose(ours, expected)


def test_a_time_limit_below_every_treasure_leaves_waiting() -> None:
    env = DeepSeaTreasure(np.asarray([[0, 0, 0, 0, 5.0]]), time_limit=3)
    coverage = oracle.coverage_set(env, 0.9)
    assert coverage.behaviours == ("wait for the time limit",)
    outcome = oracle.rollout_episode(env, coverage.plan(0), 0.9, jax.random.key(0))
    assert np.allclose(outcome.returns, coverage.values[0])
    assert not bool(outcome.terminated)
