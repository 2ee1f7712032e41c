"""Streams of transitions for the retention rules, and ways to play them and to look inside."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane.batching import when

BLOCK = 2048


class Stream(NamedTuple):
    """Transitions are (number, reward); `scores` are for exploration replay."""

    numbers: np.ndarray
    rewards: np.ndarray
    ended: np.ndarray
    scores: np.ndarray


def stream(seed: int, episodes: int, longest: int, objectives: int, levels: int) -> Stream:
    """Episodes of 1 to `longest` steps; rewards and scores have few levels, so that ties abound."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest + 1, episodes)
    ended = np.zeros(lengths.sum(), bool)
    ended[np.cumsum(lengths) - 1] = True
    # Only the last transition is rewarded, with whole numbers: returns are exact in float32.
    rewards = np.zeros((len(ended), objectives), np.float32)
    rewards[ended] = generator.integers(0, levels, (episodes, objectives))
    scores = generator.integers(0, levels, len(ended)).astype(np.float32)
    return Stream(np.arange(len(ended), dtype=np.int32), rewards, ended, scores)


def reward(transition: Any) -> Any:
    """Where signatures find the reward."""
    return transition[1]


@eqx.filter_jit
def start(buffer: Any, key: Any, objectives: int) -> Any:
    return buffer.init((jnp.zeros((), jnp.int32), jnp.zeros(objectives)), key)


@eqx.filter_jit
def _block(buffer: Any, state: Any, block: Stream, valid: Any) -> Any:
    def step(state, item):
        (number, reward, ended, score), counts = item
        return when(counts, buffer.add, state, (number, reward), ended, score), None

    return jax.lax.scan(step, state, (block, valid))[0]


def play(buffer: Any, items: Stream, key: Any = None) -> Any:
    """The state after adding a whole stream, in blocks of one length: it compiles once a buffer."""
    key = jax.random.key(0) if key is None else key
    state = start(buffer, key, items.rewards.shape[1])
    for first in range(0, len(items.numbers), BLOCK):
        block = Stream(*(part[first : first + BLOCK] for part in items))
        missing = BLOCK - len(block.numbers)
        padded = Stream(*(np.concatenate([part, part[:1].repeat(missing, 0)]) for part in block))
        state = _block(buffer, state, padded, np.arange(BLOCK) < BLOCK - missing)
    return state


def numbers_in(state: Any) -> np.ndarray:
    """The number in every row."""
    rows = state.rows
    return rows.packing.views(np.array(rows.words))[0]


def held(state: Any) -> list[int]:
    """Numbers of the transitions that are held, in order."""
    numbers = numbers_in(state)
    priorities = np.asarray(state.rows.priorities.places).ravel()[: len(numbers)]
    return sorted(numbers[priorities > 0].tolist())
