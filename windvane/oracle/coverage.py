"""Coverage sets: value vectors of policies of which one is optimal for every weight vector."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.spatial import HalfspaceIntersection

from windvane.oracle.plan import Plan

FORMAT = 1

Weights = Float[Array, "*batch objectives"] | Float[np.ndarray, "*batch objectives"]


@dataclass(frozen=True)
class CoverageSet:
    """Entries of a (near-)convex coverage set, each with a plan that earns its value.

    `values` has a row an entry; `plans` is one plan whose arrays have a leading axis of entries;
    `behaviours` describes each entry in words and `groups` names what it has in common with others
    that differ in details only; `errors` says what bounds the distance to the true optimum, in
    units of scalarised return where nothing else is said (see `docs/oracle.md`).
    """

    gamma: float
    values: np.ndarray
    plans: Plan
    behaviours: tuple[str, ...]
    groups: tuple[str, ...]
    errors: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def optimal_value(self, weights: Weights) -> Float[Array, "*batch"]:
        """Largest scalarised value over the entries. Pure JAX: use it inside compiled loops."""
        values = jnp.asarray(self.values, jnp.result_type(float))
        return (jnp.asarray(weights, values.dtype) @ values.T).max(-1)

    def best(self, weights: Weights) -> Int[Array, "*batch"]:
        """Index of the entry that is optimal for `weights`."""
        values = jnp.asarray(self.values, jnp.result_type(float))
        return (jnp.asarray(weights, values.dtype) @ values.T).argmax(-1)

    def plan(self, index: int) -> Plan:
        """The plan of one entry."""
        return jax.tree.map(lambda leaf: leaf[index], self.plans)

    def save(self, path: str | Path) -> None:
        """Write the set to one file that `load` reads back."""
        header = {
            "format": FORMAT,
            "gamma": self.gamma,
            "behaviours": self.behaviours,
            "groups": self.groups,
            "errors": self.errors,
        }
        leaves: dict[str, Any] = {
            f"leaf{i}": np.asarray(a) for i, a in enumerate(jax.tree.leaves(self.plans))
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, header=json.dumps(header), values=self.values, **leaves)
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written beside its place and moved there, so that nobody ever reads half a file.
        scratch = path.with_suffix(".partial")
        scratch.write_bytes(buffer.getvalue())
        scratch.replace(path)

    @staticmethod
    def load(path: str | Path, like: Plan) -> "CoverageSet":
        """Read a set whose plans are built like `like`; ValueError if it has another form."""
        # Through memory: a file that is no archive would otherwise stay open.
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as data:
            header = json.loads(str(data["header"]))
            if header.get("format") != FORMAT:
                raise ValueError(f"{path} has format {header.get('format')}, not {FORMAT}")
            arrays, structure = jax.tree.flatten(like)
            leaves = [jnp.asarray(data[f"leaf{i}"]) for i in range(len(arrays))]
            values = data["values"]
        return CoverageSet(
            header["gamma"],
            values,
            jax.tree.unflatten(structure, leaves),
            tuple(header["behaviours"]),
            tuple(header["groups"]),
            header["errors"],
        )


def stack_plans(plans: Sequence[Plan]) -> Plan:
    """One plan with a leading axis, from plans of equal shapes."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *plans)


def cover(values: np.ndarray, weights: np.ndarray, tolerance: float) -> list[int]:
    """Rows of `values` such that none of `weights` loses more than `tolerance` by using only them.

    Greedy: add the best row for the weight vector that is served worst until all are served.
    """
    scores = weights @ values.T
    best = scores.max(1)
    chosen: list[int] = []
    served = np.full(len(weights), -np.inf)
    while (gap := best - served).max() > tolerance:
        row = int(scores[gap.argmax()].argmax())
        if row in chosen:
            break
        chosen.append(row)
        served = np.maximum(served, scores[:, row])
    return chosen


def corner_weights(values: np.ndarray) -> np.ndarray:
    """Weight vectors at which the optimal entry changes in every direction, corners included.

    These are the vertices of the upper surface max_k values[k] . w over the simplex. Between them
    the surface is linear and the true optimum convex, so the surface falls short of the optimum
    most at one of them (Roijers' optimistic linear support rests on the same fact).
    """
    objectives = values.shape[1]
    if objectives == 1:
        return np.ones((1, 1))
    # Unknowns: the first n-1 weights (the last one completes the sum) and the height v.
    slopes = values[:, :-1] - values[:, -1:]
    surface = np.hstack([slopes, -np.ones((len(values), 1)), values[:, -1:]])
    nonnegative = np.hstack([-np.eye(objectives - 1), np.zeros((objectives - 1, 2))])
    total = np.append(np.ones(objectives - 1), [0.0, -1.0])
    roof = values.max() + 2.0
    lid = np.append(np.zeros(objectives - 1), [1.0, -roof])
    inside = np.append(np.full(objectives - 1, 1 / objectives), roof - 1.0)
    halfspaces = np.vstack([surface, nonnegative, total, lid])
    corners = HalfspaceIntersection(halfspaces, inside).intersections
    corners = corners[corners[:, -1] < roof - 1e-6]
    weights = np.clip(np.column_stack([corners[:, :-1], 1 - corners[:, :-1].sum(1)]), 0.0, 1.0)
    return np.unique(np.round(weights / weights.sum(1, keepdims=True), 9), axis=0)
