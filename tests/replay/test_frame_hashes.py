"""Perceptual hashes, sets of them as signatures, and diverse replay with their distances."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.replay.model import SlowDiverseReplay
from tests.replay.streams import held
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.replay.diverse import DiverseReplay
from windvane.replay.frame_hashes import (
    FrameHashes,
    NearestSet,
    jaccard_distance,
    perceptual_hash,
)

NOTHING = 0xFFFFFFFF


def test_like_pictures_have_the_same_hash_and_others_do_not() -> None:
    env = Minecart(observation="pixels")
    frame = np.asarray(env.observe(env.reset(jax.random.key(0)))[1])
    generator = np.random.default_rng(0)
    own = int(perceptual_hash(jnp.asarray(frame)))
    brighter = np.minimum(frame.astype(int) + 3, 255).astype(np.uint8)
    assert int(perceptual_hash(jnp.asarray(brighter))) == own
    noise = jnp.asarray(generator.integers(0, 256, (200, 16, 16, 3)), jnp.uint8)
    assert len(set(np.asarray(jax.vmap(perceptual_hash)(noise)).tolist())) == 200


def test_a_hash_by_hand() -> None:
    """The bits are those of a plain cosine transform compared with its median."""
    frame = np.random.default_rng(1).integers(0, 256, (12, 20)).astype(np.float32)
    rows = np.cos(np.pi * np.arange(8)[:, None] * (np.arange(12) + 0.5) / 12)
    columns = np.cos(np.pi * np.arange(8)[:, None] * (np.arange(20) + 0.5) / 20)
    frequencies = (rows @ frame @ columns.T).ravel()[1:]
    bits = frequencies > np.median(frequencies)
    words = [
        sum(int(bit) << place for place, bit in enumerate(part)) for part in (bits[:32], bits[32:])
    ]

    def scramble(word: int) -> int:
        word = ((word ^ word >> 16) * 0x7FEB352D) % 2**32
        word = ((word ^ word >> 15) * 0x846CA68B) % 2**32
        return word ^ word >> 16

    assert int(perceptual_hash(jnp.asarray(frame))) == scramble(scramble(words[0]) ^ words[1])


def test_a_signature_is_the_set_of_hashes_limited_to_its_size() -> None:
    signature = FrameHashes(lambda transition: transition, size=6)
    frames = jnp.asarray(np.random.default_rng(2).integers(0, 256, (10, 8, 8)), jnp.uint8)
    hashes = np.asarray(jax.vmap(perceptual_hash)(frames)).tolist()
    extend = jax.jit(signature.extend)
    current = signature.start()
    for order in (range(3), (1, 0, 2)):
        for index in order:
            current = extend(current, frames[index], jnp.zeros((), int))
    assert sorted(np.asarray(current).tolist()) == sorted(hashes[:3]) + [NOTHING] * 3
    for index in range(3, 10):
        current = extend(current, frames[index], jnp.zeros((), int))
    assert sorted(np.asarray(current).tolist()) == sorted(hashes)[:6]


def as_set(row: Any) -> set[int]:
    return {int(value) for value in row} - {NOTHING}


def nearest(points: np.ndarray) -> np.ndarray:
    """Each set's Jaccard distance to the nearest other, with Python's sets."""
    sets = [as_set(row) for row in points]

    def distance(one: set[int], other: set[int]) -> np.float32:
        if not one | other:
            return np.float32(0)
        return np.float32(1) - np.float32(len(one & other)) / np.float32(len(one | other))

    return np.asarray([
        min((distance(a, b) for j, b in enumerate(sets) if j != i), default=np.inf)
        for i, a in enumerate(sets)
    ])  # fmt: skip


def test_distances_of_sets() -> None:
    generator = np.random.default_rng(3)
    rows = generator.integers(0, 9, (30, 5)).astype(np.uint32)
    for row in rows:  # distinct members, some missing
        unique = np.unique(row)
        row[:] = NOTHING
        row[: len(unique)] = unique
    for a, b in itertools.pairwise(rows):
        share = len(as_set(a) & as_set(b)) / len(as_set(a) | as_set(b))
        assert float(jaccard_distance(jnp.asarray(a), jnp.asarray(b))) == pytest.approx(1 - share)


def pictures(transition: Any) -> Any:
    return transition[1]


def test_diverse_replay_by_frames_equals_the_slow_model() -> None:
    """Trajectories wander over few pictures, so that sets overlap and distances tie."""
    generator = np.random.default_rng(4)
    album = generator.integers(0, 256, (12, 8, 8)).astype(np.uint8)
    lengths = generator.integers(1, 9, 120)
    ended = np.zeros(lengths.sum(), bool)
    ended[np.cumsum(lengths) - 1] = True
    shown = generator.integers(0, 12, len(ended))
    signature = FrameHashes(pictures, size=16)
    buffer = DiverseReplay(60, signature, NearestSet(), trajectories=30)
    hashes = np.asarray(jax.vmap(perceptual_hash)(jnp.asarray(album)))

    @jax.jit
    def run(numbers, frames, ended):
        def step(state, item):
            number, frame, end = item
            return buffer.add(state, (number, frame), end), None

        first = buffer.init((numbers[0], frames[0]), jax.random.key(0))
        return jax.lax.scan(step, first, (numbers, frames, ended))[0]

    numbers = np.arange(len(ended), dtype=np.int32)
    state = run(numbers, jnp.asarray(album[shown]), jnp.asarray(ended))
    slow, seen = SlowDiverseReplay(60, nearest), []
    for number, index, end in zip(numbers.tolist(), shown, ended.tolist(), strict=True):
        seen.append(hashes[index])
        padded = np.full(16, NOTHING, np.uint32)
        unique = np.unique(seen)
        padded[: len(unique)] = unique
        slow.add(number, padded, end)
        seen = [] if end else seen
    assert held(state) == slow.held()


def test_too_many_trajectories_to_compare() -> None:
    buffer = DiverseReplay(100_000, FrameHashes(pictures), NearestSet())
    with pytest.raises(InputError, match="at most 4096 trajectories, not 50000"):
        buffer.init((jnp.zeros(()), jnp.zeros((8, 8))), jax.random.key(0))
