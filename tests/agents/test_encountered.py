"""The memory of weights: all of them while there is room, then a uniform sample."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chisquare

from windvane.agents.core import Encountered


def numbered(count: int) -> jax.Array:
    """Weights that can be told apart by their first number."""
    first = jnp.arange(count, dtype=jnp.float32)
    return jnp.stack([first, 1 - first], axis=1)


def played(key: jax.Array, weights: jax.Array, isnew: jax.Array, room: int) -> Encountered:
    """All but the first are added one by one, if they are new."""
    chances = jax.random.uniform(key, len(weights) - 1)
    step = lambda memory, item: (memory.add(*item), None)  # noqa: E731
    start = Encountered.start(weights[0], room)
    return jax.lax.scan(step, start, (weights[1:], isnew, chances))[0]


def test_new_weights_are_remembered_once_and_in_order() -> None:
    isnew = jnp.asarray([True, False, True, False, False, True])
    memory = jax.jit(lambda key: played(key, numbered(7), isnew, 8))(jax.random.key(0))
    assert memory.number == 4
    assert memory.vectors[:4, 0].tolist() == [0, 1, 3, 6]
    assert not np.asarray(memory.vectors[4:]).any()


def test_sampling_is_uniform_over_what_is_held() -> None:
    key = jax.random.key(1)
    memory = played(key, numbered(6), jnp.ones(5, bool), 8)
    drawn = np.asarray(memory.sample(key, 6000))
    assert np.array_equal(drawn[:, 1], 1 - drawn[:, 0])
    counts = np.bincount(drawn[:, 0].astype(int), minlength=6)
    assert len(counts) == 6
    assert chisquare(counts).pvalue > 1e-3


def test_beyond_its_room_every_weight_is_as_likely_to_be_held() -> None:
    keys = jax.random.split(jax.random.key(2), 3000)
    play = jax.jit(jax.vmap(lambda key: played(key, numbered(20), jnp.ones(19, bool), 5)))
    memories = play(keys)
    assert (memories.number == 20).all()
    held = np.asarray(memories.vectors[:, :, 0]).astype(int)
    assert all(len(set(row)) == 5 for row in held.tolist())
    # Counts of one run exclude each other, so they spread less than independent ones.
    assert chisquare(np.bincount(held.ravel(), minlength=20)).pvalue > 1e-3
    drawn = jax.vmap(lambda memory, key: memory.sample(key, 9))(memories, keys)
    assert all(
        set(d) <= set(h) for d, h in zip(drawn[:, :, 0].tolist(), held.tolist(), strict=True)
    )
