"""Minecart's coverage set: the best trips for every weight vector, and what bounds the error.

Routes are searched exactly, trips evaluated at a grid of weights, and the set is then completed
at its corner weights until no trip beats it there by more than the tolerance.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import norm

from windvane.envs.minecart import ACCELERATE, MINE, NONE, Minecart
from windvane.linear_support import corner_weights
from windvane.oracle.coverage import CoverageSet, cover, stack_plans
from windvane.oracle.minecart_routes import Route, RouteFinder, Stop
from windvane.oracle.minecart_trips import MOST_MINING, Trip, TripEvaluator
from windvane.oracle.search_cache import SearchCache
from windvane.weights import simplex_grid

TOLERANCE = 1e-4
"""Scalarised value that the coverage set may lose to stay small."""
SCOUT_PATHS, CHECK_PATHS, FINAL_PATHS = 256, 4096, 131_072
"""Sampled mining paths per trip: to find candidates, to compare them, and for the final values."""
NEAR = 0.02
"""A trip that is this far below the best at all grid weights is dropped."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def solve(
    env: Minecart,
    gamma: float,
    progress: Progress = lambda *_: None,
    cache: SearchCache | None = None,
) -> CoverageSet:
    """Search routes, evaluate trips over a grid of weights, and keep a coverage set.

    Results of an interrupted search are taken from `cache`.
    """
    finder = RouteFinder(env, gamma)
    routes = list(dict.fromkeys(_single_routes(env, finder, progress, cache or SearchCache())))
    trips = _trips(env, finder, routes, progress)
    weights = simplex_grid(env.num_objectives, _resolution(env.num_objectives))
    optimal = _best_scores(TripEvaluator(env, gamma, trips), weights, SCOUT_PATHS)
    tours = list(dict.fromkeys(_tours(env, finder, weights, optimal, progress)))
    trips += _trips(env, finder, tours, progress)

    evaluator = TripEvaluator(env, gamma, trips)
    chosen, gap = _complete(evaluator, weights, progress)
    entries = []
    for done, (trip, own) in enumerate(chosen):
        progress("evaluating the coverage set", done, len(chosen))
        entries.append(evaluator.entry(trip, own, FINAL_PATHS))
    progress("evaluating the coverage set", len(chosen), len(chosen))
    entries.sort(key=lambda entry: (entry.group, -entry.value[-1]))
    values = np.stack([entry.value for entry in entries])
    optimal = (weights @ values.T).max(1)
    errors = {
        "left out at corner weights": gap,
        "sampling (3 standard errors)": 3 * max(entry.standard_error for entry in entries),
        "trips to three mines, bound": _three_mine_bound(env, finder, weights, optimal),
        "routes not proven shortest (a count)": float(sum(not r.proven for r in routes + tours)),
    }
    return CoverageSet(
        gamma,
        values,
        stack_plans([entry.plan for entry in entries]),
        tuple(entry.behaviour for entry in entries),
        tuple(entry.group for entry in entries),
        errors,
    )


def rectified_means(env: Minecart) -> np.ndarray:
    """Mean of each ore that a frame of mining yields: the normal draw rectified at 0."""
    mean, deviation = np.asarray(env.ore_means, float), np.asarray(env.ore_deviations, float)
    safe = np.where(deviation > 0, deviation, 1.0)
    smooth = mean * norm.cdf(mean / safe) + deviation * norm.pdf(mean / safe)
    return np.where(deviation > 0, smooth, np.maximum(mean, 0.0))


def _resolution(objectives: int) -> int:
    """Resolution at which a simplex grid has some hundreds of points."""
    resolution = 1
    while math.comb(resolution + objectives, objectives - 1) <= 700:
        resolution += 1
    return resolution


def _steps_to_fill(env: Minecart) -> np.ndarray:
    hauls = rectified_means(env).sum(1) * env.frame_skip
    return float(env.capacity) / np.maximum(hauls, 1e-9)


def _single_routes(
    env: Minecart, finder: RouteFinder, progress: Progress, cache: SearchCache
) -> Iterator[Route]:
    for accelerations in range(1, 4):
        yield from finder.without_mining(accelerations)
    fill = _steps_to_fill(env)
    choices = range(1, finder.max_accelerations + 1)
    budgets = [(home, out) for home in choices for out in choices]
    total = len(fill) * len(budgets)
    for mine, steps_to_fill in enumerate(fill):
        found = _cached_routes(env, cache, mine)
        for done, (home, out) in enumerate([] if found else budgets):
            progress("searching routes", mine * len(budgets) + done, total)
            for steps in {math.floor(steps_to_fill), math.ceil(steps_to_fill)}:
                stop = Stop(mine, min(max(1, steps), MOST_MINING))
                found += finder.to_mine(stop, out, home)
        cache.put(_entry_name(mine), [route.to_json() for route in found])
        yield from found
    progress("searching routes", total, total)


def _entry_name(mine: int) -> str:
    return f"mine {mine}"


def _cached_routes(env: Minecart, cache: SearchCache, mine: int) -> list[Route]:
    """Routes of an interrupted search; none if the cache holds anything else."""
    try:
        found = [Route.from_json(data) for data in cache.get(_entry_name(mine)) or []]
    except (TypeError, ValueError):
        return []
    actions = range(env.num_actions)
    known = all(
        [stop.mine for stop in route.stops] == [mine]
        and all(action in actions for action in (*route.out, *route.home))
        for route in found
    )
    return found if known else []


def _trips(
    env: Minecart, finder: RouteFinder, routes: list[Route], progress: Progress
) -> list[Trip]:
    """Group routes by their way out, and add every other way home from there."""
    trips = [Trip((), r.out, ()) for r in routes if not r.stops]
    if trips:
        trips.append(Trip((), (), ()))
    ways_out = {(r.stops[-1].mine, r.out): r for r in routes if r.stops}
    for done, ((mine, out), route) in enumerate(ways_out.items()):
        progress("searching ways home", done, len(ways_out))
        homes = {r.home for r in routes if r.stops and (r.stops[-1].mine, r.out) == (mine, out)}
        for accelerations in range(1, finder.max_accelerations + 1):
            homes |= {other.home for other in finder.home_from(route, accelerations)}
        homes = {home for home in homes if len(out) + 1 + len(home) <= env.time_limit}
        if homes:
            trips.append(Trip(route.stops, out, tuple(sorted(homes))))
    progress("searching ways home", len(ways_out), len(ways_out))
    return trips


def _best_scores(evaluator: TripEvaluator, weights: np.ndarray, paths: int) -> np.ndarray:
    values = (evaluator.values(trip, weights, paths) for trip in evaluator.trips)
    return np.max([(value * weights).sum(1) for value in values], axis=0)


def _complete(
    evaluator: TripEvaluator, weights: np.ndarray, progress: Progress
) -> tuple[list[tuple[Trip, np.ndarray]], float]:
    """Trips with the weights of their rules, and the largest loss at corner weights."""
    rough = np.stack([evaluator.values(trip, weights, SCOUT_PATHS) for trip in evaluator.trips])
    scores = (rough * weights).sum(-1)
    near = [
        t for t, s in zip(evaluator.trips, scores, strict=True) if (s > scores.max(0) - NEAR).any()
    ]

    def best_at(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = []
        for done, trip in enumerate(near):
            progress("evaluating trips", done, len(near))
            values.append(evaluator.values(trip, points, CHECK_PATHS))
        progress("evaluating trips", len(near), len(near))
        stacked = np.stack(values)
        winners = (stacked * points).sum(-1).argmax(0)
        return winners, stacked[winners, np.arange(len(points))]

    winners, reached = best_at(weights)
    rows = cover(reached, weights, TOLERANCE)
    chosen = [(near[winners[row]], weights[row]) for row in rows]
    values, gaps = reached[rows], np.zeros(1)
    for _ in range(50):
        corners = corner_weights(values)
        winners, reached = best_at(corners)
        gaps = (reached * corners).sum(1) - (corners @ values.T).max(1)
        short = np.flatnonzero(gaps > TOLERANCE)
        if short.size == 0:
            break
        rows = short[cover(reached[short], corners[short], TOLERANCE)]
        chosen += [(near[winners[row]], corners[row]) for row in rows]
        values = np.vstack([values, reached[rows]])
    return chosen, float(max(gaps.max(), 0.0))


def _upper_bound(
    env: Minecart,
    gamma: float,
    weights: np.ndarray,
    mines: tuple[int, ...],
    drive: int,
    accelerations: int,
) -> np.ndarray:
    """Upper bound on the value of a trip to `mines`, given its driving steps and accelerations.

    All fuel beyond idling is charged at the very end, hauls are never cut short, and the cart
    holds nothing worse than the best of the mines.
    """
    hauls = rectified_means(env)[list(mines)] * env.frame_skip
    worth = weights[:, :-1] @ hauls.T
    full = (worth / np.maximum(hauls.sum(1), 1e-9)).max(1) * float(env.capacity)
    costs = env.fuel_costs
    best = np.full(len(weights), -np.inf)
    for mined in range(len(mines), MOST_MINING):
        steps = drive + mined
        loaded = worth.sum(1) + worth.max(1) * (mined - len(mines))
        ore = np.minimum(loaded, full) * gamma ** (steps - 1)
        idle = costs[NONE] * sum(gamma**i for i in range(steps))
        extra = accelerations * (costs[ACCELERATE] - costs[NONE])
        extra += mined * (costs[MINE] - costs[NONE])
        best = np.maximum(best, ore + weights[:, -1] * (idle + extra * gamma ** (steps - 1)))
        if (loaded >= full).all():
            break
    return best


def _tours(
    env: Minecart,
    finder: RouteFinder,
    weights: np.ndarray,
    optimal: np.ndarray,
    progress: Progress,
) -> Iterator[Route]:
    """Routes via two mines, for all pairs that could beat a trip to a single one."""
    fill = _steps_to_fill(env)
    pairs = [(a, b) for a in range(len(fill)) for b in range(len(fill)) if a != b]
    for done, pair in enumerate(pairs):
        progress("searching tours of two mines", done, len(pairs))
        bounds = finder.least_steps(pair)
        for accelerations in range(3, len(bounds)):
            limit = int(bounds[accelerations])
            ceiling = _upper_bound(env, finder.gamma, weights, pair, limit, accelerations)
            if not (ceiling > optimal + TOLERANCE).any():
                continue
            last = max(1, min(math.ceil(fill[pair[1]]), MOST_MINING) - 1)
            for early in range(1, max(2, min(math.ceil(fill[pair[0]]), 8))):
                stops = Stop(pair[0], early), Stop(pair[1], last)
                yield from finder.to_two_mines(*stops, accelerations)
    progress("searching tours of two mines", len(pairs), len(pairs))


def _three_mine_bound(
    env: Minecart, finder: RouteFinder, weights: np.ndarray, optimal: np.ndarray
) -> float:
    """Bound on how much better than `optimal` a trip with a third stop might be.

    It is as rigorous as the bounds on driving steps. Stopping once more costs at least an
    acceleration, a brake and a step of mining on top of the quickest tour of the first and the
    last stop.
    """
    mines = range(len(env.mine_positions))
    worst = 0.0
    for first in mines:
        for last in mines:
            for middle in mines:
                if middle in (first, last):
                    continue
                bounds = finder.least_steps((first, last))
                for accelerations in range(4, len(bounds)):
                    drive = int(bounds[accelerations - 1]) + 2
                    stops = (first, middle, last)
                    ceiling = _upper_bound(env, finder.gamma, weights, stops, drive, accelerations)
                    worst = max(worst, float((ceiling - optimal).max()))
    return worst
