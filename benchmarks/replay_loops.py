"""Replay buffers inside a compiled loop: what they are fed, and how their steps are timed.

Needs nothing but JAX, Equinox and NumPy, so that it also runs on a machine with an accelerator and
little else. Everything random is drawn before the clock starts.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane.envs.episodes import rollout
from windvane.envs.minecart import Minecart
from windvane.replay.buffer import ScoredReplay
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.selective import SelectiveReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay

BATCH, INTERVAL, GAMMA = 64, 4, 0.98
SHORTEST, LONGEST = 30, 50
RULES = ("standard", "selective", "exploration", "diverse")


class Costs(NamedTuple):
    """Microseconds of one addition, of one sample with its update, and of four with one."""

    add: float
    learn: float
    cycle: float


class Piece(NamedTuple):
    """Transitions with a leading time axis, where episodes end, and scores for exploration."""

    transitions: Any
    ended: Any
    scores: Any


def make_buffer(rule: str, capacity: int) -> Any:
    """A rule's buffer; DER has room for as many trajectories of 30 steps as could fit, twice."""
    if rule == "diverse":
        signature = ReturnSignature(3, GAMMA, reward=lambda transition: transition["reward"])
        return DiverseReplay(capacity, signature, trajectories=max(capacity // SHORTEST, 8))
    kinds = {
        "standard": StandardReplay,
        "selective": SelectiveReplay,
        "exploration": ExplorationReplay,
    }
    return kinds[rule](capacity)


def piece_steps(capacity: int) -> int:
    """Additions to time at once: long enough to hold what a rule does only now and then."""
    return max(4000, capacity // 8)


def episode_ends(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Where episodes of about 40 steps end; the last step ends one, so that pieces fit together."""
    last = np.cumsum(rng.integers(SHORTEST, LONGEST + 1, steps // SHORTEST + 1)) - 1
    ended = np.zeros(steps, bool)
    ended[last[last < steps - SHORTEST]] = True
    ended[-1] = True
    return ended


def feature_pieces(seed: int, steps: int) -> Iterator[Piece]:
    """Minecart-feature transitions; rewards are fuel at every step and ores at the end."""
    rng = np.random.default_rng(seed)
    while True:
        ended = episode_ends(rng, steps)
        path = rng.uniform(-1, 1, (steps + 1, 7)).astype(np.float32)
        reward = np.zeros((steps, 3), np.float32)
        reward[:, 2] = -rng.uniform(0, 0.03, steps)
        reward[ended, :2] = rng.uniform(0, 1.5, (ended.sum(), 2))
        transitions = {
            "observation": path[:-1],
            "action": rng.integers(0, 6, steps, dtype=np.int32),
            "reward": reward,
            "next_observation": path[1:],
            "done": ended,
        }
        yield Piece(transitions, ended, rng.uniform(size=steps).astype(np.float32))


def native_pieces(seed: int, steps: int, runs: int) -> Iterator[Piece]:
    """Transitions between native Minecart states, for `runs` vmapped runs.

    All runs go through the same states, which keeps what is drawn small; rewards and ends differ.
    """
    env = Minecart()
    play_key, key = jax.random.split(jax.random.key(seed))
    played = eqx.filter_jit(rollout)(
        env, lambda _, key: jax.random.randint(key, (), 0, env.num_actions), play_key, steps
    )
    rng = np.random.default_rng(seed)
    ended = jnp.asarray(np.stack([episode_ends(rng, steps) for _ in range(runs)], axis=1))

    @jax.jit
    def draw(key: jax.Array) -> Piece:
        draws = jax.random.uniform(key, (steps, runs, 4))
        ores = 1.5 * draws[..., :2] * ended[..., None]
        transitions = {
            "before": played.state,
            "after": played.next_state,
            "action": played.action.astype(jnp.int8),
            "reward": jnp.concatenate([ores, -0.03 * draws[..., 2:3]], axis=-1),
        }
        return Piece(transitions, ended, draws[..., 3])

    number = 0
    while True:
        yield draw(jax.random.fold_in(key, number))
        number += 1


RUN_AXES = Piece({"before": None, "after": None, "action": None, "reward": 0}, 0, 0)
"""Which parts of one moment of a native piece have an axis of runs."""


class Loop:
    """One rule in compiled loops: one buffer fed with features, or `runs` vmapped ones."""

    def __init__(self, buffer: Any, pieces: Iterator[Piece], runs: int | None = None):
        self.buffer, self.pieces, self.runs = buffer, pieces, runs
        self._key = jax.random.key(0)

        def add(state: Any, item: Piece) -> Any:
            if isinstance(buffer, ScoredReplay):
                return buffer.add_scored(state, *item)
            return buffer.add(state, item.transitions, item.ended)

        def learn(state: Any, key: jax.Array) -> Any:
            batch = buffer.sample(state, key, BATCH)
            # Errors depend on all that was sampled, or reading it would be optimised away.
            parts = jax.tree.leaves(batch.transitions)
            errors = sum(jnp.abs(a.astype(jnp.float32)).reshape(BATCH, -1).mean(1) for a in parts)
            return buffer.update_priorities(state, batch.indices, errors)

        init = buffer.init
        if runs:
            add, learn = jax.vmap(add, (0, RUN_AXES)), jax.vmap(learn)
            init = jax.vmap(buffer.init, (RUN_AXES.transitions, 0))

        def cycle(state: Any, item: tuple[Piece, jax.Array]) -> Any:
            items, key = item
            return learn(_repeat(add, state, items), key)

        self._programs = {"add": _compile(add), "learn": _compile(learn), "cycle": _compile(cycle)}
        first = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), next(pieces).transitions)
        # Equal leaves may be one array, which cannot be donated twice.
        self.state = jax.tree.map(lambda leaf: leaf.copy(), init(first, self._keys(())))

    def fill(self, steps: int) -> None:
        """Add at least `steps` transitions."""
        while steps > 0:
            piece = self._piece()
            self._time("add", piece)
            steps -= len(piece.ended)

    def costs(self) -> Costs:
        """Measured once each, over as many additions as a piece has."""
        piece, other = self._piece(), self._piece()
        number = len(piece.ended) // INTERVAL
        fours = jax.tree.map(lambda a: a.reshape(number, INTERVAL, *a.shape[1:]), other)
        return Costs(
            self._time("add", piece) / len(piece.ended),
            self._time("learn", self._keys((min(number, 1000),))) / min(number, 1000),
            self._time("cycle", (fours, self._keys((number,)))) / number,
        )

    def held(self) -> float:
        """Transitions held, of all runs on average."""
        size = jax.vmap(self.buffer.size) if self.runs else self.buffer.size
        return float(np.mean(size(self.state)))

    def megabytes(self) -> float:
        """What one run's state takes."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self.state)) / (self.runs or 1) / 1e6

    def _piece(self) -> Piece:
        return jax.tree.map(jnp.asarray, next(self.pieces))

    def _keys(self, shape: tuple[int, ...]) -> jax.Array:
        self._key, key = jax.random.split(self._key)
        shape = (*shape, self.runs) if self.runs else shape
        return jax.random.split(key, shape) if shape else key

    def _time(self, program: str, items: Any) -> float:
        """Microseconds of one call, for all runs together."""
        jax.block_until_ready((items, self.state))
        began = time.perf_counter()
        self.state = jax.block_until_ready(self._programs[program](items, self.state))
        return (time.perf_counter() - began) * 1e6


def _repeat(step: Any, state: Any, items: Any) -> Any:
    return jax.lax.scan(lambda state, item: (step(state, item), None), state, items)[0]


def _compile(step: Any) -> Any:
    # The state is donated, so that it is updated in place instead of copied.
    @eqx.filter_jit(donate="all-except-first")
    def program(items: Any, state: Any) -> Any:
        return _repeat(step, state, items)

    return program
