"""Optimal values: what no policy can beat, for any weights, and plans that earn it.

Deep Sea Treasure is solved at once. Minecart takes a search of a few minutes for each instance and
discount; its result is kept in a cache, and that of the paper's instance comes with the package.
"""

import hashlib
import json
import os
import reprlib
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import numpy as np
from numpy.typing import ArrayLike

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.environment import Environment
from windvane.envs.minecart import Minecart
from windvane.errors import InputError, is_number
from windvane.oracle import deep_sea_treasure, minecart
from windvane.oracle.coverage import CoverageSet
from windvane.oracle.minecart import Progress
from windvane.oracle.minecart_trips import TripPlan
from windvane.oracle.plan import Outcome, Plan, play, play_many
from windvane.oracle.scratch import Scratch
from windvane.weights import check_weights

__all__ = [
    "CoverageSet",
    "Outcome",
    "Plan",
    "coverage_set",
    "optimal_value",
    "pareto_front",
    "play",
    "play_many",
    "regret",
]

_SHIPPED = Path(__file__).parent / "data"
_REVISION = 1
"""Raised when the search changes, so that older results in caches are not used."""


def coverage_set(
    env: Environment, gamma: float, progress: Progress = lambda *_: None
) -> CoverageSet:
    """A coverage set of `env` under linear scalarisation and discount `gamma`.

    For every weight vector the best entry is optimal up to what `errors` of the result states.
    """
    gamma = check_gamma(gamma)
    if isinstance(env, DeepSeaTreasure):
        return _deep_sea_treasure(deep_sea_treasure.solve, env, gamma)
    if isinstance(env, Minecart):
        return _minecart(env, gamma, progress)
    raise InputError(
        f"there is no oracle for {type(env).__name__}; there is one for Minecart and "
        "DeepSeaTreasure"
    )


def pareto_front(env: Environment, gamma: float) -> CoverageSet:
    """All undominated values, where they are known; else the coverage set."""
    if isinstance(env, DeepSeaTreasure):
        return _deep_sea_treasure(deep_sea_treasure.pareto_front, env, check_gamma(gamma))
    return coverage_set(env, gamma)


def optimal_value(env: Environment, gamma: float, weights: ArrayLike) -> np.ndarray:
    """The scalarised value of an optimal policy, for one weight vector or a batch of them."""
    weights = _numbers("the weights", weights, env.num_objectives)
    for row in weights.reshape(-1, env.num_objectives):
        check_weights(row)
    return np.asarray((weights @ coverage_set(env, gamma).values.T).max(-1))


def regret(
    env: Environment,
    gamma: float,
    weights: ArrayLike,
    returns: ArrayLike,
) -> np.ndarray:
    """The paper's regret: the optimal value less the scalarised discounted return of an episode."""
    weights = _numbers("the weights", weights, env.num_objectives)
    returns = _numbers("the returns", returns, env.num_objectives)
    try:
        scalarised = (weights * returns).sum(-1)
    except ValueError as error:
        raise InputError(
            f"weights of shape {weights.shape} do not broadcast with returns of {returns.shape}"
        ) from error
    return optimal_value(env, gamma, weights) - scalarised


def check_gamma(gamma: Any) -> float:
    """Return `gamma` if it is a discount factor."""
    if not (is_number(gamma) and 0 < gamma <= 1):
        raise InputError(f"the discount factor must lie above 0 and be at most 1, not {gamma!r}")
    # By its digits: a 32-bit 0.98 means the 0.98 whose results are kept.
    return float(str(gamma)) if isinstance(gamma, np.floating) else float(gamma)


def cache_folder() -> Path:
    """Where results of searches are kept: `WINDVANE_CACHE`, else the user's cache folder."""
    own = os.environ.get("WINDVANE_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windvane"


def shipped_path(env: Minecart, gamma: float) -> Path:
    """Where the package itself keeps the coverage set of `env`, if it does."""
    return _SHIPPED / f"{_name(env, gamma)}.npz"


def _numbers(what: str, given: ArrayLike, num_objectives: int) -> np.ndarray:
    """Return `given` as an array of finite numbers whose last axis is that of objectives."""
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if not np.can_cast(array.dtype, float, "same_kind"):
        shown = reprlib.repr(given.tolist() if isinstance(given, np.ndarray) else given)
        raise InputError(f"{what} must be rows of real numbers of one length, not {shown}")
    if array.shape[-1:] != (num_objectives,):
        raise InputError(f"{what} must be of {num_objectives} objectives, not shape {array.shape}")
    if not np.isfinite(array).all():
        wrong = array[~np.isfinite(array)][0]
        raise InputError(f"{what} must be finite numbers, and one is {wrong}")
    return array.astype(float)


def _deep_sea_treasure(
    solve: Callable[[DeepSeaTreasure, float], CoverageSet], env: DeepSeaTreasure, gamma: float
) -> CoverageSet:
    sea_map = np.asarray(env.sea_map)
    return _sea(solve, sea_map.tobytes(), sea_map.dtype, sea_map.shape, env.time_limit, gamma)


@lru_cache(maxsize=16)
def _sea(
    solve: Callable[[DeepSeaTreasure, float], CoverageSet],
    data: bytes,
    dtype: np.dtype,
    shape: tuple[int, ...],
    time_limit: int,
    gamma: float,
) -> CoverageSet:
    # What is kept must be numbers, even where a compiled function asks.
    with jax.ensure_compile_time_eval():
        sea_map = np.frombuffer(data, dtype).reshape(shape)
        return _shared(solve(DeepSeaTreasure(sea_map, time_limit=time_limit), gamma))


def _shared(coverage: CoverageSet) -> CoverageSet:
    """The set, its values made read-only, since later calls get the same one."""
    coverage.values.setflags(write=False)
    return coverage


def _minecart(env: Minecart, gamma: float, progress: Progress) -> CoverageSet:
    name = _name(env, gamma)
    for path in (folder / f"{name}.npz" for folder in (_SHIPPED, cache_folder())):
        if path.exists():
            try:
                return _load(path, path.stat().st_mtime_ns)
            except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
                warnings.warn(f"{path} cannot be used and is computed anew: {error}", stacklevel=3)
    scratch = Scratch(cache_folder() / f"{name}.partial.json")
    result = minecart.solve(env, gamma, progress, scratch)
    try:
        result.save(cache_folder() / f"{name}.npz")
    except OSError as error:
        warnings.warn(f"the coverage set could not be cached: {error}", stacklevel=3)
    scratch.remove()
    return result


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
