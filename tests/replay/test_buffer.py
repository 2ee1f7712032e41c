"""What all retention rules share: vmapping, sampling, priorities and checks of their input."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.replay import streams
from tests.replay.streams import add_number, fill, held
from tests.replay.test_priorities import chi_square
from windvane.errors import InputError
from windvane.replay.buffer import check_buffer
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.priorities import BLOCK, Priorities
from windvane.replay.selective import SelectiveReplay
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


@eqx.filter_jit
def sample(buffer, state, key, number, newest=0):
    return buffer.sample(state, key, number, newest)


@eqx.filter_jit
def update(buffer, state, indices, errors):
    return buffer.update_priorities(state, indices, errors)


@pytest.mark.parametrize("rule", RULES)
def test_vmapped_as_one_by_one(rule: str) -> None:
    buffer = RULES[rule](64)
    numbers, scores = jnp.arange(150), jax.random.uniform(KEY, (3, 150))
    keys = jax.random.split(KEY, 3)
    vmapped = jax.vmap(fill, (None, 0, None, 0))(buffer, keys, numbers, scores)
    for run in range(3):
        alone = fill(buffer, keys[run], numbers, scores[run])
        mine = jax.tree.map(lambda leaf, run=run: leaf[run], vmapped)
        assert np.array_equal(mine.rows.data, alone.rows.data)
        assert np.array_equal(mine.rows.priorities.values, alone.rows.priorities.values)


@pytest.mark.parametrize("rule", RULES)
def test_all_rules_hold_no_more_than_they_may_and_sample_what_they_hold(rule: str) -> None:
    buffer = RULES[rule](64)
    for number in (1, 30, 64, 200, 500):
        state = fill(buffer, KEY, jnp.arange(number), jnp.linspace(0, 1, number))
        mine = held(state)
        assert int(buffer.size(state)) == len(mine) <= min(64, number)
        batch = sample(buffer, state, jax.random.key(1), 32)
        assert set(np.asarray(batch.transitions[0]).tolist()) <= set(mine)
        assert np.allclose(batch.transitions[1][:, 0], np.asarray(batch.transitions[0]) % 7)


@pytest.mark.parametrize("rule", RULES)
def test_priorities_by_hand(rule: str) -> None:
    buffer = RULES[rule](64)
    state = fill(buffer, KEY, jnp.arange(50), jnp.linspace(0, 1, 50))
    indices = sample(buffer, state, jax.random.key(1), 8).indices
    errors = jnp.linspace(0.0, 3.5, 8).at[1:].set(-2.0)
    first = indices[0]
    state = update(buffer, state, indices[:1], errors[:1])
    assert float(buffer.rows(state).priorities[first]) == pytest.approx(0.01**2)
    state = update(buffer, state, indices[:1], jnp.asarray([-2.0]))
    assert float(buffer.rows(state).priorities[first]) == pytest.approx(2.01**2)
    # A new transition has the mean of what was set last.
    state = update(buffer, state, indices[:2], jnp.asarray([1.0, 3.0]))
    state = eqx.filter_jit(add_number)(buffer, state, jnp.asarray(50), jnp.asarray(0.5))
    newest = sample(buffer, state, jax.random.key(1), 1, newest=1).indices
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
    assert np.array_equal(batch.indices[3:], drawn.indices[3:])
    # Those that have left the ring again, or never were, are drawn instead.
    number = min(added, 60)
    batch = sample(buffer, state, jax.random.key(1), number, newest=number)
    many = np.asarray(batch.transitions[0]).tolist()
    assert set(many) <= set(held(state))


@pytest.mark.parametrize("newest", [0, 4, 48])
@pytest.mark.parametrize("rule", RULES)
def test_beside_the_newest_all_are_drawn_by_priority(rule: str, newest: int) -> None:
    """Training has a batch begin with the newest transitions; the rest of it must still be drawn
    from the whole buffer, and not only from what lies behind the first strata.
    """
    buffer = RULES[rule](3 * BLOCK**2)
    state = fill(buffer, KEY, jnp.arange(100), jnp.linspace(0, 1, 100))
    values = jnp.asarray(np.random.default_rng(0).gamma(0.5, size=(3 * BLOCK, BLOCK)), jnp.float32)
    state = eqx.tree_at(lambda s: buffer.rows(s).priorities, state, Priorities.of(values))

    def drawn(key):
        return sample(buffer, state, key, 64, newest).indices[newest:]

    keys = jax.random.split(jax.random.key(2), 40_000 // (64 - newest))
    indices = np.asarray(jax.jit(lambda keys: jax.lax.map(drawn, keys, batch_size=64))(keys))
    counts = np.bincount(indices.ravel(), minlength=values.size)
    probabilities = np.asarray(values, float).ravel() / np.asarray(values, float).sum()
    assert chi_square(counts, probabilities) > 1e-3
    # By blocks of blocks, the units of stratification.
    shares = counts.reshape(3, -1).sum(1) / counts.sum()
    assert np.allclose(shares, probabilities.reshape(3, -1).sum(1), atol=0.01)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_not_held_cannot_be_revived(rule: str) -> None:
    buffer = RULES[rule](64)
    state = fill(buffer, KEY, jnp.arange(3), jnp.zeros(3))
    after = update(buffer, state, jnp.asarray([40]), jnp.asarray([5.0]))
    assert held(after) == [0, 1, 2]


def test_importance_weights() -> None:
    buffer = StandardReplay(8, priority_exponent=1.0)
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
    for capacity in (0, -4, True, 2**31):
        with pytest.raises(InputError, match=f"capacity.*to 2147483647, not {capacity}$"):
            make(capacity)
    for exponent in (-1.0, float("nan"), float("inf"), True):
        with pytest.raises(InputError, match=f"priority_exponent.*not {exponent}$"):
            make(10, priority_exponent=exponent)
    for offset in (0.0, -0.5, float("nan"), float("inf"), True):
        with pytest.raises(InputError, match=f"priority_offset.*not {offset}$"):
            make(10, priority_offset=offset)
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
        streams.add(buffer, state, (jnp.zeros((), int), jnp.zeros(3)), no, score)
    with pytest.raises(InputError, match="built like"):
        streams.add(buffer, state, (jnp.zeros((), int),), no, score)


@pytest.mark.parametrize("wrong", ["2", None, [2.0], 10**400])
def test_priorities_need_numbers(wrong: Any) -> None:
    with pytest.raises(InputError, match="priority_exponent must be a finite number"):
        check_buffer(10, wrong, 0.01)
    with pytest.raises(InputError, match="priority_offset must be a finite number"):
        check_buffer(10, 2.0, wrong)


@pytest.mark.parametrize("rule", RULES)
def test_whole_trajectories_matter_to_diverse_replay_alone(rule: str) -> None:
    assert RULES[rule](10).whole_trajectories == (rule == "diverse")


@pytest.mark.parametrize("rule", ["standard", "selective", "exploration"])
def test_other_rules_ignore_where_trajectories_are_closed(rule: str) -> None:
    buffer = RULES[rule](10)
    state = fill(buffer, KEY, jnp.arange(7), jnp.zeros(7))
    assert buffer.close_trajectory(state) is state
