"""Streams of transitions for the retention rules, and ways to play them and to look inside."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane.batching import cond_any
from windvane.replay.buffer import ScoredReplay

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


def add(buffer: Any, state: Any, transition: Any, ended: Any, score: Any) -> Any:
    """Add a transition, with the score for a rule that needs it."""
    if isinstance(buffer, ScoredReplay):
        return buffer.add_scored(state, transition, ended, score)
    return buffer.add(state, transition, ended)


@eqx.filter_jit
def _block(buffer: Any, state: Any, block: Stream, valid: Any) -> Any:
    def step(state, item):
        (number, reward, ended, score), counts = item
        adding = partial(add, buffer)
        return cond_any(counts, adding, state, (number, reward), ended, score), None

    return jax.lax.scan(step, state, (block, valid))[0]


def play(buffer: Any, items: Stream, key: Any = None) -> Any:
    """The state after a whole stream, in blocks of one length: one compilation per buffer."""
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
    return rows.packing.views(np.array(rows.data))[0]


def held(state: Any) -> list[int]:
    """Numbers of the transitions that are held, in order."""
    numbers = numbers_in(state)
    priorities = np.asarray(state.rows.priorities.values).ravel()[: len(numbers)]
    return sorted(numbers[priorities > 0].tolist())


MOST = 500


def add_number(buffer: Any, state: Any, number: Any, score: Any) -> Any:
    """Add a transition that is known by its number; every fifth ends its episode."""
    transition = (number, jnp.stack([number % 7, number % 3]).astype(jnp.float32))
    return add(buffer, state, transition, number % 5 == 4, score)


def fill(buffer: Any, key: Any, numbers: Any, scores: Any) -> Any:
    """The state after adding the transitions with these numbers."""
    # Of one length, so that a buffer's program is compiled once.
    longer = [jnp.pad(column, (0, max(MOST - len(column), 0))) for column in (numbers, scores)]
    return _fill(buffer, key, *longer, jnp.asarray(len(numbers)))


@eqx.filter_jit
def _fill(buffer: Any, key: Any, numbers: Any, scores: Any, number: Any) -> Any:
    state = buffer.init((numbers[0], jnp.zeros(2)), key)
    step = lambda at, state: add_number(buffer, state, numbers[at], scores[at])  # noqa: E731
    return jax.lax.fori_loop(0, number, step, state)
