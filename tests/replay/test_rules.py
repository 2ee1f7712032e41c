"""Standard, selective and exploration replay against slow models, and what all rules share."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay import streams
from tests.replay.streams import play, stream
from windvane.errors import InputError
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.selective import SelectiveReplay, reservoir_place
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay

KEY = jax.random.key(0)
SIGNATURE = ReturnSignature(2, 1.0, reward=lambda transition: transition[1])
RULES = {
    "standard": StandardReplay,
    "selective": SelectiveReplay,
    "exploration": ExplorationReplay,
    "diverse": lambda capacity, **kwargs: DiverseReplay(capacity, SIGNATURE, **kwargs),
}


MOST = 500


def fill(buffer, key, numbers, scores):
    """Add transitions that are known by their numbers; every fifth ends its episode."""
    # Of one length, so that a buffer's program is compiled once.
    longer = [jnp.pad(column, (0, max(MOST - len(column), 0))) for column in (numbers, scores)]
    return _fill(buffer, key, *longer, jnp.asarray(len(numbers)))


@eqx.filter_jit
def _fill(buffer, key, numbers, scores, number):
    state = buffer.init((numbers[0], jnp.zeros(2)), key)
    step = lambda at, state: add(buffer, state, numbers[at], scores[at])  # noqa: E731
    return jax.lax.fori_loop(0, number, step, state)


@eqx.filter_jit
def sample(buffer, state, key, number, newest=0):
    return buffer.sample(state, key, number, newest)


@eqx.filter_jit
def update(buffer, state, places, errors):
    return buffer.update_priorities(state, places, errors)


def add(buffer, state, number, score):
    transition = (number, jnp.stack([number % 7, number % 3]).astype(jnp.float32))
    return buffer.add(state, transition, number % 5 == 4, score)


def held(buffer, state) -> list[int]:
    rows = buffer.rows(state)
    numbers = rows.packing.views(np.array(rows.words))[0]
    alive = np.asarray(rows.priorities.places).ravel()[: len(numbers)] > 0
    return sorted(numbers[alive].tolist())


@pytest.mark.parametrize("capacity", [1, 5, 130])
def test_standard_keeps_the_last(capacity: int) -> None:
    buffer = StandardReplay(capacity)
    state = fill(buffer, KEY, jnp.arange(300), jnp.zeros(300))
    assert held(buffer, state) == list(range(300 - capacity, 300))


SETTINGS = {
    "seed": st.integers(0, 10_000),
    "capacity": st.sampled_from([2, 3, 40, 300, 2500]),
    "longest": st.sampled_from([1, 20, 200]),
    "levels": st.sampled_from([1, 3, 1000]),
}


@partial(jax.jit, static_argnums=1)
def reservoir_places(indices, size: int):
    return jax.vmap(lambda index: reservoir_place(KEY, index, size))(indices)


def check_selective(seed: int, episodes: int, capacity: int, longest: int, levels: int) -> None:
    """Reservoir sampling with the same draws."""
    items = stream(seed, episodes, longest, 2, levels)
    buffer = SelectiveReplay(capacity)
    state = play(buffer, items, KEY)
    ring, size = buffer.ring_capacity, capacity - buffer.ring_capacity
    number = len(items.numbers)
    places = np.asarray(reservoir_places(jnp.arange(-(-number // 4096) * 4096), size))
    reservoir: dict[int, int] = {}
    for index in range(number - ring):
        if places[index] < size:
            reservoir[places[index]] = index
    assert streams.held(state) == sorted(
        [*reservoir.values(), *range(max(number - ring, 0), number)]
    )


def check_exploration(seed: int, episodes: int, capacity: int, longest: int, levels: int) -> None:
    """The highest scores stay; a newcomer must beat the lowest, the first of equals goes."""
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
    assert streams.held(state) == sorted(expected)
    assert int(buffer.size(state)) == len(expected)


@pytest.mark.parametrize("check", [check_selective, check_exploration])
@settings(max_examples=10)
@given(**SETTINGS)
def test_a_rule_holds_what_its_slow_model_holds(check, seed, capacity, longest, levels) -> None:
    check(seed, 100, capacity, longest, levels)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_selective, check_exploration])
@settings(max_examples=50)
@given(**SETTINGS)
def test_a_rule_holds_the_same_after_two_thousand_episodes(
    check, seed, capacity, longest, levels
) -> None:
    check(seed, 2000, capacity, longest, levels)


@pytest.mark.parametrize("rule", RULES)
def test_under_vmap_as_run_by_run(rule: str) -> None:
    buffer = RULES[rule](64)
    numbers, scores = jnp.arange(150), jax.random.uniform(KEY, (3, 150))
    keys = jax.random.split(KEY, 3)
    together = jax.vmap(fill, (None, 0, None, 0))(buffer, keys, numbers, scores)
    for run in range(3):
        alone = fill(buffer, keys[run], numbers, scores[run])
        mine = jax.tree.map(lambda leaf, run=run: leaf[run], together)
        assert np.array_equal(mine.rows.words, alone.rows.words)
        assert np.array_equal(mine.rows.priorities.places, alone.rows.priorities.places)


def test_the_reservoir_is_uniform() -> None:
    buffer = SelectiveReplay(20)
    run = jax.vmap(lambda key: fill(buffer, key, jnp.arange(110), jnp.zeros(110)))
    states = run(jax.random.split(KEY, 2000))
    kept = np.asarray(jax.vmap(lambda rows: rows.read(jnp.arange(10, 20)))(states.rows)[0]).ravel()
    counts = np.bincount(kept, minlength=110)[:100]
    assert counts.sum() == 20_000
    assert ((counts - 200) ** 2 / 200).sum() < 160, "chi-square of 99 degrees, one in 10,000"


@pytest.mark.parametrize("rule", RULES)
def test_all_rules_hold_no_more_than_they_may_and_sample_what_they_hold(rule: str) -> None:
    buffer = RULES[rule](64)
    for number in (1, 30, 64, 200, 500):
        state = fill(buffer, KEY, jnp.arange(number), jnp.linspace(0, 1, number))
        mine = held(buffer, state)
        assert int(buffer.size(state)) == len(mine) <= min(64, number)
        batch = sample(buffer, state, jax.random.key(1), 32)
        assert set(np.asarray(batch.transitions[0]).tolist()) <= set(mine)
        assert np.allclose(batch.transitions[1][:, 0], np.asarray(batch.transitions[0]) % 7)


@pytest.mark.parametrize("rule", RULES)
def test_priorities_by_hand(rule: str) -> None:
    buffer = RULES[rule](64)
    state = fill(buffer, KEY, jnp.arange(50), jnp.linspace(0, 1, 50))
    places = sample(buffer, state, jax.random.key(1), 8).places
    errors = jnp.linspace(0.0, 3.5, 8).at[1:].set(-2.0)
    first = places[0]
    state = update(buffer, state, places[:1], errors[:1])
    assert float(buffer.rows(state).priorities[first]) == pytest.approx(0.01**2)
    state = update(buffer, state, places[:1], jnp.asarray([-2.0]))
    assert float(buffer.rows(state).priorities[first]) == pytest.approx(2.01**2)
    # Newcomers have the mean of what was set last.
    state = update(buffer, state, places[:2], jnp.asarray([1.0, 3.0]))
    state = eqx.filter_jit(add)(buffer, state, jnp.asarray(50), jnp.asarray(0.5))
    newest = sample(buffer, state, jax.random.key(1), 1, newest=1).places
    expected = (1.01**2 + 3.01**2) / 2
    assert float(buffer.rows(state).priorities[newest[0]]) == pytest.approx(expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("added", [5, 200])
def test_a_batch_may_begin_with_the_newest(rule: str, added: int) -> None:
    buffer = RULES[rule](64)
    state = fill(buffer, KEY, jnp.arange(added), jnp.linspace(0, 1, added))
    batch = sample(buffer, state, jax.random.key(1), 5, newest=3)
    assert np.asarray(batch.transitions[0])[:3].tolist() == [added - 1, added - 2, added - 3]
    drawn = sample(buffer, state, jax.random.key(1), 5)
    assert np.array_equal(batch.places[3:], drawn.places[3:])
    # Those that have left the ring again, or never were, are drawn instead.
    number = min(added, 60)
    batch = sample(buffer, state, jax.random.key(1), number, newest=number)
    many = np.asarray(batch.transitions[0]).tolist()
    assert set(many) <= set(held(buffer, state))


@pytest.mark.parametrize("rule", RULES)
def test_what_is_not_held_cannot_be_revived(rule: str) -> None:
    buffer = RULES[rule](64)
    state = fill(buffer, KEY, jnp.arange(3), jnp.zeros(3))
    after = update(buffer, state, jnp.asarray([40]), jnp.asarray([5.0]))
    assert held(buffer, after) == [0, 1, 2]


def test_importance_weights() -> None:
    buffer = StandardReplay(8, alpha=1.0)
    state = fill(buffer, KEY, jnp.arange(8), jnp.zeros(8))
    state = update(buffer, state, jnp.arange(8), jnp.arange(8.0))
    batch = sample(buffer, state, jax.random.key(2), 8)
    probabilities = (np.asarray(batch.transitions[0]) + 0.01) / (28 + 0.08)
    assert np.allclose(batch.probabilities, probabilities, rtol=1e-5)
    weights = (8 * probabilities) ** -0.5
    assert np.allclose(
        buffer.importance_weights(state, batch, 0.5), weights / weights.max(), rtol=1e-5
    )


@pytest.mark.parametrize("rule", RULES)
def test_bad_input_is_one_sentence(rule: str) -> None:
    make = RULES[rule]
    for capacity in (0, -4):
        with pytest.raises(InputError, match=f"capacity.*{capacity}"):
            make(capacity)
    with pytest.raises(InputError, match=r"alpha.*-1"):
        make(10, alpha=-1.0)
    with pytest.raises(InputError, match=r"epsilon.*0"):
        make(10, epsilon=0.0)
    buffer = make(10)
    state = fill(buffer, KEY, jnp.arange(5), jnp.zeros(5))
    with pytest.raises(InputError, match="1 to 10 transitions, not 11"):
        buffer.sample(state, KEY, 11)
    with pytest.raises(InputError, match="cannot sample 6 transitions: 5 are held"):
        buffer.sample(state, KEY, 6)


@pytest.mark.parametrize("rule", RULES)
def test_a_transition_of_another_shape_is_refused(rule: str) -> None:
    buffer = RULES[rule](10)
    state = buffer.init((jnp.zeros((), int), jnp.zeros(2)), KEY)
    no, score = jnp.asarray(False), jnp.zeros(())
    with pytest.raises(InputError, match=r"part 1 .* shape \(2,\), not \(3,\)"):
        buffer.add(state, (jnp.zeros((), int), jnp.zeros(3)), no, score)
    with pytest.raises(InputError, match="built like"):
        buffer.add(state, (jnp.zeros((), int),), no, score)


def test_exploration_needs_a_score() -> None:
    buffer = ExplorationReplay(10)
    state = buffer.init((jnp.zeros(()),), KEY)
    with pytest.raises(InputError, match="score"):
        buffer.add(state, (jnp.zeros(()),), jnp.asarray(False))
