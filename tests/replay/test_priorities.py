"""Sampling frequencies against priorities, and sums against plain addition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from windvane.errors import InputError
from windvane.replay.priorities import DRAWS, Priorities


def filled(values: np.ndarray) -> Priorities:
    indices = jnp.arange(len(values))
    return Priorities.zeros(len(values)).set(indices, jnp.asarray(values, jnp.float32))


def draw(priorities: Priorities, draws: int, batch: int) -> np.ndarray:
    """How often each index is drawn, in batches as agents draw them."""
    keys = jax.random.split(jax.random.key(3), draws // batch)
    drawn = jax.jit(lambda keys: jax.lax.map(lambda k: priorities.sample(k, batch), keys))(keys)
    return np.bincount(np.asarray(drawn).ravel(), minlength=priorities.values.size)


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Probability of a deviation at least this large by chance, over cells of 20 or more."""
    expected = probabilities * counts.sum()
    order = np.argsort(expected)
    # Rare indices are counted together, neighbours in size, until a cell expects 20.
    cells = np.floor(np.cumsum(expected[order]) / 20).astype(int)
    cells = np.unique(cells, return_inverse=True)[1]
    observed = np.bincount(cells, counts[order])
    wanted = np.bincount(cells, expected[order])
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    return float(chi2.sf(statistic, len(wanted) - 1))


@pytest.mark.parametrize("batch", [1, 64, 1000])
def test_a_million_draws_match_the_priorities(batch: int) -> None:
    values = np.random.default_rng(0).gamma(0.5, size=5000)
    draws = 1_000_000 if batch > 1 else 100_000
    counts = draw(filled(values), draws, batch)[:5000]
    # Strata make counts more even than independent draws would: only a large deviation is wrong.
    assert chi_square(counts, values / values.sum()) > 1e-3


def test_small_priorities_keep_their_share_beside_large_ones() -> None:
    generator = np.random.default_rng(1)
    values = 10.0 ** generator.uniform(-4, 4, 100_000)
    counts = draw(filled(values), 1_000_000, 1000)[:100_000]
    assert chi_square(counts, values / values.sum()) > 1e-3


def test_many_tiny_ones_in_the_shadow_of_a_giant() -> None:
    """In every block one priority of 1 follows 127 of 1e-6 or the other way round."""
    values = np.full(128 * 200, 1e-6)
    values[::128] = 1.0
    probabilities = values / values.sum()
    counts = draw(filled(values), 4_000_000, 4000)[: len(values)]
    tiny = values < 1
    expected = probabilities[tiny].sum() * counts.sum()
    assert abs(counts[tiny].sum() - expected) < 4 * np.sqrt(expected)
    # Not always the same of the tiny ones: some 500 draws among 25,400 indices hardly repeat.
    assert (counts[tiny] > 0).sum() > 0.9 * counts[tiny].sum()


@jax.jit
def changed(values: jax.Array, indices: jax.Array, fresh: jax.Array, key: jax.Array):
    every = jnp.arange(300)
    priorities = Priorities.zeros(300).set(every, values).set(indices, fresh)
    return priorities, priorities.sample(key, 128)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), changes=st.integers(1, 40))
def test_sums_follow_changes(seed: int, changes: int) -> None:
    generator = np.random.default_rng(seed)
    values = (generator.random(300) * (generator.random(300) < 0.7)).astype(np.float32)
    indices, fresh = generator.permutation(300)[:40], generator.random(40).astype(np.float32)
    indices[changes:] = 10**6
    priorities, drawn = changed(values, indices, fresh, jax.random.key(seed))
    values[indices[:changes]] = fresh[:changes]
    assert np.array_equal(np.asarray(priorities.values).ravel()[:300], values)
    assert float(priorities.total) == pytest.approx(values.sum(), rel=1e-5)
    assert (values[np.asarray(drawn)] > 0).all(), "nothing is drawn that has no priority"


def test_indices_out_of_range_change_nothing() -> None:
    before = filled(np.ones(10))
    after = before.set(jnp.asarray([before.values.size + 5]), jnp.asarray([9.0]))
    same = jax.tree.map(np.array_equal, before, after)
    assert all(jax.tree.leaves(same))


@pytest.mark.parametrize("capacity", [0, -3, 2**31])
def test_bad_capacities_are_named(capacity: int) -> None:
    with pytest.raises(InputError, match=f"capacity.*{capacity}"):
        Priorities.zeros(capacity)


def test_the_last_share_of_all_is_held() -> None:
    """The largest numbers that are drawn, in the last of many strata, are rounded to all of it."""
    values = np.zeros(3 * 16_384 + 5, np.float32)
    values[: 16_384 + 7] = np.random.default_rng(0).random(16_384 + 7) + 0.1
    number = jnp.asarray(256)
    draws = jnp.full((DRAWS, 1), 1 - 2.0**-23)
    index = filled(values).locate(draws, number[None] - 1, number)
    assert 0 <= int(index[0]) < 16_384 + 7
