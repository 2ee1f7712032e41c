"""The history of weights: all of them while there is room, then a uniform sample."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chisquare

from windvane.agents.core import WeightHistory


def numbered(count: int) -> jax.Array:
    """Weights that can be told apart by their first number."""
    first = jnp.arange(count, dtype=jnp.float32)
    return jnp.stack([first, 1 - first], axis=1)


def played(key: jax.Array, weights: jax.Array, is_new: jax.Array, capacity: int) -> WeightHistory:
    """All but the first are added one by one, if they are new."""
    draws = jax.random.uniform(key, len(weights) - 1)
    step = lambda history, item: (history.add(*item), None)  # noqa: E731
    start = WeightHistory.start(weights[0], capacity)
    return jax.lax.scan(step, start, (weights[1:], is_new, draws))[0]


def test_new_weights_are_remembered_once_and_in_order() -> None:
    is_new = jnp.asarray([True, False, True, False, False, True])
    history = jax.jit(lambda key: played(key, numbered(7), is_new, 8))(jax.random.key(0))
    assert history.size == 4
    assert history.vectors[:4, 0].tolist() == [0, 1, 3, 6]
    assert not np.asarray(history.vectors[4:]).any()
    assert history.mask.tolist() == [True] * 4 + [False] * 4


def test_sampling_is_uniform_over_what_is_held() -> None:
    key = jax.random.key(1)
    history = played(key, numbered(6), jnp.ones(5, bool), 8)
    drawn = np.asarray(history.sample(key, 6000))
    assert np.array_equal(drawn[:, 1], 1 - drawn[:, 0])
    counts = np.bincount(drawn[:, 0].astype(int), minlength=6)
    assert len(counts) == 6
    assert chisquare(counts).pvalue > 1e-3


def test_beyond_its_capacity_every_weight_is_as_likely_to_be_held() -> None:
    keys = jax.random.split(jax.random.key(2), 3000)
    play = jax.jit(jax.vmap(lambda key: played(key, numbered(20), jnp.ones(19, bool), 5)))
    histories = play(keys)
    assert (histories.size == 20).all()
    assert jax.vmap(lambda history: history.mask)(histories).all()
    held = np.asarray(histories.vectors[:, :, 0]).astype(int)
    assert all(len(set(row)) == 5 for row in held.tolist())
    # Counts of one run exclude each other, so they spread less than independent ones.
    assert chisquare(np.bincount(held.ravel(), minlength=20)).pvalue > 1e-3
    drawn = jax.vmap(lambda history, key: history.sample(key, 9))(histories, keys)
    assert all(
        set(d) <= set(h) for d, h in zip(drawn[:, :, 0].tolist(), held.tolist(), strict=True)
    )
