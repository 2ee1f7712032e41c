"""Replay buffers called from a Python program: ours through `HostReplay`, and two peers.

All are fed the same transitions and asked for the same: NumPy arrays of a batch, and new
priorities for it. What each expects of its caller is prepared before the clock starts.
"""

import gc
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from benchmarks.replay_loops import BATCH, GAMMA, INTERVAL, Costs, Piece, feature_pieces
from windvane.replay.buffer import ScoredReplay
from windvane.replay.host import HostReplay

CYCLES = 500
"""Cycles timed at once: some fifty trajectories."""
FIELDS = ("observation", "action", "reward", "next_observation", "done")


class Contender(Protocol):
    """A buffer behind the calls that a learner makes."""

    def prepare(self, piece: Piece) -> list[Any]:
        """Transitions as `add` takes them."""
        ...

    def add(self, item: Any) -> None:
        """Add a transition."""
        ...

    def learn(self, errors: np.ndarray) -> Any:
        """Sample a batch as arrays, and give it new priorities."""
        ...


def rows(piece: Piece) -> list[tuple[Any, ...]]:
    """The fields of every transition."""
    return list(zip(*(piece.transitions[field] for field in FIELDS), strict=True))


class Ours:
    """A rule of ours on the host. Scores cost nothing here, as an agent's networks are not ours."""

    def __init__(self, buffer: Any):
        first = next(feature_pieces(0, 100))
        example = dict(zip(FIELDS, rows(first)[0], strict=True))
        options = {}
        if isinstance(buffer, ScoredReplay):
            options = {"score": lambda leaving: leaving["next_observation"][:, 0]}
        self.replay = HostReplay(buffer, example, **options)

    def prepare(self, piece: Piece) -> list[Any]:
        """Dictionaries, and whether an episode ends."""
        dictionaries = [dict(zip(FIELDS, row, strict=True)) for row in rows(piece)]
        return list(zip(dictionaries, piece.ended.tolist(), strict=True))

    def add(self, item: Any) -> None:
        """As a learner calls it."""
        self.replay.add(*item)

    def learn(self, errors: np.ndarray) -> Any:
        """As a learner calls it."""
        batch, indices, _ = self.replay.sample(BATCH)
        self.replay.update_priorities(indices, errors)
        return batch


class PeerPrioritised:
    """morl-baselines' `PrioritizedReplayBuffer`: the newest transitions."""

    def __init__(self, capacity: int):
        from morl_baselines.common.prioritized_buffer import PrioritizedReplayBuffer

        self.replay = PrioritizedReplayBuffer(
            (7,), 1, rew_dim=3, max_size=capacity, action_dtype=np.int32
        )

    def prepare(self, piece: Piece) -> list[Any]:
        """Fields in the order that `add` takes them."""
        return rows(piece)

    def add(self, item: Any) -> None:
        """As new it gets the highest priority."""
        self.replay.add(*item)

    def learn(self, errors: np.ndarray) -> Any:
        """It leaves the formula of priorities to its caller; this is the paper's."""
        batch = self.replay.sample(BATCH)
        self.replay.update_priorities(batch.idxes, (errors + 0.01) ** 2)
        return batch


class PeerDiverse:
    """morl-baselines' `DiverseMemory`, mended: half the newest, half diverse trajectories.

    It calls a function of the caller's for the value of every trajectory it holds, again and again:
    each return is computed once and then remembered.
    """

    def __init__(self, capacity: int):
        from morl_baselines.common import diverse_buffer

        # As shipped this function raises a TypeError as soon as the diverse half is full.
        diverse_buffer.crowd_dist = crowding_distances
        half = capacity // 2
        self.replay = diverse_buffer.DiverseMemory(
            capacity - half, half, value_function=self._value
        )
        self._values: dict[int, np.ndarray] = {}
        self._discounts = GAMMA ** np.arange(capacity)
        self._episode = 0

    def prepare(self, piece: Piece) -> list[Any]:
        """Fields, and the number of the trajectory."""
        episodes = self._episode + np.cumsum(piece.ended) - piece.ended
        self._episode = int(episodes[-1]) + 1
        return list(zip(rows(piece), episodes.tolist(), strict=True))

    def add(self, item: Any) -> None:
        """It wants an error for new transitions too."""
        transition, episode = item
        self.replay.add(1.0, transition, trace_id=episode)

    def learn(self, errors: np.ndarray) -> Any:
        """It returns tuples, which are stacked as a learner needs them, and updates one by one."""
        indices, transitions, _ = self.replay.sample(BATCH)
        batch = [np.stack(column) for column in zip(*transitions, strict=True)]
        for index, error in zip(indices, errors, strict=True):
            self.replay.update(index, error)
        return batch

    def _value(self, trajectory: Any, episode: int, indices: Any) -> np.ndarray:
        del indices
        if episode not in self._values:
            rewards = np.stack([transition[2] for transition in trajectory])
            self._values[episode] = self._discounts[: len(rewards)] @ rewards
        return self._values[episode]


def crowding_distances(points: list[np.ndarray]) -> np.ndarray:
    """NSGA-II's crowding distances, with NumPy."""
    values = np.asarray(points)
    total = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        gaps = np.full(len(column), np.inf)
        gaps[1:-1] = (ordered[2:] - ordered[:-2]) / (ordered[-1] - ordered[0])
        total[order] += gaps
    return total


class HostMeter:
    """Fills one contender and times it on pieces of its own; all get the same ones."""

    def __init__(self, contender: Contender):
        self.contender = contender
        self._pieces = feature_pieces(1, CYCLES * INTERVAL)
        self._errors = np.random.default_rng(2).exponential(size=(CYCLES, BATCH))

    def fill(self, steps: int) -> None:
        """Add at least `steps` transitions, then learn a little, so that all is compiled."""
        while steps > 0:
            for item in self.contender.prepare(next(self._pieces)):
                self.contender.add(item)
            steps -= CYCLES * INTERVAL
        for errors in self._errors[:50]:
            self.contender.learn(errors)

    def costs(self) -> Costs:
        """A cycle is four additions and a sample; what it costs more than a sample is theirs.

        So an addition pays for the work that a buffer puts off until the next sample.
        """
        items = self.contender.prepare(next(self._pieces))
        add, learn = self.contender.add, self.contender.learn

        def cycles() -> None:
            for index, errors in enumerate(self._errors):
                for item in items[index * INTERVAL : (index + 1) * INTERVAL]:
                    add(item)
                learn(errors)

        def samples() -> None:
            for errors in self._errors:
                learn(errors)

        cycle, sample = (_time(work) / CYCLES for work in (cycles, samples))
        return Costs((cycle - sample) / INTERVAL, sample, cycle)


def _time(work: Callable[[], None]) -> float:
    """Microseconds, without Python's collector: it would visit what all contenders hold."""
    gc.disable()
    began = time.perf_counter()
    work()
    elapsed = time.perf_counter() - began
    gc.enable()
    return elapsed * 1e6
