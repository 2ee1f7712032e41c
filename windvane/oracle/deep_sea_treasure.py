"""Deep Sea Treasure, exactly: a shortest way to each treasure is all a policy can usefully do."""

import jax.numpy as jnp
import numpy as np

from windvane.envs.deep_sea_treasure import MOVES, DeepSeaTreasure, reachable_distances
from windvane.envs.plans import OpenLoopPlan
from windvane.oracle.coverage import CoverageSet, stack_plans


def solve(env: DeepSeaTreasure, gamma: float) -> CoverageSet:
    """All treasures that some weight vector makes optimal, by value."""
    front = pareto_front(env, gamma)
    return _subset(front, _upper_hull(front.values))


def pareto_front(env: DeepSeaTreasure, gamma: float) -> CoverageSet:
    """All treasures that no other one dominates. Time never helps, so shortest ways suffice."""
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
    ways = [[0] if goal is None else _way_to(distances, sea_map, goal) for goal, _ in kept]
    longest = max(map(len, ways))
    plans = [
        OpenLoopPlan(jnp.asarray(way + [0] * (longest - len(way))), jnp.asarray(len(way)))
        for way in ways
    ]
    groups = tuple(
        "wait for the time limit" if goal is None else f"treasure {sea_map[goal]:g} at {goal}"
        for goal, _ in kept
    )
    behaviours = tuple(
        f"{group} in {len(way)} steps" if goal else group
        for group, way, (goal, _) in zip(groups, ways, kept, strict=True)
    )
    rounding = {"rounding of the map": float(np.finfo(env.sea_map.dtype).eps * sea_map.max())}
    values = np.asarray([value for _, value in kept])
    return CoverageSet(gamma, values, stack_plans(plans), behaviours, groups, rounding)


def _undominated(values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those of distinct values that no other one dominates, by falling second coordinate."""
    front: list[tuple[float, float]] = []
    for value in sorted(values, key=lambda value: (-value[1], -value[0])):
        if not front or value[0] > front[-1][0]:
            front.append(value)
    return front


def _annuity(gamma: float, steps: int) -> float:
    return float(steps) if gamma == 1 else (1 - gamma**steps) / (1 - gamma)


def _way_to(distances: np.ndarray, sea_map: np.ndarray, goal: tuple[int, int]) -> list[int]:
    """Actions of a shortest way, found backwards along falling distances through open sea."""
    actions, place = [], goal
    while distances[place] > 0:
        for action, (down, right) in enumerate(MOVES):
            before = (place[0] - down, place[1] - right)
            if not all(0 <= b < size for b, size in zip(before, sea_map.shape, strict=True)):
                continue
            open_sea = sea_map[before] == 0
            if open_sea and distances[before] == distances[place] - 1:
                actions.append(action)
                place = before
                break
    return actions[::-1]


def _upper_hull(values: np.ndarray) -> list[int]:
    """Rows on the upper convex hull of points sorted by falling second coordinate."""
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
