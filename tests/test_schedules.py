"""The weight schedules: what they say, how they batch, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane.errors import InputError
from windvane.schedules import (
    ChosenWeights,
    FixedWeights,
    OneOf,
    RandomWeights,
    RegularChanges,
    ScheduleSetup,
    SparseChanges,
    WeightSchedule,
    WeightSequence,
    _count,
    with_chosen,
)
from windvane.weights import sample_weights, simplex_grid

SEQUENCE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]
SCHEDULES = {
    "sparse": SparseChanges(3, 50),
    "regular": RegularChanges(3),
    "random": RandomWeights(3),
    "fixed": FixedWeights([0.2, 0.3, 0.5]),
    "sequence": WeightSequence(SEQUENCE, every=2),
    "cycle": WeightSequence(SEQUENCE, every=7, unit="steps", repeat=True),
    "chosen": ChosenWeights(3, 4),
    "one of": OneOf((SparseChanges(3, 50), RegularChanges(3)), 1),
}
all_schedules = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
seeds = st.integers(0, 2**31 - 1)
counters = st.integers(0, 10**6)


@eqx.filter_jit
def ask(schedule: WeightSchedule, seed, episode, step):
    return schedule.weights(jax.random.key(seed), episode, step)


def answer(schedule, seed=0, episode=0, step=0):
    return np.asarray(ask(schedule, jnp.uint32(seed), jnp.int32(episode), jnp.int32(step)))


def answers(schedule, seed, episodes, steps):
    """One row for each of many episodes, in one call."""
    episodes, steps = np.broadcast_arrays(np.int32(episodes), np.int32(steps))
    return np.asarray(eqx.filter_vmap(ask, in_axes=(None, None, 0, 0))(
        schedule, jnp.uint32(seed), jnp.asarray(episodes), jnp.asarray(steps)
    ))  # fmt: skip


# --- every schedule


@all_schedules
@given(seed=seeds, episode=counters, step=counters)
def test_weights_stay_on_the_simplex(schedule, seed, episode, step):
    weights = answer(schedule, seed, episode, step)
    assert weights.shape == (schedule.num_objectives,)
    assert (weights >= 0).all()
    assert abs(weights.sum() - 1) < 1e-6


@all_schedules
def test_vmap_agrees_with_a_loop(schedule):
    episodes, steps = np.arange(40), 13 * np.arange(40)
    looped = [answer(schedule, 3, e, s) for e, s in zip(episodes, steps, strict=True)]
    np.testing.assert_allclose(answers(schedule, 3, episodes, steps), looped, rtol=1e-6)


@all_schedules
def test_jit_agrees_with_python_numbers(schedule):
    key = jax.random.key(5)
    plain = schedule.weights(key, 12, 345)
    np.testing.assert_allclose(answer(schedule, 5, 12, 345), plain, rtol=1e-6)


@all_schedules
def test_schedules_scan_inside_a_run(schedule):
    key = jax.random.key(1)

    def body(counters, _):
        episode, step = counters
        return (episode + 1, step + 20), schedule.weights(key, episode, step)

    _, scanned = jax.jit(lambda: jax.lax.scan(body, (jnp.int32(0), jnp.int32(0)), None, 30))()
    expected = answers(schedule, 1, np.arange(30), 20 * np.arange(30))
    np.testing.assert_allclose(scanned, expected, rtol=1e-6)


def test_one_of_several_is_the_chosen_one():
    several = (SCHEDULES["sparse"], SCHEDULES["regular"], SCHEDULES["fixed"])
    for number, schedule in enumerate(several):
        chosen = answer(OneOf(several, number), 3, 17, 170)
        np.testing.assert_allclose(chosen, answer(schedule, 3, 17, 170), rtol=1e-6)
    with pytest.raises(InputError, match=r"one number of objectives, not for \[2, 3\]"):
        OneOf((SparseChanges(2, 5), SparseChanges(3, 5)))


@pytest.mark.parametrize("name", ["sparse", "regular"])
def test_seeds_differ(name):
    first = np.stack([answer(SCHEDULES[name], seed) for seed in range(50)])
    assert len(np.unique(first.round(6), axis=0)) == 50


def test_scalars_are_leaves_to_batch_over():
    key, step = jax.random.key(0), 120
    every = jnp.asarray([10, 50, 100])

    def in_force(every):
        return SparseChanges(3, every).weights(key, 0, step)

    batched = jax.vmap(in_force)(every)
    np.testing.assert_array_equal(batched, [in_force(int(e)) for e in every])
    schedules = eqx.filter_vmap(lambda e: SparseChanges(3, e))(every)
    again = eqx.filter_vmap(lambda s: s.weights(key, 0, step))(schedules)
    np.testing.assert_array_equal(batched, again)


def test_fixed_weights_batch_too():
    grid = jnp.asarray(simplex_grid(3, 4), jnp.float32)
    asked = jax.vmap(lambda w: FixedWeights(w).weights(jax.random.key(0), 0, 0))(grid)
    np.testing.assert_array_equal(asked, grid)


# --- SparseChanges


@given(seed=seeds, every=st.integers(1, 10**5), draw=st.integers(0, 1000), offset=st.floats(0, 1))
def test_sparse_weights_are_constant_until_due(seed, every, draw, offset):
    schedule = SparseChanges(3, every)
    due = every * draw
    within = due + int(offset * (every - 1))
    np.testing.assert_array_equal(
        answer(schedule, seed, 0, due), answer(schedule, seed, 99, within)
    )
    assert not np.allclose(answer(schedule, seed, 0, due), answer(schedule, seed, 0, due + every))


def test_sparse_changes_wait_for_an_episode_to_begin():
    starts = np.arange(0, 400, 23)
    rows = answers(SparseChanges(2, 100), 0, np.arange(len(starts)), starts)
    changed = np.flatnonzero(np.abs(np.diff(rows, axis=0)).sum(1)) + 1
    # Changes fall due at 100, 200 and 300: the episodes from 115, 207 and 322 are the first after.
    assert starts[changed].tolist() == [115, 207, 322]


# --- RandomWeights


def test_random_weights_may_be_drawn_from_another_distribution() -> None:
    key, episode = jax.random.key(4), jnp.asarray(3)
    drawn = RandomWeights(3, "normal").weights(key, episode, episode)
    sizes = jnp.abs(jax.random.normal(jax.random.fold_in(key, 3), (3,)))
    np.testing.assert_allclose(drawn, sizes / sizes.sum(), rtol=1e-6)
    with pytest.raises(InputError, match="unknown distribution of weights 'flat'"):
        RandomWeights.build(ScheduleSetup(3, 100, 10), "flat")


def test_random_weights_are_new_in_every_episode_and_at_no_other_time():
    schedule = RandomWeights(3)
    drawn = answers(schedule, 1, np.arange(200), np.zeros(200, int))
    assert len(np.unique(drawn.round(6), axis=0)) == 200
    assert np.abs(drawn.mean(0) - 1 / 3).max() < 0.06
    np.testing.assert_array_equal(answer(schedule, 1, 7, 0), answer(schedule, 1, 7, 999))
    assert not np.array_equal(answer(schedule, 1, 7, 0), answer(schedule, 2, 7, 0))


# --- RegularChanges


@given(seed=seeds, episodes=st.integers(1, 25))
def test_regular_changes_pass_through_their_targets_in_equal_steps(seed, episodes):
    schedule = RegularChanges(3, episodes)
    path = answers(schedule, seed, np.arange(25 * 3), 0)
    key = jax.random.key(seed)
    targets = [sample_weights(jax.random.fold_in(key, k), 3) for k in range(3)]
    for k, target in enumerate(targets):
        np.testing.assert_allclose(path[k * episodes], target, rtol=1e-6)
    steps = np.diff(path[: 2 * episodes + 1], axis=0)
    for k in range(2):
        expected = (np.asarray(targets[k + 1]) - np.asarray(targets[k])) / episodes
        segment = steps[k * episodes : (k + 1) * episodes]
        np.testing.assert_allclose(segment, np.tile(expected, (episodes, 1)), atol=1e-6)


def test_regular_changes_are_small_by_default():
    path = answers(RegularChanges(4), 11, np.arange(2000), 0)
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    # The simplex is sqrt(2) across, and a target is ten episodes away.
    assert lengths.max() <= np.sqrt(2) / 10 + 1e-6
    assert lengths.min() > 0


# --- FixedWeights and WeightSequence


def test_weights_are_left_to_an_agent():
    schedule, episodes = ChosenWeights(2, capacity=3), np.arange(100)
    assert np.array_equal(np.unique(answers(schedule, 0, episodes, 0), axis=0), [[0, 1], [1, 0]])
    rows = np.asarray([[0.5, 0.5], [0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    # One has no room, the first that was chosen.
    for number, kept in ((1, rows[:1]), (4, rows[1:])):
        chosen = with_chosen(schedule, rows[:number])
        drawn = np.unique(answers(chosen, 0, episodes, 0), axis=0)
        assert np.allclose(drawn, kept)


def test_schedules_of_their_own_are_left_alone():
    rows = np.asarray([[0.5, 0.5]])
    both = with_chosen(OneOf((FixedWeights([0.3, 0.7]), ChosenWeights(2, 3))), rows)
    fixed, chosen = both.schedules
    assert np.allclose(answer(fixed), [0.3, 0.7])
    assert np.allclose(answer(chosen), [0.5, 0.5])


def test_fixed_weights_never_change():
    rows = answers(FixedWeights([0.2, 0.3, 0.5]), 0, np.arange(10), 1000 * np.arange(10))
    np.testing.assert_array_equal(rows, np.tile(np.float32([0.2, 0.3, 0.5]), (10, 1)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 1, 2, 2, 2, 2, 2, 2]),
        ({"every": 2}, [0, 0, 1, 1, 2, 2, 2, 2]),
        ({"repeat": True}, [0, 1, 2, 0, 1, 2, 0, 1]),
        ({"every": 100, "unit": "steps"}, [0, 0, 0, 1, 1, 2, 2, 2]),
        ({"every": 100, "unit": "steps", "repeat": True}, [0, 0, 0, 1, 1, 2, 2, 2]),
    ],
)
def test_sequences_are_played_in_order(options, expected):
    rows = answers(WeightSequence(SEQUENCE, **options), 0, np.arange(8), 40 * np.arange(8))
    np.testing.assert_array_equal(rows, np.float32(SEQUENCE)[expected])


# --- bad schedules


@pytest.mark.parametrize("every", [0, -3, np.int64(0), 2**31])
@pytest.mark.parametrize(
    "build",
    [
        lambda every: SparseChanges(2, every),
        lambda every: RegularChanges(2, every),
        lambda every: WeightSequence([[1.0, 0.0]], every=every),
    ],
)
def test_bad_intervals_are_refused(build, every):
    with pytest.raises(InputError, match=r"must be a whole number from 1 to 2147483647, not "):
        build(every)


@pytest.mark.parametrize("value", [1.5, "ten", None, True, [10, 20]])
def test_intervals_must_be_whole_numbers(value):
    with pytest.raises(InputError, match="must be a whole number"):
        _count("the interval", value)


@pytest.mark.parametrize("schedule", [SparseChanges, RegularChanges])
def test_schedules_need_objectives(schedule):
    with pytest.raises(InputError, match="the number of objectives must be a whole number"):
        schedule(0, 10)


@pytest.mark.parametrize(
    ("sequence", "sentence"),
    [
        ([], "a weight sequence needs at least one row of weights, not []"),
        ("0.2,0.8", "a weight sequence needs at least one row of weights, not '0.2,0.8'"),
        ([0.2, 0.8], "row 0 of the weight sequence must be one list of numbers"),
        ([[0.2, 0.8], [1.0]], "row 1 of the weight sequence must be 2 numbers"),
        ([[0.2, 0.8], [0.2, 0.7]], "row 1 of the weight sequence must sum to 1"),
        ([[0.2, 0.8], [np.nan, 1.0]], "row 1 of the weight sequence must be finite"),
        ([[0.2, 0.8], [-1.0, 2.0]], "row 1 of the weight sequence must be 0 or more"),
    ],
)
def test_bad_sequences_are_refused(sequence, sentence):
    with pytest.raises(InputError) as caught:
        WeightSequence(sequence)
    assert sentence in str(caught.value)


def test_bad_units_are_refused():
    with pytest.raises(InputError, match="choose one of: episodes, steps"):
        WeightSequence([[1.0]], unit="minutes")


def test_fixed_weights_are_checked():
    with pytest.raises(InputError, match="the weights must sum to 1"):
        FixedWeights([0.5, 0.4])


def test_the_schedule_itself_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        WeightSchedule()  # type: ignore[abstract]
