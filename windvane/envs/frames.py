"""From a Gymnasium observation space to frames: what is stored, and what networks see.

What may not live here: anything that needs Gymnasium to be installed before it is called.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from windvane.errors import InputError, in_one_line
from windvane.spec import SMALLEST_IMAGE, FrameSpec

CHANNELS = (1, 2, 3, 4)
"""Numbers of channels that an image may have."""


@dataclass(frozen=True)
class FrameReader:
    """What one frame looks like, and how it is made from an observation."""

    spec: FrameSpec
    read: Callable[[Any], np.ndarray]


def frame_reader(space: Any, frame_size: int | None = None, one_hot: int = 0) -> FrameReader:
    """How observations of a space become frames.

    `frame_size` scales images to that side. A vector of whole numbers, each with at most `one_hot`
    values, becomes a vector of categories.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        layout = _image_layout(space)
        if layout is not None:
            return _image_reader(space.shape, layout, frame_size)
    if frame_size is not None:
        raise InputError(f"frame_size is for images, and the observations are {space}"[:300])
    if isinstance(space, spaces.Discrete):
        low = np.asarray([space.start])
        return _whole_numbers(space, low, low + int(space.n) - 1)
    if isinstance(space, spaces.MultiDiscrete):
        low = np.ravel(np.broadcast_to(getattr(space, "start", 0), space.nvec.shape))
        return _whole_numbers(space, low, low + np.ravel(space.nvec) - 1)
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return _category_reader(space, one_hot) or _vector_reader(space)
    return _flat_reader(space)


def _vector_reader(space: Any) -> FrameReader:
    shape = tuple(space.shape)
    size = int(np.prod(shape, dtype=int))
    dtype = "float32" if np.dtype(space.dtype).kind == "f" else "int32"
    low = np.ravel(np.asarray(getattr(space, "low", np.zeros(shape)), float))
    high = np.ravel(np.asarray(getattr(space, "high", np.ones(shape)), float))
    if dtype == "int32":
        # Bounds of whole numbers that span their type are no bounds.
        wide = (high - low) >= 2.0**31
        low, high = np.where(wide, -np.inf, low), np.where(wide, np.inf, high)
    frame = FrameSpec((size,), dtype, tuple(low.tolist()), tuple(high.tolist()))
    kind = np.dtype(dtype)

    def read(value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.shape != shape:
            raise _changed_shape(array.shape, shape)
        return array.reshape(-1).astype(kind)

    return FrameReader(frame, read)


def _category_reader(space: Any, one_hot: int) -> FrameReader | None:
    """Whole numbers with few values, such as places in a grid, as categories."""
    if np.dtype(space.dtype).kind not in "iu" or not hasattr(space, "low"):
        return None
    low, high = np.ravel(space.low), np.ravel(space.high)
    if not len(high) or (low < 0).any() or (high.astype(float) >= one_hot).any():
        return None
    return _whole_numbers(space, low, high)


def _whole_numbers(space: Any, low: np.ndarray, high: np.ndarray) -> FrameReader:
    """Categories where no number is negative, else numbers within bounds.

    Nothing is subtracted: what a policy is asked about later is what the environment returned.
    """
    shape, bounds = tuple(space.shape), (low.astype(float), high.astype(float))
    if (low < 0).any():
        frame = FrameSpec((len(low),), "int32", *(tuple(bound.tolist()) for bound in bounds))
    else:
        frame = FrameSpec((len(low),), "int32", categories=tuple((high + 1).tolist()))

    def read(value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.shape != shape:
            raise _changed_shape(array.shape, shape)
        return array.reshape(-1).astype(np.int32)

    return FrameReader(frame, read)


def _flat_reader(space: Any) -> FrameReader:
    """Spaces of several parts, such as dictionaries, as one vector."""
    from gymnasium.spaces.utils import flatten, flatten_space

    try:
        flat = flatten_space(space)
        inner = _vector_reader(flat)
    except Exception as error:
        raise InputError(
            f"observations must be Box, Discrete, MultiDiscrete, or made of these, not {space}: "
            f"{in_one_line(error)}"[:400]
        ) from error
    return FrameReader(inner.spec, lambda value: inner.read(flatten(space, value)))


def _image_layout(space: Any) -> str | None:
    """Where an image has its channels: "last", "first" or "none"; None if it is no image."""
    shape = tuple(space.shape)
    if space.dtype != np.uint8:
        return None
    if len(shape) == 2 and min(shape) >= SMALLEST_IMAGE:
        return "none"
    if len(shape) != 3:
        return None
    if shape[2] in CHANNELS and min(shape[:2]) >= SMALLEST_IMAGE:
        return "last"
    if shape[0] in CHANNELS and min(shape[1:]) >= SMALLEST_IMAGE:
        return "first"
    return None


def _image_reader(shape: tuple[int, ...], layout: str, frame_size: int | None) -> FrameReader:
    order = {"last": (0, 1, 2), "first": (1, 2, 0), "none": (0, 1)}[layout]
    height, width = (shape[axis] for axis in order[:2])
    channels = shape[order[2]] if len(order) == 3 else 1
    scaled = (height, width) if frame_size is None else (frame_size, frame_size)
    if min(scaled) < SMALLEST_IMAGE:
        raise InputError(f"frame_size must be at least {SMALLEST_IMAGE} pixels, not {frame_size}")

    def read(value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.shape != shape:
            raise _changed_shape(array.shape, shape)
        image = array.transpose(order).reshape(height, width, channels)
        return image if scaled == (height, width) else _resize(image, scaled)

    return FrameReader(FrameSpec((*scaled, channels), "uint8"), read)


def _resize(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    from PIL import Image

    planes = [
        Image.fromarray(image[..., channel]).resize((size[1], size[0]), Image.Resampling.BOX)
        for channel in range(image.shape[2])
    ]
    return np.stack([np.asarray(plane) for plane in planes], axis=-1)


def _changed_shape(found: tuple[int, ...], expected: tuple[int, ...]) -> InputError:
    return InputError(
        f"an observation has the shape {found}, and the observation space says {expected}: make "
        "the environment return what its space says"
    )
