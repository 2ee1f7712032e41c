"""Optimal values: what no policy can beat, for any weights, and plans that earn it.

Deep Sea Treasure is solved at once. Minecart takes a search of a few minutes for each instance and
discount; its result is cached, and that of the paper's instance comes with the package. A custom
environment has a method `coverage_set`, or its class an entry in `ORACLES`.
"""

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.environment import Environment
from windvane.envs.minecart import Minecart
from windvane.envs.plans import EpisodeResult, Plan, rollout_episode, rollout_episodes
from windvane.errors import InputError, is_number, shown
from windvane.files import path_exists
from windvane.machine import cache_folder
from windvane.oracle import deep_sea_treasure, minecart
from windvane.oracle.coverage import CoverageSet
from windvane.oracle.minecart import Progress
from windvane.oracle.minecart_trips import TripPlan
from windvane.oracle.regret import check_broadcast, check_vectors, scalarised_regret
from windvane.oracle.search_cache import SearchCache
from windvane.weights import check_weights

SEARCHING = (
    "searching for what is optimal, which takes a few minutes for a new instance of Minecart; the "
    "result is kept"
)
"""What to say before `coverage_set` first tells of its progress."""

__all__ = [
    "ORACLES",
    "PARETO_FRONTS",
    "CoverageSet",
    "EpisodeResult",
    "Plan",
    "coverage_set",
    "optimal_value",
    "pareto_front",
    "regret",
    "rollout_episode",
    "rollout_episodes",
]

Solver = Callable[[Any, float, Progress], CoverageSet]

_SHIPPED = Path(__file__).parent / "data"
_REVISION = 1
"""Raised when the search changes, so that older results in caches are not used."""


def coverage_set(
    env: Environment, gamma: float, progress: Progress = lambda *_: None
) -> CoverageSet:
    """A coverage set of `env` under linear scalarisation and discount `gamma`.

    For every weight vector the best entry is optimal up to what `errors` of the result states.
    A custom environment may have a method `coverage_set(gamma, progress)`, or its class an entry in
    `ORACLES`.
    """
    gamma = check_gamma(gamma)
    custom = getattr(env, "coverage_set", None)
    if custom is not None:
        return _check_custom(env, custom(gamma, progress))
    solve = _registered(ORACLES, env)
    if solve is None:
        known = " and ".join(kind.__name__ for kind in ORACLES)
        raise InputError(f"there is no oracle for {type(env).__name__}; there is one for {known}")
    return solve(env, gamma, progress)


def pareto_front(env: Environment, gamma: float) -> CoverageSet:
    """All undominated values, where they are known; else the coverage set."""
    solve = _registered(PARETO_FRONTS, env)
    return coverage_set(env, gamma) if solve is None else solve(env, check_gamma(gamma), _silent)


def optimal_value(env: Environment, gamma: float, weights: ArrayLike) -> np.ndarray:
    """The scalarised value of an optimal policy, for one weight vector or a batch of them."""
    weights = check_vectors("the weights", weights, env.num_objectives)
    for row in weights.reshape(-1, env.num_objectives):
        check_weights(row)
    return np.asarray((weights @ coverage_set(env, gamma).values.T).max(-1))


def regret(
    env: Environment,
    gamma: float,
    weights: ArrayLike,
    returns: ArrayLike,
) -> np.ndarray:
    """The paper's regret: the optimal value less the scalarised return of an episode.

    `returns` are discounted by `gamma` and unscaled: in the environment's own units, whatever
    `reward_scale` an agent was trained with.
    """
    weights = check_vectors("the weights", weights, env.num_objectives)
    returns = check_vectors("the returns", returns, env.num_objectives)
    check_broadcast(weights, returns)  # first, since the optimal value may take minutes
    return scalarised_regret(optimal_value(env, gamma, weights), weights, returns)


def check_gamma(gamma: Any) -> float:
    """Return `gamma` if it is a discount factor."""
    if not (is_number(gamma) and 0 < gamma <= 1):
        raise InputError(
            f"the discount factor must lie above 0 and be at most 1, not {shown(gamma)}"
        )
    # Via its digits, so that a float32 0.98 finds the results that are cached for 0.98.
    return float(str(gamma)) if isinstance(gamma, np.floating) else float(gamma)


def shipped_path(env: Minecart, gamma: float) -> Path:
    """Path of the coverage set of `env` that comes with the package, if one does."""
    return _SHIPPED / f"{_name(env, gamma)}.npz"


def _registered(solvers: dict[type, Solver], env: Environment) -> Solver | None:
    """The solver of the environment's class, or of the nearest class that it derives from."""
    return next((solvers[kind] for kind in type(env).__mro__ if kind in solvers), None)


def _silent(what: str, done: int, total: int) -> None:
    del what, done, total


def _check_custom(env: Environment, coverage: object) -> CoverageSet:
    """Return what an environment's method returned, if it is a coverage set of that environment."""
    name = type(env).__name__
    if not isinstance(coverage, CoverageSet):
        raise InputError(f"{name}.coverage_set must return a CoverageSet, not {shown(coverage)}")
    shape = np.shape(coverage.values)
    if len(shape) != 2 or shape[0] == 0 or shape[1] != env.num_objectives:
        raise InputError(
            f"the values of {name}.coverage_set must be rows of {env.num_objectives} objectives, "
            f"not of shape {shape}"
        )
    if not np.isfinite(coverage.values).all():
        raise InputError(f"the values of {name}.coverage_set must be finite numbers")
    return coverage


def _deep_sea_treasure(
    solve: Callable[[DeepSeaTreasure, float], CoverageSet],
    env: DeepSeaTreasure,
    gamma: float,
    progress: Progress,
) -> CoverageSet:
    del progress
    sea_map = np.asarray(env.sea_map)
    return _solve_cached(
        solve, sea_map.tobytes(), sea_map.dtype, sea_map.shape, env.time_limit, gamma
    )


@lru_cache(maxsize=16)
def _solve_cached(
    solve: Callable[[DeepSeaTreasure, float], CoverageSet],
    data: bytes,
    dtype: np.dtype,
    shape: tuple[int, ...],
    time_limit: int,
    gamma: float,
) -> CoverageSet:
    # Cached arrays must be concrete, even where a traced function asks for them.
    with jax.ensure_compile_time_eval():
        sea_map = np.frombuffer(data, dtype).reshape(shape)
        return _shared(solve(DeepSeaTreasure(sea_map, time_limit=time_limit), gamma))


def _shared(coverage: CoverageSet) -> CoverageSet:
    """The set with its values made read-only, since later calls return the same one."""
    coverage.values.setflags(write=False)
    return coverage


def _minecart(env: Minecart, gamma: float, progress: Progress) -> CoverageSet:
    name = _name(env, gamma)
    for path in (folder / f"{name}.npz" for folder in (_SHIPPED, cache_folder())):
        try:
            if path_exists(path):
                found = _load(path, path.stat().st_mtime_ns)
                _check_same(found, env, gamma)
                return found
        except (OSError, ValueError, MemoryError) as error:
            warnings.warn(f"{path} cannot be used and is computed anew: {error}", stacklevel=3)
    cache = SearchCache(cache_folder() / f"{name}.partial.json")
    result = minecart.solve(env, gamma, progress, cache)
    try:
        result.save(cache_folder() / f"{name}.npz")
    except (OSError, InputError) as error:
        warnings.warn(f"the coverage set could not be cached: {error}", stacklevel=3)
    cache.remove()
    return result


def _check_same(found: CoverageSet, env: Minecart, gamma: float) -> None:
    """Raise ValueError for a coverage set of another instance or discount."""
    if found.gamma != gamma or found.values.shape[1] != env.num_objectives:
        raise ValueError(
            f"it is for a discount of {found.gamma:g} and {found.values.shape[1]} objectives"
        )


@lru_cache(maxsize=16)
def _load(path: Path, modified: int) -> CoverageSet:
    del modified  # part of the key: a file that changed is read again
    with jax.ensure_compile_time_eval():
        return _shared(CoverageSet.load(path, TripPlan.template()))


def _name(env: Minecart, gamma: float) -> str:
    config = env.config
    mines = [asdict(mine) for mine in config.mines]
    parts = [mines, config.capacity, env.frame_skip, env.time_limit, gamma, _REVISION]
    return "minecart-" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


ORACLES: dict[type, Solver] = {
    Minecart: _minecart,
    DeepSeaTreasure: partial(_deep_sea_treasure, deep_sea_treasure.solve),
}
"""Functions of (env, gamma, progress) that compute coverage sets, by class of environment."""
PARETO_FRONTS: dict[type, Solver] = {
    DeepSeaTreasure: partial(_deep_sea_treasure, deep_sea_treasure.pareto_front),
}
"""The same for all undominated values, where they are known beyond the coverage set."""
