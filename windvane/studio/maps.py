"""What a policy does for every weight vector, beside what is optimal: computed once per policy, in
slices so that there is progress to show, and kept on the disk.
"""

import hashlib
import json
from contextlib import suppress
from typing import Any

import numpy as np

from windvane.envs.environment import Environment
from windvane.errors import InputError
from windvane.evaluation import evaluate
from windvane.files import atomic_write, read_json
from windvane.fronts import undominated
from windvane.machine import cache_folder
from windvane.oracle import coverage_set
from windvane.policy import Policy
from windvane.studio.jobs import Job, Progress
from windvane.studio.opened import Opened
from windvane.studio.plain import plain, unit_of
from windvane.weights import simplex_grid

REVISION = 1
"""Raised when maps change, so that older ones in the cache are not used."""
EPISODES = 4
"""Episodes per weight vector of a native environment; one of a Gymnasium environment."""
RESOLUTION, HOST_RESOLUTION = 24, 12
"""Of the grid for three objectives."""
LINE, HOST_LINE, STRIP = 101, 41, 21
"""Weight vectors for two objectives, and per objective for more than three."""
SLICES = 10
"""Pieces that a map is computed in."""
MAX_BYTES = 8 * 2**20


def map_weights(objectives: int, native: bool) -> tuple[np.ndarray, int | None]:
    """The weight vectors of a map, and the resolution of their grid where they are one."""
    if objectives == 1:
        return np.ones((1, 1)), None
    if objectives == 2:
        first = np.linspace(0, 1, LINE if native else HOST_LINE)
        return np.stack([first, 1 - first], 1), None
    if objectives == 3:
        resolution = RESOLUTION if native else HOST_RESOLUTION
        return simplex_grid(3, resolution), resolution
    rows = []
    for objective in range(objectives):
        for weight in np.linspace(0, 1, STRIP):
            row = np.full(objectives, (1 - weight) / (objectives - 1))
            row[objective] = weight
            rows.append(row / row.sum())
    return np.asarray(rows), None


def map_key(policy: Policy, optimum: np.ndarray | None) -> str:
    """What a map depends on, as a hash."""
    parts = [
        REVISION, EPISODES, policy.checksum, policy.config.to_json(),
        None if optimum is None else optimum.tolist(),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def compute_map(opened: Opened, progress: Progress) -> dict[str, Any]:
    """The map of a policy, from the cache or anew."""
    _wait_for(opened.optimum, progress)
    # Once: a run in progress may put another policy in its place meanwhile.
    policy, optimum = opened.policy, opened.optimum.result
    key = map_key(policy, optimum)
    path = None
    with suppress(InputError):
        path = cache_folder() / "studio" / f"{key}.json"
        found = read_json(path, most=MAX_BYTES)
        if isinstance(found, dict) and found.get("key") == key:
            return found
    found = {"key": key} | _computed(policy, optimum, progress)
    if path is not None:
        text = json.dumps(found).encode()
        with suppress(InputError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, lambda file: file.write(text))
    return found


def _wait_for(job: Job, progress: Progress) -> None:
    """Both are done by the same thread, the optimum first, so that it is finished by now."""
    progress(job.what, job.done, max(job.total, 1))
    job.finished.wait()


def _computed(policy: Policy, values: np.ndarray | None, progress: Progress) -> dict[str, Any]:
    native = isinstance(policy.world, Environment)
    rows, resolution = map_weights(policy.spec.num_objectives, native)
    episodes = EPISODES if native else 1
    returns, never_ends = _played(policy, rows, episodes, progress)
    utility = (returns * rows).sum(1)
    scale = policy.config.reward_scale
    found = {
        "objectives": list(policy.spec.objectives),
        "weights": rows,
        "resolution": resolution,
        "returns": returns,
        "utility": utility,
        "never_ends": never_ends.tolist(),
        "episodes": episodes,
        "front": returns[undominated(returns)],
        "optimal": None,
        "optimal_front": None,
        "unit": unit_of(policy.config),
    }
    if values is not None:
        best = (rows @ values.T).argmax(1)
        names, groups = _behaviours(policy, values)
        found["optimal"] = {
            "returns": values[best] * scale,
            "utility": (values[best] * scale * rows).sum(1),
            "behaviours": names,
            "behaviour": None if groups is None else groups[best],
        }
        found["optimal_front"] = values * scale
    return _all_plain(found)


def _played(
    policy: Policy, rows: np.ndarray, episodes: int, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """Mean returns, and whether no episode ended, for every row; in slices of one size, since each
    size is compiled anew.
    """
    size = -(-len(rows) // SLICES)
    padded = np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % size, axis=0)])
    parts, total = [], len(padded) * episodes
    for start in range(0, len(padded), size):
        progress("episodes", start * episodes, total)
        parts.append(
            evaluate(policy, padded[start : start + size], episodes=episodes, oracle=False)
        )
    progress("episodes", total, total)
    returns = np.concatenate([part.returns.mean(1) for part in parts])
    never = np.concatenate([part.never_ending for part in parts])
    return returns[: len(rows)], never[: len(rows)]


def _behaviours(policy: Policy, values: np.ndarray) -> tuple[list[str] | None, np.ndarray | None]:
    """What the entries of a coverage set are called, and which name each has, where they have."""
    if not isinstance(policy.world, Environment):
        return None, None
    with suppress(InputError):
        coverage = coverage_set(policy.world, policy.config.gamma)
        if np.array_equal(coverage.values, values):
            names = list(dict.fromkeys(coverage.groups))
            return names, np.asarray([names.index(group) for group in coverage.groups])
    return None, None


def _all_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _all_plain(part) for name, part in value.items()}
    return plain(value)
