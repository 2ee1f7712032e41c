"""The host-side buffer keeps and samples what the pure one would."""

import numpy as np
import pytest

from windvane.errors import InputError
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.host import HostReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay

EXAMPLE = {"number": 0, "reward": np.zeros(2, np.float32)}


def diverse(capacity: int = 60) -> DiverseReplay:
    return DiverseReplay(capacity, ReturnSignature(2, 0.5, reward=lambda t: t["reward"]))


def fill(replay: HostReplay, first: int, last: int) -> None:
    for number in range(first, last):
        reward = np.asarray([number % 7, number % 3], np.float32)
        replay.add({"number": number, "reward": reward}, number % 5 == 4)


def test_what_was_added_comes_back() -> None:
    replay = HostReplay(StandardReplay(100), EXAMPLE)
    fill(replay, 0, 250)
    assert len(replay) == 100
    transitions, places, probabilities = replay.sample(64)
    assert set(transitions["number"]) <= set(range(150, 250))
    assert np.array_equal(transitions["reward"][:, 0], transitions["number"] % 7)
    assert places.shape == probabilities.shape == (64,)


def test_updates_change_what_is_sampled() -> None:
    replay = HostReplay(StandardReplay(50), EXAMPLE)
    fill(replay, 0, 50)
    replay.update_priorities(np.arange(50), np.zeros(50))
    replay.update_priorities([7], [100.0])
    transitions, *_ = replay.sample(40)
    assert (transitions["number"] == 7).all()


def test_saved_and_loaded_it_goes_on_alike() -> None:
    one, other = HostReplay(diverse(), EXAMPLE, seed=1), HostReplay(diverse(), EXAMPLE, seed=2)
    fill(one, 0, 333)
    one.sample(8)
    other.load_state_dict(one.state_dict())
    for replay in (one, other):
        fill(replay, 333, 500)
    assert np.array_equal(one.sample(32)[0]["number"], other.sample(32)[0]["number"])
    assert all(
        np.array_equal(a, b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_bad_input_is_one_sentence() -> None:
    replay = HostReplay(StandardReplay(50), EXAMPLE)
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
    with pytest.raises(InputError, match="score"):
        HostReplay(ExplorationReplay(50), EXAMPLE)
