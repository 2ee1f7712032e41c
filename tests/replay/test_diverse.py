"""Diverse replay against the slow model of Algorithm 3, and its invariants."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.model import SlowDiverseReplay
from tests.replay.streams import Stream, held, numbers_in, play, reward, start, stream
from windvane.batching import where
from windvane.errors import InputError
from windvane.replay.diverse import DiverseReplay
from windvane.replay.signature import ReturnSignature

SETTINGS = {
    "seed": st.integers(0, 10_000),
    "capacity": st.sampled_from([2, 3, 7, 40, 150, 400, 2500]),
    "longest": st.sampled_from([1, 3, 20, 200]),
    "objectives": st.sampled_from([2, 4]),
    "levels": st.sampled_from([1, 3, 1000]),
}


def diverse(capacity: int, objectives: int, **options: Any) -> DiverseReplay:
    return DiverseReplay(capacity, ReturnSignature(objectives, 1.0, reward=reward), **options)


def play_slowly(capacity: int, items: Stream) -> SlowDiverseReplay:
    slow = SlowDiverseReplay(capacity)
    for number, value, end in zip(items.numbers, items.rewards, items.ended, strict=True):
        slow.add(int(number), value, bool(end))
    return slow


def check(seed: int, episodes: int, capacity: int, longest: int, objectives: int, levels: int):
    items = stream(seed, episodes, longest, objectives, levels)
    buffer = diverse(capacity, objectives)
    state = play(buffer, items)
    slow = play_slowly(capacity, items)
    assert held(state) == slow.held()
    assert int(buffer.size(state)) == len(slow.held()) <= capacity
    recent, kept = buffer.signatures(state)
    assert np.array_equal(recent, [t.signature for t in slow.ring] or np.zeros((0, objectives)))
    mine, theirs = kept.tolist(), [t.signature.tolist() for t in slow.diverse]
    assert sorted(mine) == sorted(theirs)


@settings(max_examples=15)
@given(**{**SETTINGS, "capacity": st.sampled_from([3, 40, 300])})
def test_both_hold_the_same_trajectories(seed, capacity, longest, objectives, levels) -> None:
    check(seed, 200, capacity, longest, objectives, levels)


@pytest.mark.slow
@settings(max_examples=50)
@given(**SETTINGS)
def test_both_hold_the_same_after_two_thousand_episodes(
    seed, capacity, longest, objectives, levels
) -> None:
    check(seed, 2000, capacity, longest, objectives, levels)


def test_a_limit_on_trajectories_counts_as_lack_of_room() -> None:
    items = stream(3, 300, 6, 2, 1000)
    buffer = diverse(200, 2, trajectories=9)
    state = play(buffer, items)
    assert len(buffer.signatures(state)[1]) == 9
    assert int(buffer.size(state)) == len(held(state))


@eqx.filter_jit
def add(buffer: DiverseReplay, state: Any, number: Any, value: Any, ended: Any) -> Any:
    return buffer.add(state, (number, value), ended)


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), capacity=st.sampled_from([7, 40]), levels=st.just(1000))
def test_step_by_step(seed: int, capacity: int, levels: int) -> None:
    """No more than the capacity; whole trajectories in the diverse half; a rejected candidate
    leaves no trace there.
    """
    items = stream(seed, 90, 8, 2, levels)
    episode = np.concatenate([[0], np.cumsum(items.ended)[:-1]])
    lengths = np.bincount(episode)
    buffer = diverse(capacity, 2)
    state = start(buffer, jax.random.key(0), 2)
    begin, rejected = buffer._diverse_start, 0
    for number, value, end in zip(items.numbers, items.rewards, items.ended, strict=True):
        after = add(buffer, state, jnp.asarray(number), jnp.asarray(value), jnp.asarray(end))
        assert int(buffer.size(after)) == len(held(after)) <= capacity
        alive = np.asarray(after.rows.priorities.values).ravel()[begin : len(after.rows.data)] > 0
        mine = episode[numbers_in(after)[begin:][alive]]
        assert all((mine == which).sum() == lengths[which] for which in np.unique(mine))
        considered = after.diverse.considered > state.diverse.considered
        if considered and np.array_equal(after.diverse.inserted_at, state.diverse.inserted_at):
            rejected += 1
            before, now = _diverse_half(state, begin), _diverse_half(after, begin)
            assert jax.tree.all(jax.tree.map(np.array_equal, before, now))
        state = after
    assert rejected > 5


def _diverse_half(state: Any, begin: int) -> Any:
    table = eqx.tree_at(lambda d: d.considered, state.diverse, jnp.zeros((), int))
    priorities = np.asarray(state.rows.priorities.values).ravel()[begin:]
    return jax.tree.map(np.asarray, table), np.asarray(state.rows.data)[begin:], priorities


@eqx.filter_jit
def add_and_close(buffer: DiverseReplay, items: Stream, abandoned: Any) -> Any:
    """The state after a stream in which trajectories are abandoned after some transitions."""

    def step(state, item):
        (number, value, ended, _), close = item
        state = buffer.add(state, (number, value), ended)
        return where(close, buffer.close_trajectory(state), state), None

    return jax.lax.scan(step, start(buffer, jax.random.key(0), 2), (items, abandoned))[0]


def with_closings(seed: int, capacity: int) -> tuple[Any, Any, SlowDiverseReplay]:
    """A stream of a thousand transitions with closings, and the slow model after it."""
    items = Stream(*(part[:1000] for part in stream(seed, 600, 12, 2, 1000)))
    rng = np.random.default_rng(seed)
    # Rewards at every step, so that an abandoned trajectory has a return of its own.
    rewards = rng.integers(0, 50, items.rewards.shape).astype(np.float32)
    items, abandoned = items._replace(rewards=rewards), rng.random(1000) < 0.1
    slow, earned = SlowDiverseReplay(capacity), np.zeros(2, np.float32)
    for index, number in enumerate(items.numbers.tolist()):
        earned = earned + rewards[index]
        slow.add(number, earned, bool(items.ended[index]))
        if abandoned[index]:
            slow.close_trajectory()
        earned = np.zeros_like(earned) if items.ended[index] or abandoned[index] else earned
    return items, abandoned, slow


def assert_as_the_model(buffer: DiverseReplay, state: Any, slow: SlowDiverseReplay) -> None:
    assert held(state) == slow.held()
    assert int(buffer.size(state)) == len(slow.held())
    recent, kept = buffer.signatures(state)
    assert recent.tolist() == [t.signature.tolist() for t in slow.ring]
    assert sorted(kept.tolist()) == sorted(t.signature.tolist() for t in slow.diverse)


@pytest.mark.parametrize("capacity", [3, 60])
def test_an_abandoned_trajectory_is_as_one_that_lost_its_beginning(capacity: int) -> None:
    buffer = diverse(capacity, 2)
    for seed in range(4):
        items, abandoned, slow = with_closings(seed, capacity)
        state = add_and_close(buffer, items, abandoned)
        assert_as_the_model(buffer, state, slow)


def test_closing_under_vmap() -> None:
    buffer = diverse(60, 2)
    items, abandoned, models = zip(*(with_closings(seed, 60) for seed in range(4)), strict=True)
    batched = Stream(*(jnp.stack(parts) for parts in zip(*items, strict=True)))
    states = jax.vmap(partial(add_and_close, buffer))(batched, jnp.stack(abandoned))
    for index, slow in enumerate(models):
        assert_as_the_model(buffer, jax.tree.map(lambda leaf, i=index: leaf[i], states), slow)


@pytest.mark.parametrize("longest", [1, 4])
def test_closing_changes_nothing_where_nothing_is_open(longest: int) -> None:
    """Also in a ring full of trajectories of one transition, whose queue has no free entry."""
    buffer = diverse(8, 2)
    close = eqx.filter_jit(buffer.close_trajectory)
    state = start(buffer, jax.random.key(0), 2)
    items = stream(0, 12, longest, 2, 1000)
    for number, value, ended in zip(items.numbers, items.rewards, items.ended, strict=True):
        if not int(state.ring.open_trajectory.length):
            assert jax.tree.all(jax.tree.map(np.array_equal, close(state), state))
        state = add(buffer, state, jnp.asarray(number), jnp.asarray(value), jnp.asarray(ended))
        closed = close(state)
        assert jax.tree.all(jax.tree.map(np.array_equal, close(closed), closed))


def test_after_closing_a_new_trajectory_begins() -> None:
    """With discounted returns: time begins anew as well."""
    buffer = DiverseReplay(20, ReturnSignature(2, 0.5, reward=reward))
    state, one = start(buffer, jax.random.key(0), 2), jnp.ones(2)
    for number in range(3):
        state = add(buffer, state, jnp.asarray(number), one, jnp.asarray(False))
    state = buffer.close_trajectory(state)
    for number in range(3, 5):
        state = add(buffer, state, jnp.asarray(number), one, jnp.asarray(number == 4))
    assert buffer.signatures(state)[0].tolist() == [[1.75, 1.75], [1.5, 1.5]]
    for number in range(5, 16):  # both leave the ring of 10, one after the other
        state = add(buffer, state, jnp.asarray(number), one, jnp.asarray(False))
    assert buffer.signatures(state)[1].tolist() == [[1.5, 1.5]]
    assert held(state) == [3, 4, *range(6, 16)]


def test_trajectories_are_bounded() -> None:
    for wrong in (0, True, 2**31):
        with pytest.raises(InputError, match=f"number of trajectories.*not {wrong}$"):
            diverse(10, 2, trajectories=wrong)


def test_vmapped_as_one_by_one() -> None:
    buffer = diverse(60, 2)
    streams = [stream(seed, 90, 12, 2, 50) for seed in range(4)]
    shortest = min(len(items.numbers) for items in streams)
    streams = [Stream(*(part[:shortest] for part in items)) for items in streams]
    batched = Stream(*(jnp.stack(parts) for parts in zip(*streams, strict=True)))

    def run(items: Stream) -> Any:
        def step(state, item):
            return buffer.add(state, (item.numbers, item.rewards), item.ended), None

        return jax.lax.scan(step, start(buffer, jax.random.key(0), 2), items)[0]

    vmapped = jax.jit(jax.vmap(run))(batched)
    for index, own in enumerate(streams):
        alone = play(buffer, own)
        mine = jax.tree.map(lambda leaf, i=index: leaf[i], vmapped)
        assert jax.tree.all(jax.tree.map(np.array_equal, mine, alone))
