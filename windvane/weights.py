"""The weight simplex: checking, reading and sampling weight vectors, and grids of them.

What may not live here: how weights change (see `schedules`), or anything about an environment.
"""

from itertools import combinations
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from windvane.errors import InputError, require_positive_int, shown

WeightDistribution = Literal["uniform", "normal"]
"""What random weights are drawn from; see `sample_weights`."""
SUM_TOLERANCE = 1e-4
"""How far from 1 the sum of given weights may lie: room for a few printed digits."""


def check_weights(weights: Any, num_objectives: int | None = None) -> Float[np.ndarray, " n"]:
    """Return `weights` as an array if they are a point of the simplex, else raise an InputError.

    They are not renormalised. With `num_objectives`, there must be as many.
    """
    return _check_weights("the weights", weights, num_objectives)


def parse_weights(text: str, num_objectives: int | None = None) -> Float[np.ndarray, " n"]:
    """Read weights from a command line: numbers separated by commas, such as 0.2,0.3,0.5."""
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"weights must be numbers separated by commas, such as 0.2,0.3,0.5, not {shown(text)}"
        ) from error
    return check_weights(weights, num_objectives)


def sample_weights(
    key: Key[Array, ""], num_objectives: int, distribution: WeightDistribution = "uniform"
) -> Float[Array, " objectives"]:
    """Draw weights from Dirichlet(1), the uniform distribution on the simplex, or with "normal" as
    absolute values of normal numbers divided by their sum, which are more often in the middle.

    Independent exponentials divided by their sum are uniform, and unlike a rejection sampler they
    need no loop under `jax.vmap`.
    """
    if distribution == "normal":
        sizes = jnp.abs(jax.random.normal(key, (num_objectives,)))
        return sizes / sizes.sum()
    # A uniform draw of 0 would give infinity and one of 1 could make all exponentials 0: the lower
    # bound excludes the first, and `uniform` itself the second.
    smallest = float(np.finfo(np.float32).tiny)
    exponentials = -jnp.log(jax.random.uniform(key, (num_objectives,), minval=smallest))
    return exponentials / exponentials.sum()


def simplex_grid(num_objectives: int, resolution: int) -> Float[np.ndarray, "points objectives"]:
    """Every point of the simplex whose coordinates are multiples of 1 / `resolution`.

    Points come in lexicographic order; there are (resolution + n - 1) choose (n - 1) of them.
    """
    require_positive_int("the number of objectives", num_objectives)
    require_positive_int("the resolution of a simplex grid", resolution)
    # Each way to put n-1 bars among resolution + n-1 places splits `resolution` into n counts.
    places = resolution + num_objectives - 1
    choices = list(combinations(range(places), num_objectives - 1))
    bars = np.asarray(choices, int).reshape(len(choices), num_objectives - 1)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, places)))
    return (np.diff(edges, axis=1) - 1) / resolution


def check_weight_rows(sequence: Any) -> Float[np.ndarray, "entries objectives"]:
    """Return rows of weights as an array if each is a point of the same simplex."""
    rows = list(sequence) if np.iterable(sequence) and not isinstance(sequence, str) else []
    if not rows:
        raise InputError(
            f"a weight sequence needs at least one row of weights, not {shown(sequence)}"
        )
    first = _check_weights("row 0 of the weight sequence", rows[0], None)
    others = [
        _check_weights(f"row {index} of the weight sequence", row, len(first))
        for index, row in enumerate(rows[1:], 1)
    ]
    return np.stack([first, *others])


def _check_weights(what: str, weights: Any, num_objectives: int | None) -> Float[np.ndarray, " n"]:
    try:
        given = np.asarray(weights)
        listed = weights if isinstance(weights, (list, tuple)) else given.ravel()[:1]
        real = any(jnp.issubdtype(given.dtype, kind) for kind in (np.floating, np.integer))
        # Text and truth values would become numbers without a word.
        if not real or any(isinstance(entry, (bool, np.bool_)) for entry in listed):
            raise ValueError("not numbers")
        array = given.astype(float)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} must be a list of numbers, not {shown(weights)}") from error
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{what} must be one list of numbers, not an array of shape {array.shape}")
    numbers = shown(array.tolist())
    if num_objectives is not None and array.size != num_objectives:
        raise InputError(
            f"{what} must be {num_objectives} numbers, one per objective, "
            f"and {numbers} has {array.size}"
        )
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite numbers, and {numbers} has one that is not")
    if (array < 0).any():
        raise InputError(f"{what} must be 0 or more, and {numbers} has {array.min():g}")
    with np.errstate(over="ignore"):
        total = array.sum()
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(f"{what} must sum to 1, and {numbers} sums to {total:.6g}")
    return array
