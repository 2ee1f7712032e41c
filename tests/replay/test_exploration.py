"""Exploration replay against a slow model, and the scores that it needs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.streams import held, play, stream
from windvane.errors import InputError
from windvane.replay.buffer import ScoredReplay
from windvane.replay.exploration import ExplorationReplay

SETTINGS = {
    "seed": st.integers(0, 10_000),
    "capacity": st.sampled_from([2, 3, 40, 300, 2500]),
    "longest": st.sampled_from([1, 20, 200]),
    "levels": st.sampled_from([1, 3, 1000]),
}


def check(seed: int, episodes: int, capacity: int, longest: int, levels: int) -> None:
    """The highest scores stay; a candidate must beat the lowest, the first of equals goes."""
    items = stream(seed, episodes, longest, 2, levels)
    buffer = ExplorationReplay(capacity)
    state = play(buffer, items)
    ring, size = buffer.ring_capacity, capacity - buffer.ring_capacity
    kept, scores = np.full(size, -1), np.full(size, -np.inf)
    number = len(items.numbers)
    for leaving in range(number - ring):
        lowest, score = scores.argmin(), items.scores[leaving + ring]
        if score > scores[lowest]:
            kept[lowest], scores[lowest] = leaving, score
    expected = [*kept[kept >= 0].tolist(), *range(max(number - ring, 0), number)]
    assert held(state) == sorted(expected)
    assert int(buffer.size(state)) == len(expected)


@settings(max_examples=10)
@given(**SETTINGS)
def test_it_holds_what_its_slow_model_holds(seed, capacity, longest, levels) -> None:
    check(seed, 100, capacity, longest, levels)


@pytest.mark.slow
@settings(max_examples=50)
@given(**SETTINGS)
def test_it_holds_the_same_after_two_thousand_episodes(seed, capacity, longest, levels) -> None:
    check(seed, 2000, capacity, longest, levels)


def test_it_needs_a_score() -> None:
    buffer = ExplorationReplay(10)
    assert isinstance(buffer, ScoredReplay)
    state = buffer.init((jnp.zeros(()),), jax.random.key(0))
    with pytest.raises(InputError, match=r"ExplorationReplay needs the score.*`add_scored`"):
        buffer.add(state, (jnp.zeros(()),), jnp.asarray(False))


def test_the_oldest_of_the_ring_leaves() -> None:
    buffer = ExplorationReplay(6)
    state = buffer.init((jnp.zeros((), int),), jax.random.key(0))
    for number in range(8):
        if number >= buffer.ring_capacity:
            assert int(buffer.leaving(state)[0]) == number - buffer.ring_capacity
        new = (jnp.asarray(number),)
        state = buffer.add_scored(state, new, jnp.asarray(False), jnp.asarray(float(number)))
