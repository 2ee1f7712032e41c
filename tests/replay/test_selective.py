"""Selective replay against reservoir sampling with the same draws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.streams import fill, held, play, stream
from windvane.replay.selective import SelectiveReplay, reservoir_index

KEY = jax.random.key(0)
SETTINGS = {
    "seed": st.integers(0, 10_000),
    "capacity": st.sampled_from([2, 3, 40, 300, 2500]),
    "longest": st.sampled_from([1, 20, 200]),
    "levels": st.sampled_from([1, 3, 1000]),
}


@partial(jax.jit, static_argnums=1)
def reservoir_indices(numbers, size: int):
    return jax.vmap(lambda number: reservoir_index(KEY, number, size))(numbers)


def check(seed: int, episodes: int, capacity: int, longest: int, levels: int) -> None:
    """Reservoir sampling with the same draws."""
    items = stream(seed, episodes, longest, 2, levels)
    buffer = SelectiveReplay(capacity)
    state = play(buffer, items, KEY)
    ring, size = buffer.ring_capacity, capacity - buffer.ring_capacity
    number = len(items.numbers)
    indices = np.asarray(reservoir_indices(jnp.arange(-(-number // 4096) * 4096), size))
    reservoir: dict[int, int] = {}
    for leaving in range(number - ring):
        if indices[leaving] < size:
            reservoir[indices[leaving]] = leaving
    assert held(state) == sorted([*reservoir.values(), *range(max(number - ring, 0), number)])


@settings(max_examples=10)
@given(**SETTINGS)
def test_it_holds_what_its_slow_model_holds(seed, capacity, longest, levels) -> None:
    check(seed, 100, capacity, longest, levels)


@pytest.mark.slow
@settings(max_examples=50)
@given(**SETTINGS)
def test_it_holds_the_same_after_two_thousand_episodes(seed, capacity, longest, levels) -> None:
    check(seed, 2000, capacity, longest, levels)


def test_the_reservoir_is_uniform() -> None:
    buffer = SelectiveReplay(20)
    run = jax.vmap(lambda key: fill(buffer, key, jnp.arange(110), jnp.zeros(110)))
    states = run(jax.random.split(KEY, 2000))
    kept = np.asarray(jax.vmap(lambda rows: rows.read(jnp.arange(10, 20)))(states.rows)[0]).ravel()
    counts = np.bincount(kept, minlength=110)[:100]
    assert counts.sum() == 20_000
    assert ((counts - 200) ** 2 / 200).sum() < 160, "chi-square of 99 degrees, one in 10,000"
