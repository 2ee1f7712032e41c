"""Numbers as JSON can hold them."""

import math
from typing import Any

import numpy as np

DIGITS = 6
"""Of numbers that are sent."""


def plain(value: Any) -> Any:
    """Arrays as lists, rounded, with null for what is not finite."""
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value
