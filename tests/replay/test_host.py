"""The host-side buffer keeps and samples what the pure one would."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.errors import InputError
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.host import STAGING_SIZE, HostReplay
from windvane.replay.selective import SelectiveReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay

EXAMPLE = {"number": 0, "reward": np.zeros(2, np.float32)}


# Buffers that are equal share their compiled programs.
DIVERSE = DiverseReplay(60, ReturnSignature(2, 0.5, reward=lambda t: t["reward"]))
STANDARD = StandardReplay(50)


def transition(number: int) -> dict[str, Any]:
    return {"number": number, "reward": np.asarray([number % 7, number % 3], np.float32)}


def fill(replay: HostReplay, first: int, last: int) -> None:
    for number in range(first, last):
        replay.add(transition(number), number % 5 == 4)


def scattered(leaving: dict[str, np.ndarray]) -> np.ndarray:
    """Scores in no order, with ties."""
    return leaving["number"] * 37 % 101 // 2


def test_what_was_added_comes_back() -> None:
    replay = HostReplay(STANDARD, EXAMPLE)
    fill(replay, 0, 250)
    assert len(replay) == 50
    transitions, indices, probabilities = replay.sample(40)
    assert set(transitions["number"]) <= set(range(200, 250))
    assert np.array_equal(transitions["reward"][:, 0], transitions["number"] % 7)
    assert indices.shape == probabilities.shape == (40,)


def test_updates_change_what_is_sampled() -> None:
    replay = HostReplay(STANDARD, EXAMPLE)
    fill(replay, 0, 50)
    replay.update_priorities(np.arange(50), np.zeros(50))
    replay.update_priorities([7], [100.0])
    transitions, *_ = replay.sample(40)
    assert (transitions["number"] == 7).all()


def test_a_batch_may_begin_with_the_newest() -> None:
    replay = HostReplay(STANDARD, EXAMPLE)
    fill(replay, 0, 100)
    transitions, _, probabilities = replay.sample(8, newest=3)
    assert transitions["number"][:3].tolist() == [99, 98, 97]
    assert np.allclose(probabilities, 1 / 50)
    for wrong in (-1, 9):
        with pytest.raises(InputError, match="newest transitions of a batch must be"):
            replay.sample(8, newest=wrong)


def test_samples_have_their_share() -> None:
    replay = HostReplay(STANDARD, EXAMPLE, seed=3)
    fill(replay, 0, 50)
    replay.update_priorities(np.arange(50), np.sqrt(np.arange(1, 51)) - 0.01)
    counts, expected = np.zeros(50), np.arange(1, 51) / np.arange(1, 51).sum()
    for _ in range(500):
        _, indices, probabilities = replay.sample(40)
        counts += np.bincount(indices, minlength=50)
        np.testing.assert_allclose(probabilities, expected[indices], rtol=1e-5)
    assert (np.abs(counts - 20_000 * expected) < 5 * np.sqrt(20_000 * expected)).all()


def test_seeds_decide_what_is_sampled() -> None:
    replays = [HostReplay(STANDARD, EXAMPLE, seed=seed) for seed in (1, 1, 2)]
    for replay in replays:
        fill(replay, 0, 50)
    one, same, other = (replay.sample(40)[1] for replay in replays)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, replays[0].sample(40)[1])


@pytest.mark.parametrize("rule", [STANDARD, SelectiveReplay(60), DIVERSE])
def test_it_keeps_what_the_pure_rule_keeps(rule: Any) -> None:
    replay = HostReplay(rule, EXAMPLE, seed=5)
    state = rule.init(jax.tree.map(jnp.asarray, EXAMPLE), jax.random.key(5))
    add = eqx.filter_jit(rule.add)
    for number in range(400):
        new, ended = jax.tree.map(jnp.asarray, (transition(number), number % 5 == 4))
        state = add(state, new, ended)
        fill(replay, number, number + 1)
        if number % 7 == 6 or number == 399:  # groups of 7 are flushed together
            assert len(replay) == rule.size(state)
    assert_same(replay, state)


def assert_same(replay: HostReplay, state: Any) -> None:
    """The saved arrays begin with those of the state."""
    saved = replay.state_dict()
    for index, leaf in enumerate(jax.tree.leaves(state)):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        expected = jax.random.key_data(leaf) if is_key else leaf
        assert np.array_equal(saved[f"leaf{index}"], expected), index


@pytest.mark.parametrize(("capacity", "every"), [(41, 1000), (41, 7), (300, 33)])
def test_exploration_keeps_what_the_pure_rule_keeps(capacity: int, every: int) -> None:
    rule = ExplorationReplay(capacity)
    replay = HostReplay(rule, EXAMPLE, score=scattered)
    state = rule.init(jax.tree.map(jnp.asarray, EXAMPLE), jax.random.key(0))

    @eqx.filter_jit
    def add(state: Any, new: Any) -> Any:
        score = scattered(rule.leaving(state)).astype(jnp.float32)
        return rule.add_scored(state, new, jnp.asarray(False), score)

    for number in range(700):
        state = add(state, jax.tree.map(jnp.asarray, transition(number)))
        fill(replay, number, number + 1)
        if number % every == 0:
            assert len(replay) == rule.size(state)
    assert_same(replay, state)


def test_only_leaving_transitions_are_scored() -> None:
    seen: list[int] = []

    def score(leaving: dict[str, np.ndarray]) -> np.ndarray:
        assert leaving["reward"].shape == (len(leaving["number"]), 2)
        seen.extend(leaving["number"].tolist())
        return np.zeros(len(leaving["number"]))

    replay = HostReplay(ExplorationReplay(60), EXAMPLE, score=score)
    fill(replay, 0, 100)
    assert len(replay) == 60
    assert seen == list(range(70))


def test_bad_scores_lose_nothing() -> None:
    answer: list[Any] = [None]
    rule = ExplorationReplay(60)
    replay = HostReplay(rule, EXAMPLE, score=lambda t: scattered(t) if answer[0] else answer[1])
    expected = HostReplay(rule, EXAMPLE, score=scattered)
    fill(replay, 0, 60)
    fill(expected, 0, 75)
    for bad, message in (([0.0], "30 scores.*one"), ([np.nan] * 30, "finite.*nan")):
        answer[:] = [False, bad]
        with pytest.raises(InputError, match=message):
            replay.add(transition(60), False)  # no room to stage it: others must be flushed
        with pytest.raises(InputError, match=message):
            replay.sample(4)
    answer[0] = True
    fill(replay, 60, 75)
    for one, other in zip(replay.state_dict().items(), expected.state_dict().items(), strict=True):
        assert one[0] == other[0]
        assert np.array_equal(one[1], other[1])


def test_more_than_is_held_cannot_be_sampled() -> None:
    replay = HostReplay(DIVERSE, EXAMPLE)
    for number in range(31):  # one episode that outgrows its half of 30
        replay.add(transition(number), False)
    assert len(replay) == 30
    with pytest.raises(InputError, match="cannot sample 31 transitions: 30 are held"):
        replay.sample(31)
    replay.sample(8)


def test_what_is_sampled_is_the_callers_own() -> None:
    replay = HostReplay(STANDARD, EXAMPLE)
    fill(replay, 0, 50)
    transitions, indices, _ = replay.sample(40)
    kept = transitions["number"].copy()
    saved = replay.state_dict()
    before = {name: array.copy() for name, array in saved.items()}
    fill(replay, 50, 50 + STAGING_SIZE)
    replay.update_priorities(indices, np.ones(40))
    assert np.array_equal(transitions["number"], kept)
    assert all(np.array_equal(saved[name], before[name]) for name in saved)
    transitions["number"][:] = -1
    assert (replay.sample(40)[0]["number"] >= 50).all()


def test_saved_and_loaded_it_goes_on_alike() -> None:
    one, other = HostReplay(DIVERSE, EXAMPLE, seed=1), HostReplay(DIVERSE, EXAMPLE, seed=2)
    fill(one, 0, 333)
    one.sample(8)
    other.load_state_dict(one.state_dict())
    for replay in (one, other):
        fill(replay, 333, 500)
    assert np.array_equal(one.sample(8)[0]["number"], other.sample(8)[0]["number"])
    assert all(
        np.array_equal(a, b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_bad_input_is_one_sentence() -> None:
    replay = HostReplay(STANDARD, EXAMPLE)
    fill(replay, 0, 5)
    with pytest.raises(InputError, match="cannot sample 6 transitions: 5"):
        replay.sample(6)
    with pytest.raises(InputError, match="shape"):
        replay.add({"number": 0, "reward": np.zeros(3)}, False)
    with pytest.raises(InputError, match="built like"):
        replay.add({"number": 0}, False)
    with pytest.raises(InputError, match="equal length"):
        replay.update_priorities([1, 2], [0.5])
    with pytest.raises(InputError, match="finite"):
        replay.update_priorities([1], [np.nan])
    with pytest.raises(InputError, match="another capacity"):
        replay.load_state_dict(HostReplay(StandardReplay(5000), EXAMPLE).state_dict())
    with pytest.raises(InputError, match="whole numbers, not float"):
        replay.update_priorities([1.5], [1.0])
    with pytest.raises(InputError, match="from 1 to 50, not 51"):
        replay.sample(51)
    with pytest.raises(InputError, match=r"needs a function `score`.*not None"):
        HostReplay(ExplorationReplay(50), EXAMPLE)
    with pytest.raises(InputError, match=r"only a ScoredReplay takes a `score`, not Stand"):
        HostReplay(STANDARD, EXAMPLE, score=scattered)
    replay.update_priorities([], [])
