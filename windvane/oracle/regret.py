"""The regret of episodes: how far their returns fall short of the optimum."""

import reprlib

import numpy as np
from numpy.typing import ArrayLike

from windvane.errors import InputError


def scalarised_regret(optimal: np.ndarray, weights: np.ndarray, returns: np.ndarray) -> np.ndarray:
    """The paper's regret: the optimal value less the scalarised return of an episode.

    `returns` are discounted and unscaled, that is in the environment's own units, and so is
    `optimal`, the optimal value for `weights`. The last axis of `weights` and `returns` is that of
    objectives; all leading axes broadcast.
    """
    return np.asarray(optimal - (weights * returns).sum(-1))


def check_broadcast(weights: np.ndarray, returns: np.ndarray) -> None:
    """Raise InputError for weights and returns that do not broadcast."""
    try:
        np.broadcast_shapes(weights.shape, returns.shape)
    except ValueError as error:
        raise InputError(
            f"weights of shape {weights.shape} do not broadcast with returns of {returns.shape}"
        ) from error


def check_vectors(what: str, given: ArrayLike, num_objectives: int) -> np.ndarray:
    """Return `given` as an array of finite numbers whose last axis is that of objectives."""
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype == bool or not np.can_cast(array.dtype, float, "same_kind"):
        shown = reprlib.repr(given.tolist() if isinstance(given, np.ndarray) else given)
        raise InputError(f"{what} must be rows of real numbers of one length, not {shown}")
    if array.shape[-1:] != (num_objectives,):
        raise InputError(f"{what} must be of {num_objectives} objectives, not shape {array.shape}")
    if not np.isfinite(array).all():
        wrong = array[~np.isfinite(array)][0]
        raise InputError(f"{what} must be finite numbers, and one is {wrong}")
    return array.astype(float)
