"""Deep Sea Treasure, exactly: an optimal policy takes a shortest path to some treasure."""

import jax.numpy as jnp
import numpy as np

from windvane.envs.deep_sea_treasure import MOVES, DeepSeaTreasure, reachable_distances
from windvane.envs.plans import OpenLoopPlan
from windvane.oracle.coverage import CoverageSet, stack_plans


def solve(env: DeepSeaTreasure, gamma: float) -> CoverageSet:
    """All treasures that are optimal for some weight vector."""
    front = pareto_front(env, gamma)
    return _subset(front, _upper_hull(front.values))


def pareto_front(env: DeepSeaTreasure, gamma: float) -> CoverageSet:
    """All treasures that no other one dominates. Time only costs, so shortest paths suffice."""
    sea_map = np.asarray(env.sea_map, float)
    distances = reachable_distances(sea_map)
    limit = env.time_limit
    goals: dict[tuple[float, float], tuple[int, int] | None] = {}
    for row, column in np.argwhere((sea_map > 0) & (distances >= 1)).tolist():
        steps = int(distances[row, column])
        if steps <= limit:
            treasure = sea_map[row, column] * gamma ** (steps - 1)
            # Of equal treasures at equal distance one will do.
            goals.setdefault((treasure, -_annuity(gamma, steps)), (row, column))
    # Waiting for the time limit costs least when every treasure is far; action 0, up, waits.
    goals.setdefault((0.0, -_annuity(gamma, limit)), None)
    kept = [(goals[value], value) for value in _undominated(list(goals))]
    paths = [[0] if goal is None else _path_to(distances, sea_map, goal) for goal, _ in kept]
    longest = max(map(len, paths))
    plans = [
        OpenLoopPlan(jnp.asarray(path + [0] * (longest - len(path))), jnp.asarray(len(path)))
        for path in paths
    ]
    groups = tuple(
        "wait for the time limit" if goal is None else f"treasure {sea_map[goal]:g} at {goal}"
        for goal, _ in kept
    )
    behaviours = tuple(
        f"{group} in {len(path)} steps" if goal else group
        for group, path, (goal, _) in zip(groups, paths, kept, strict=True)
    )
    rounding = {"rounding of the map": float(np.finfo(env.sea_map.dtype).eps * sea_map.max())}
    values = np.asarray([value for _, value in kept])
    return CoverageSet(gamma, values, stack_plans(plans), behaviours, groups, rounding)


def _undominated(values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The undominated ones of distinct values, by decreasing second coordinate."""
    front: list[tuple[float, float]] = []
    for value in sorted(values, key=lambda value: (-value[1], -value[0])):
        if not front or value[0] > front[-1][0]:
            front.append(value)
    return front


def _annuity(gamma: float, steps: int) -> float:
    return float(steps) if gamma == 1 else (1 - gamma**steps) / (1 - gamma)


def _path_to(distances: np.ndarray, sea_map: np.ndarray, goal: tuple[int, int]) -> list[int]:
    """Actions of a shortest path, found backwards along decreasing distances through open sea."""
    actions, cell = [], goal
    while distances[cell] > 0:
        for action, (down, right) in enumerate(MOVES):
            before = (cell[0] - down, cell[1] - right)
            if not all(0 <= b < size for b, size in zip(before, sea_map.shape, strict=True)):
                continue
            open_sea = sea_map[before] == 0
            if open_sea and distances[before] == distances[cell] - 1:
                actions.append(action)
                cell = before
                break
    return actions[::-1]


def _upper_hull(values: np.ndarray) -> list[int]:
    """Rows on the upper convex hull of points sorted by decreasing second coordinate."""
    hull: list[int] = []
    for index, (x, y) in enumerate(values):
        while len(hull) >= 2:
            (x1, y1), (x2, y2) = values[hull[-2]], values[hull[-1]]
            if (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) < 0:
                break
            hull.pop()
        hull.append(index)
    return hull


def _subset(front: CoverageSet, rows: list[int]) -> CoverageSet:
    plans = stack_plans([front.plan(row) for row in rows])
    behaviours, groups = (
        tuple(names[row] for row in rows) for names in (front.behaviours, front.groups)
    )
    return CoverageSet(front.gamma, front.values[rows], plans, behaviours, groups, front.errors)
