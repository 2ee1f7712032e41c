"""Deep Sea Treasure, exactly: a shortest way to each treasure is all a policy can usefully do."""

import jax.numpy as jnp
import numpy as np

from windvane.envs.deep_sea_treasure import MOVES, DeepSeaTreasure, reachable_distances
from windvane.oracle.coverage import CoverageSet, stack_plans
from windvane.oracle.plan import Script


def solve(env: DeepSeaTreasure, gamma: float) -> CoverageSet:
    """All treasures that some weight vector makes optimal, by value."""
    front = pareto_front(env, gamma)
    return _subset(front, _upper_hull(front.values))


def pareto_front(env: DeepSeaTreasure, gamma: float) -> CoverageSet:
    """All treasures that no other one dominates. Time never helps, so shortest ways suffice."""
    sea_map = np.asarray(env.sea_map, float)
    distances = reachable_distances(sea_map)
    limit = env.time_limit
    entries = []
    for row, column in np.argwhere((sea_map > 0) & (distances >= 1)):
        steps = int(distances[row, column])
        if steps <= limit:
            treasure = sea_map[row, column] * gamma ** (steps - 1)
            script = _way_to(distances, sea_map, (int(row), int(column)))
            entries.append(((treasure, -_annuity(gamma, steps)), script, (int(row), int(column))))
    # Waiting for the cut costs least when every treasure is far; action 0 at the top left waits.
    entries.append(((0.0, -_annuity(gamma, limit)), [0], None))
    # Of equal treasures at equal distance one will do.
    entries = list({value: entry for entry in reversed(entries) for value in entry[:1]}.values())
    values = np.asarray([value for value, _, _ in entries])
    dominated = [
        any((other >= value).all() and (other > value).any() for other in values)
        for value in values
    ]
    kept = [entry for entry, out in zip(entries, dominated, strict=True) if not out]
    kept.sort(key=lambda entry: -entry[0][1])
    longest = max(len(script) for _, script, _ in kept)
    plans = [
        Script(jnp.asarray(script + [0] * (longest - len(script))), jnp.asarray(len(script)))
        for _, script, _ in kept
    ]
    groups = tuple(
        "wait for the time limit" if place is None else f"treasure {sea_map[place]:g} at {place}"
        for _, _, place in kept
    )
    behaviours = tuple(
        f"{group} in {len(script)} steps" if place else group
        for group, (_, script, place) in zip(groups, kept, strict=True)
    )
    rounding = {"rounding of the map": float(np.finfo(env.sea_map.dtype).eps * sea_map.max())}
    values = np.asarray([value for value, _, _ in kept])
    return CoverageSet(gamma, values, stack_plans(plans), behaviours, groups, rounding)


def _annuity(gamma: float, steps: int) -> float:
    return float(steps) if gamma == 1 else (1 - gamma**steps) / (1 - gamma)


def _way_to(distances: np.ndarray, sea_map: np.ndarray, goal: tuple[int, int]) -> list[int]:
    """Actions of a shortest way, found backwards along falling distances through open sea."""
    script, place = [], goal
    while distances[place] > 0:
        for action, (down, right) in enumerate(MOVES):
            before = (place[0] - down, place[1] - right)
            if not all(0 <= b < size for b, size in zip(before, sea_map.shape, strict=True)):
                continue
            open_sea = sea_map[before] == 0
            if open_sea and distances[before] == distances[place] - 1:
                script.append(action)
                place = before
                break
    return script[::-1]


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
