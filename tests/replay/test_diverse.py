"""Diverse replay against the slow model of Algorithm 3, and its invariants."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.model import SlowDiverseReplay
from windvane.replay.diverse import DiverseReplay
from windvane.replay.signature import ReturnSignature


def stream(seed: int, episodes: int, longest: int, objectives: int, levels: int):
    """Transitions: a number, a reward vector of few levels (so that ties abound), and `ended`."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest + 1, episodes)
    ended = np.zeros(lengths.sum(), bool)
    ended[np.cumsum(lengths) - 1] = True
    # Only the last transition is rewarded, with whole numbers: returns are exact in float32.
    rewards = np.zeros((len(ended), objectives), np.float32)
    rewards[ended] = generator.integers(0, levels, (episodes, objectives))
    return np.arange(len(ended)), rewards, ended


def play_fast(buffer: DiverseReplay, numbers, rewards, ended):
    @eqx.filter_jit
    def run(buffer, numbers, rewards, ended):
        def step(state, item):
            number, reward, end = item
            return buffer.add(state, (number, reward), end), None

        first = buffer.init((numbers[0], rewards[0]), jax.random.key(0))
        return jax.lax.scan(step, first, (numbers, rewards, ended))[0]

    return run(buffer, jnp.asarray(numbers), jnp.asarray(rewards), jnp.asarray(ended))


def held(state) -> list[int]:
    priorities = np.asarray(state.rows.priorities.places).ravel()
    numbers = np.asarray(state.rows.transitions[0])
    return sorted(numbers[priorities[: len(numbers)] > 0].tolist())


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10_000),
    capacity=st.sampled_from([2, 3, 7, 40, 150, 400]),
    longest=st.sampled_from([1, 3, 20, 200]),
    objectives=st.sampled_from([2, 4]),
    levels=st.sampled_from([1, 3, 1000]),
)
def test_both_hold_the_same_trajectories(
    seed: int, capacity: int, longest: int, objectives: int, levels: int
) -> None:
    numbers, rewards, ended = stream(seed, 200, longest, objectives, levels)
    signature = ReturnSignature(objectives, 1.0, reward=lambda transition: transition[1])
    buffer = DiverseReplay(capacity, signature)
    slow = SlowDiverseReplay(capacity)
    for number, reward, end in zip(numbers, rewards, ended, strict=True):
        slow.add(int(number), reward, bool(end))
    state = play_fast(buffer, numbers, rewards, ended)
    assert held(state) == slow.held()
    assert int(buffer.size(state)) == len(slow.held()) <= capacity


def test_under_vmap_as_run_by_run() -> None:
    signature = ReturnSignature(2, 1.0, reward=lambda transition: transition[1])
    buffer = DiverseReplay(60, signature)
    streams = [stream(seed, 60, 12, 2, 50) for seed in range(4)]
    shortest = min(len(s[0]) for s in streams)
    streams = [[part[:shortest] for part in s] for s in streams]
    batched = [jnp.stack([jnp.asarray(s[i]) for s in streams]) for i in range(3)]

    def run(numbers, rewards, ended):
        def step(state, item):
            number, reward, end = item
            return buffer.add(state, (number, reward), end), None

        first = buffer.init((numbers[0], rewards[0]), jax.random.key(0))
        return jax.lax.scan(step, first, (numbers, rewards, ended))[0]

    together = jax.jit(jax.vmap(run))(*batched)
    for index, own in enumerate(streams):
        alone = play_fast(buffer, *own)
        mine = jax.tree.map(lambda leaf, i=index: leaf[i], together)
        assert held(mine) == held(alone)
        same = jax.tree.map(np.array_equal, mine.diverse, alone.diverse)
        assert all(jax.tree.leaves(same))


@pytest.mark.slow
def test_two_thousand_episodes() -> None:
    for seed, capacity, objectives in ((0, 2000, 2), (1, 5000, 4), (2, 301, 2)):
        numbers, rewards, ended = stream(seed, 2000, 200, objectives, 40)
        signature = ReturnSignature(objectives, 1.0, reward=lambda transition: transition[1])
        buffer = DiverseReplay(capacity, signature)
        slow = SlowDiverseReplay(capacity)
        for number, reward, end in zip(numbers, rewards, ended, strict=True):
            slow.add(int(number), reward, bool(end))
        assert held(play_fast(buffer, numbers, rewards, ended)) == slow.held()
