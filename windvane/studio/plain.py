"""Numbers as JSON can hold them, and what they are measured in."""

import math
from typing import Any

import numpy as np

from windvane.training.config import TrainConfig

DIGITS = 6
"""Of numbers that are sent."""


def unit_of(config: TrainConfig) -> str:
    """What the page calls the unit of returns."""
    unit = f"discounted by {config.gamma:g} per step"
    scale = config.reward_scale
    return unit if scale == 1 else f"{unit}, rewards times {scale:g}"


def plain(value: Any) -> Any:
    """Arrays as lists, rounded, with null for what is not finite."""
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value
