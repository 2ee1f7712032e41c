"""Means over stretches of time, in which a stretch counts the same however many episodes end in it.

Early episodes are long and bad, so there are few of them, and a mean over episodes hardly counts
them. The paper does not say over what it takes its means.
"""

import math

import numpy as np
from jaxtyping import Float, Int

STRETCH = 200
"""Steps of a stretch: the paper's plots are smoothed by averaging over as many."""


def mean_over_time(
    ends: Int[np.ndarray, " n"], values: Float[np.ndarray, " n"], each: int = STRETCH
) -> float:
    """The mean over stretches of `each` steps of the mean of the episodes that end in them; those
    in which none ends do not count. NaN of no episode, or where a value is.
    """
    if not len(ends):
        return math.nan
    _, stretch, sizes = np.unique(
        (np.asarray(ends) - 1) // each, return_inverse=True, return_counts=True
    )
    return float(np.average(np.asarray(values, float), weights=1 / sizes[stretch]))
