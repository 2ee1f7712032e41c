"""Frames are stored once, come back as they were, and go when nothing shows them."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windvane.errors import InputError
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.frames import FrameStore
from windvane.replay.host import STAGING_SIZE, HostReplay
from windvane.replay.selective import SelectiveReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay

NAMES = ("observation", "next_observation")
STACK = 2
EXAMPLE = {
    "observation": np.zeros((STACK, 4, 4), np.uint8),
    "number": 0,
    "reward": np.zeros(2, np.float32),
    "next_observation": np.zeros((STACK, 4, 4), np.uint8),
}


def picture(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (4, 4), np.uint8)


def stream(steps: int, length: int = 9) -> Iterator[tuple[dict[str, Any], bool]]:
    """Episodes whose pictures are all different; the number of a transition tells its pictures."""
    frames = deque([picture(0)] * STACK, STACK)
    episode = 0
    for step in range(steps):
        before = np.stack(frames)
        frames.append(picture(step + episode + 1))
        ended = step % length == length - 1
        reward = np.asarray([step % 7, step // length % 5], np.float32)
        yield (
            {
                "observation": before,
                "number": step,
                "reward": reward,
                "next_observation": np.stack(frames),
            },
            ended,
        )
        if ended:
            episode += 1
            frames.extend([picture(step + episode + 1)] * STACK)


# Buffers that are equal share their compiled programs.
SIGNATURE = ReturnSignature(2, 0.9, reward=lambda t: t["reward"])
RULES: list[Any] = [
    StandardReplay(40),
    SelectiveReplay(40),
    DiverseReplay(40, SIGNATURE),
    ExplorationReplay(40),
]


def replay_of(rule: Any, seed: int = 0) -> HostReplay:
    score = unlikeness if isinstance(rule, ExplorationReplay) else None
    return HostReplay(rule, EXAMPLE, seed, frames=NAMES, score=score)


def unlikeness(leaving: dict[str, np.ndarray]) -> np.ndarray:
    """A score from the pictures themselves, which must be whole again by then."""
    assert leaving["observation"].dtype == np.uint8
    return leaving["observation"].sum((1, 2, 3)) % 97


@pytest.mark.parametrize("rule", RULES)
def test_frames_come_back_and_dropped_ones_go(rule: Any) -> None:
    replay = replay_of(rule)
    given = list(stream(2500))
    for index, (transition, ended) in enumerate(given):
        replay.add(transition, ended)
        if index % 37 == 36 or (index % 500 < 3 and index > 9):
            batch, *_ = replay.sample(8)
            for name in NAMES:
                expected = np.stack([given[number][0][name] for number in batch["number"]])
                assert batch[name].dtype == np.uint8
                assert np.array_equal(batch[name], expected)
    assert replay.frames is not None
    # At most three pictures per transition, held or staged, and half of that again in reserve.
    assert len(replay.frames) <= 1.5 * 3 * (40 + STAGING_SIZE) + 4
    assert replay.frames.nbytes <= 16 * (1.5 * 3 * (40 + STAGING_SIZE) + 4)


def test_neighbours_share_their_frames() -> None:
    replay = replay_of(StandardReplay(1000))
    for transition, ended in stream(900, length=30):
        replay.add(transition, ended)
    assert replay.frames is not None
    assert len(replay.frames) == 900 + 30


def test_repeated_pictures_are_stored_once() -> None:
    replay = replay_of(StandardReplay(1000))
    for _ in range(5):
        for transition, ended in stream(100, length=10):
            replay.add(transition, ended)
    assert replay.frames is not None
    assert len(replay.frames) == 100 + 10


def test_memory_is_counted() -> None:
    example = {"observation": np.zeros((2, 84, 84), np.uint8)}
    plain = HostReplay(StandardReplay(1000), example)
    compact = HostReplay(StandardReplay(1000), example, frames=("observation",))
    assert plain.nbytes >= 1000 * 2 * 84 * 84
    assert compact.nbytes < plain.nbytes / 10
    noise = np.random.default_rng(0).integers(0, 256, (1001, 84, 84), np.uint8)
    for start in range(1000):
        compact.add({"observation": noise[start : start + 2]}, False)
    assert 1001 * 84 * 84 <= compact.nbytes < 0.8 * plain.nbytes


@pytest.mark.parametrize("rule", RULES)
def test_saved_and_loaded_it_goes_on_alike(rule: Any) -> None:
    one, other = replay_of(rule, seed=1), replay_of(rule, seed=2)
    given = list(stream(600))
    for transition, ended in given[:333]:
        one.add(transition, ended)
    one.sample(8)
    saved = one.state_dict()
    for transition, ended in given[:50]:
        other.add(transition, ended)
    other.load_state_dict(saved)
    assert other.frames is not None
    assert len(other.frames) == len(saved["frames"]) <= 3 * 40
    for replay in (one, other):
        for transition, ended in given[333:]:
            replay.add(transition, ended)
    for left, right in zip(one.sample(8)[0].values(), other.sample(8)[0].values(), strict=True):
        assert np.array_equal(left, right)
    for name, array in one.state_dict().items():
        assert np.array_equal(array, other.state_dict()[name]), name


def test_an_empty_buffer_can_be_saved() -> None:
    one, other = replay_of(RULES[0]), replay_of(RULES[0], seed=1)
    other.load_state_dict(one.state_dict())
    assert len(other) == 0
    for transition, ended in stream(20):
        other.add(transition, ended)
    assert other.sample(8)[0]["observation"].shape == (8, STACK, 4, 4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=30), max_size=60), st.data())
def test_a_store_holds_what_it_must(stacks: list[list[int]], data: st.DataObject) -> None:
    store, held = FrameStore((4, 4)), []
    for numbers in stacks:
        ids = store.put(np.stack([picture(number) for number in numbers]))
        held.append((ids, numbers))
        if data.draw(st.integers(0, 5)) == 0:
            held = [pair for pair in held if data.draw(st.booleans())]
            ids = np.concatenate([ids for ids, _ in held] or [np.zeros(0, np.int32)])
            store.keep(ids, 40)
            assert len(store) == len(set(ids.tolist()))
            assert store.room >= 40
        for ids, numbers in held:
            assert np.array_equal(store.get(ids), np.stack([picture(n) for n in numbers]))
    assert store.nbytes == (len(store) + store.room) * 16


def test_bad_input_is_one_sentence() -> None:
    rule = StandardReplay(50)
    with pytest.raises(InputError, match="no frames 'picture'; choose among: observation, number"):
        HostReplay(rule, EXAMPLE, frames=("picture",))
    with pytest.raises(InputError, match=r"'reward' must be .*uint8.*not float32 of shape \(2,\)"):
        HostReplay(rule, EXAMPLE, frames=("reward",))
    with pytest.raises(InputError, match=r"not uint8 of shape \(84,\)"):
        HostReplay(rule, {"observation": np.zeros(84, np.uint8)}, frames=("observation",))
    with pytest.raises(InputError, match=r"'number' must be .*not int of shape \(\)"):
        HostReplay(rule, EXAMPLE, frames="number")
    with pytest.raises(InputError, match="must be a dict, not tuple"):
        HostReplay(rule, (np.zeros((2, 4, 4), np.uint8),), frames=("observation",))
    other = {**EXAMPLE, "next_observation": np.zeros((2, 5, 5), np.uint8)}
    with pytest.raises(InputError, match="must have one shape, not"):
        HostReplay(rule, other, frames=NAMES)
    replay = HostReplay(rule, EXAMPLE, frames=NAMES)
    with pytest.raises(InputError, match="frames must be uint8, not float32"):
        replay.add({**EXAMPLE, "observation": np.zeros((2, 4, 4), np.float32)}, False)
    with pytest.raises(InputError, match="shape"):
        replay.add({**EXAMPLE, "observation": np.zeros((2, 5, 5), np.uint8)}, False)
    with pytest.raises(InputError, match="another capacity or transition"):
        replay.load_state_dict(HostReplay(rule, EXAMPLE).state_dict())
    assert len(replay) == 0
