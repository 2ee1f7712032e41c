"""The generic parts: covers, corner weights, saving and loading."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane import oracle
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.oracle.coverage import CoverageSet, corner_weights, cover


def random_values(seed: int, objectives: int, entries: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(entries, objectives))


@given(seed=st.integers(0, 10_000), objectives=st.integers(2, 4))
def test_cover_serves_every_weight_and_needs_no_dominated_row(seed: int, objectives: int) -> None:
    values = random_values(seed, objectives)
    values = np.vstack([values, values[0] - 1.0])
    weights = np.random.default_rng(seed + 1).dirichlet(np.ones(objectives), 300)
    rows = cover(values, weights, 1e-3)
    scores = weights @ values.T
    assert (scores[:, rows].max(1) >= scores.max(1) - 1e-3).all()
    assert len(values) - 1 not in rows
    assert len(set(rows)) == len(rows)


@given(seed=st.integers(0, 10_000), objectives=st.integers(2, 4))
def test_the_gap_to_a_richer_set_is_largest_at_a_corner(seed: int, objectives: int) -> None:
    values = random_values(seed, objectives)
    richer = np.vstack([values, random_values(seed + 1, objectives) + 0.3])
    corners = corner_weights(values)
    assert np.allclose(corners.sum(1), 1)
    assert (corners >= 0).all()

    def gap(weights: np.ndarray) -> np.ndarray:
        return (weights @ richer.T).max(1) - (weights @ values.T).max(1)

    anywhere = np.random.default_rng(seed).dirichlet(np.ones(objectives), 2000)
    assert gap(anywhere).max() <= gap(corners).max() + 1e-6


def test_corners_of_two_lines_by_hand() -> None:
    # w (1, 0) and w (0, 1) cross at (1/2, 1/2); the other corners are the simplex's own.
    corners = corner_weights(np.asarray([[1.0, 0.0], [0.0, 1.0]]))
    assert np.allclose(corners, [[0, 1], [0.5, 0.5], [1, 0]])


def test_saving_and_loading_returns_the_same_set(tmp_path) -> None:
    coverage = oracle.coverage_set(DeepSeaTreasure(), 0.95)
    path = tmp_path / "deep" / "set.npz"
    coverage.save(path)
    again = CoverageSet.load(path, coverage.plan(0))
    assert np.array_equal(again.values, coverage.values)
    assert again.behaviours == coverage.behaviours
    assert again.gamma == coverage.gamma
    assert np.array_equal(again.plans.actions, coverage.plans.actions)
    assert not list(path.parent.glob("*.partial"))


def test_another_format_is_refused(tmp_path, monkeypatch) -> None:
    coverage = oracle.coverage_set(DeepSeaTreasure(), 0.95)
    path = tmp_path / "set.npz"
    with monkeypatch.context() as patch:
        patch.setattr("windvane.oracle.coverage.FORMAT", 99)
        coverage.save(path)
    with pytest.raises(ValueError, match="format 99"):
        CoverageSet.load(path, coverage.plan(0))
