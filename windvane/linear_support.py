"""Linear support: the weights at which a set of value vectors promises most, by geometry alone.

What may not live here: how value vectors are found.
"""

import numpy as np
from jaxtyping import Float
from scipy.spatial import HalfspaceIntersection


def corner_weights(
    values: Float[np.ndarray, "entries objectives"],
) -> Float[np.ndarray, "corners objectives"]:
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
