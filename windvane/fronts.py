"""Fronts: the value vectors that policies reach, and the measures by which fronts are compared.

Every function takes rows of values, of which more is better. They must be in one unit: all
discounted by the same factor, and all scaled or none. Domination, hypervolume and distances are
moocore's. What may not live here: how values are reached (see `evaluation`).
"""

from typing import Any

import moocore
import numpy as np
from jaxtyping import Float, Int

from windvane.errors import InputError, shown

Values = Float[np.ndarray, "points objectives"]
Weights = Float[np.ndarray, "weights objectives"]

MARGIN = 0.1
"""How far the default reference point lies below the worst values, as a share of their range."""


def undominated(values: Any) -> Int[np.ndarray, " n"]:
    """Indices of the rows that no other row dominates; of equal rows, the first."""
    rows = _check(values)
    if len(rows) == 1:
        return np.zeros(1, int)
    return np.flatnonzero(moocore.is_nondominated(rows, maximise=True))


def reference_point(*fronts: Any) -> Float[np.ndarray, " objectives"]:
    """A point that all given values exceed: the worst of each objective less 10% of its range."""
    rows = np.concatenate([_check(front) for front in fronts])
    spread = np.ptp(rows, axis=0)
    return rows.min(0) - MARGIN * np.where(spread > 0, spread, 1.0)


def hypervolume(values: Any, reference: Any) -> float:
    """Volume between the values and a reference point; what does not exceed it adds nothing."""
    rows = _check(values)
    point = _check([reference])[0]
    if point.size != rows.shape[1]:
        raise InputError(
            f"the reference point must be {rows.shape[1]} numbers, one per objective, "
            f"not {point.size}"
        )
    return float(moocore.hypervolume(rows, ref=point, maximise=True))


def igd(values: Any, known: Any) -> float:
    """Inverted generational distance: from each known value to the nearest one, on average."""
    return float(moocore.igd(_check(values), ref=_check(known), maximise=True))


def igd_plus(values: Any, known: Any) -> float:
    """As `igd`, where being better than a known value is no distance."""
    return float(moocore.igd_plus(_check(values), ref=_check(known), maximise=True))


def expected_utility(values: Any, weights: Weights) -> float:
    """Utility of the best row for each weight vector, on average."""
    return float((weights @ _check(values).T).max(1).mean())


def maximum_utility_loss(values: Any, known: Any, weights: Weights) -> float:
    """The most that the best row falls short of the best known value, over the weight vectors."""
    return float(((weights @ _check(known).T).max(1) - (weights @ _check(values).T).max(1)).max())


def sparsity(values: Any) -> float:
    """Mean squared gap between neighbouring values, summed over objectives; 0 for one row."""
    gaps = np.diff(np.sort(_check(values), axis=0), axis=0)
    return float((gaps**2).sum() / max(len(gaps), 1))


def _check(values: Any) -> Values:
    try:
        rows = np.asarray(values, float)
    except (TypeError, ValueError):
        rows = np.zeros(0)
    if rows.ndim != 2 or rows.size == 0 or not np.isfinite(rows).all():
        raise InputError(f"values must be rows of finite numbers, not {shown(values)}")
    return rows
