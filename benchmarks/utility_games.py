"""The problems of `benchmarks.time_to_utility`: what is optimal in them, and greedy play.

All contenders are judged here, in MO-Gymnasium's own environments, in the same way.
"""

import copy
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium
import mo_gymnasium
import numpy as np

WEIGHTS, FEW = 1_000, 200
"""Weight vectors that the last policy is judged by, and those before it."""
Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Actions for a batch of observations with a weight vector each."""


@dataclass(frozen=True)
class Game:
    """A problem. `limit` ends greedy episodes that would not end: the environment's own limit, or
    where episodes never reach one, or where a discount of 0.001 leaves nothing to come.
    """

    gamma: float
    limit: int
    optimum: str


GAMES = {
    "minecart-v0": Game(0.98, 350, "Windvane's oracle, whose error is in results/oracle.md"),
    "deep-sea-treasure-v0": Game(0.99, 100, "the environment's own front"),
    "four-room-v0": Game(0.99, 200, "a search of all orders of the 12 things to collect"),
    "fruit-tree-v0": Game(0.99, 200, "the environment's own front"),
}
# Box rounds its bounds to 32 bits and says so.
gymnasium.logger.min_level = gymnasium.logger.ERROR


def make(name: str) -> gymnasium.Env:
    """MO-Gymnasium's environment as `make` gives it, with its time limit."""
    return mo_gymnasium.make(name)


def objectives(name: str) -> int:
    """How many entries a reward has."""
    return int(make(name).unwrapped.reward_space.shape[0])  # type: ignore[attr-defined]


def weight_vectors(name: str) -> np.ndarray:
    """Uniformly random over the simplex, and the same for all."""
    return np.random.default_rng(1).dirichlet(np.ones(objectives(name)), WEIGHTS)


def optimal_utilities(name: str, weights: np.ndarray) -> np.ndarray:
    """The best expected discounted utility for each weight vector."""
    gamma = GAMES[name].gamma
    if name == "four-room-v0":
        return four_room_optimum(gamma, weights)
    if name == "minecart-v0":
        import windvane

        return windvane.optimal_value(windvane.Minecart(observation="features"), gamma, weights)
    env: Any = make(name).unwrapped
    return (weights @ np.asarray(env.pareto_front(gamma=gamma)).T).max(1)


def four_room_optimum(gamma: float, weights: np.ndarray) -> np.ndarray:
    """Things are worth nothing or more and stay collected, so an optimal episode collects some of
    them in some order on shortest ways and goes to the goal. All orders, by dynamic programming.
    """
    maze = make("four-room-v0").unwrapped.maze  # type: ignore[attr-defined]
    things = [tuple(cell) for cell in np.argwhere(np.isin(maze, ("1", "2", "3"))).tolist()]
    kinds = np.asarray([int(maze[thing]) - 1 for thing in things])
    goal, start = (tuple(np.argwhere(maze == mark)[0].tolist()) for mark in "G_")
    far = {cell: _distances(maze, cell) for cell in (*things, start)}
    # Discounts of the reward at the end of a way, and of all that follows it.
    at = np.asarray([[far[a][b] for b in things] for a in (*things, start)], float)
    home = np.asarray([far[a][goal] for a in (*things, start)], float)
    count, found = len(things), []
    for rows in np.array_split(weights, max(len(weights) // 250, 1)):
        worth = rows.T[kinds].astype(np.float32)
        # values[S, i]: what is still to come at thing i (the last: the start) with S collected.
        values = np.zeros((2**count, count + 1, len(rows)), np.float32)
        for mask in range(2**count - 1, -1, -1):
            best = np.repeat(gamma ** (home - 1)[:, None], len(rows), 1)
            for thing in range(count):
                if not mask >> thing & 1:
                    after = values[mask | 1 << thing, thing]
                    gain = (gamma ** (at[:, thing] - 1))[:, None] * (worth[thing] + gamma * after)
                    np.maximum(best, gain, out=best)
            values[mask] = best
        found.append(values[0, count])
    return np.concatenate(found).astype(float)


def _distances(maze: np.ndarray, start: tuple[int, int]) -> dict[tuple[int, int], int]:
    """Steps to every cell; nobody passes the goal."""
    found, queue = {start: 0}, [start]
    for cell in queue:
        if maze[cell] == "G":
            continue
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            there = (cell[0] + down, cell[1] + right)
            inside = all(0 <= place < size for place, size in zip(there, maze.shape, strict=True))
            if inside and maze[there] != "X" and there not in found:
                found[there] = found[cell] + 1
                queue.append(there)
    return found


class Arena:
    """Copies of an environment, one per weight vector, that play greedily in lockstep."""

    def __init__(self, name: str, weights: np.ndarray):
        self.game, self.weights = GAMES[name], weights
        first: Any = make(name)
        # Copies of Minecart share the mines, which nothing changes and which are slow to make.
        mines = getattr(first.unwrapped, "mines", None)
        self._envs = [copy.deepcopy(first, {id(mines): mines}) for _ in weights]

    def play(self, act: Act, number: int) -> tuple[np.ndarray, float]:
        """Discounted utilities of the first so many weight vectors, one episode each, and the share
        of episodes that did not end.
        """
        with own_randomness():
            # Minecart draws ore from NumPy's global generator, not from its own.
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            return self._play(act, number)

    def _play(self, act: Act, number: int) -> tuple[np.ndarray, float]:
        seen = [env.reset(seed=index)[0] for index, env in enumerate(self._envs[:number])]
        utilities, open_ = np.zeros(len(seen)), np.arange(len(seen))
        truncations, discount = 0, 1.0
        for _ in range(self.game.limit):
            actions = act(np.stack([seen[index] for index in open_]), self.weights[open_])
            left = []
            for index, action in zip(open_.tolist(), actions.tolist(), strict=True):
                seen[index], reward, ended, truncated, _ = self._envs[index].step(action)
                utilities[index] += discount * float(self.weights[index] @ np.asarray(reward))
                if not (ended or truncated):
                    left.append(index)
                truncations += bool(truncated and not ended)
            open_, discount = np.asarray(left, int), discount * self.game.gamma
            if not left:
                break
        return utilities, (truncations + len(open_)) / len(seen)


@contextmanager
def own_randomness() -> Iterator[None]:
    """Leave the global generators as they were, so that looking changes no training."""
    kept, numpy_kept = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch: Any = sys.modules.get("torch")
    torch_kept = torch.get_rng_state() if torch else None
    try:
        yield
    finally:
        random.setstate(kept)
        np.random.set_state(numpy_kept)  # noqa: NPY002
        if torch:
            torch.set_rng_state(torch_kept)
