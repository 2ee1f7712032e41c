"""What agents, networks, policies and reports know of an environment: a few plain, checked values.

What may not live here: arrays of JAX, or anything about a particular environment or library.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from windvane.errors import InputError, require_int, shown

MAX_ACTIONS = 32_767
"""Actions are stored in 16 bits."""
MAX_OBJECTIVES = 64
MAX_NAME = 100
"""Characters of an objective's name."""
MAX_ENTRIES = 2**24
"""Numbers that one frame may hold."""
MAX_STACK = 64
SMALLEST_IMAGE = 8
"""Pixels that an image must be high and wide to pass through a convolution."""

_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class FrameSpec:
    """What an agent sees at one moment: an image (height, width, channels; uint8), a vector of
    numbers, or a vector of categories.
    """

    shape: tuple[int, ...]
    """(height, width, channels) of an image, (entries,) of a vector."""
    dtype: str
    """NumPy's name of the type of an entry, such as "float32"."""
    low: tuple[float, ...] = ()
    """Smallest value of each entry of a vector, possibly -inf; empty for images and categories."""
    high: tuple[float, ...] = ()
    """Largest value of each entry of a vector, possibly inf; empty for images and categories."""
    categories: tuple[int, ...] = ()
    """For a vector of categories: how many values each entry has, counted from 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _shape(self.shape))
        object.__setattr__(self, "dtype", _dtype(self.dtype))
        for name in ("low", "high"):
            object.__setattr__(self, name, _bounds(name, getattr(self, name)))
        object.__setattr__(self, "categories", _categories(self.categories))
        if self.is_image:
            self._check_image()
        elif self.categories:
            self._check_categories()
        else:
            self._check_vector()

    @property
    def is_image(self) -> bool:
        """Whether a frame is an image rather than a vector."""
        return len(self.shape) == 3

    def _check_image(self) -> None:
        if self.dtype != "uint8":
            raise InputError(f"the dtype of an image must be uint8, not {self.dtype}")
        if self.low or self.high or self.categories:
            raise InputError("an image has neither bounds nor categories")

    def _check_categories(self) -> None:
        if np.dtype(self.dtype).kind not in "iu":
            raise InputError(f"the dtype of categories must be a whole number's, not {self.dtype}")
        if self.low or self.high:
            raise InputError("a vector of categories has no bounds")
        if len(self.categories) != self.shape[0]:
            raise InputError(
                f"a vector of {self.shape[0]} entries needs as many numbers of categories, "
                f"not {len(self.categories)}"
            )

    def _check_vector(self) -> None:
        entries = self.shape[0]
        for name, bound in (("low", self.low), ("high", self.high)):
            if len(bound) != entries:
                raise InputError(
                    f"a vector of {entries} entries needs as many {name} bounds, not {len(bound)}"
                )
        for index, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if low > high or low == math.inf or high == -math.inf:
                raise InputError(
                    f"entry {index} of a vector must have its low bound below its high one, "
                    f"and they are {low:g} and {high:g}"
                )


@dataclass(frozen=True)
class EnvSpec:
    """All that agents, networks, policies and reports know of an environment."""

    num_actions: int
    """Actions are the whole numbers below it."""
    objectives: tuple[str, ...]
    """Their names, in the order of the reward vector."""
    frame: FrameSpec
    """What there is to see at one moment."""
    stack: int = 1
    """Frames per observation, the newest last."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_actions", _num_actions(self.num_actions))
        object.__setattr__(self, "objectives", _names(self.objectives))
        if not isinstance(self.frame, FrameSpec):
            raise InputError(f"the frame of an environment must be a FrameSpec, not {self.frame!r}")
        object.__setattr__(self, "stack", _stack(self.stack))

    @property
    def num_objectives(self) -> int:
        """Length of the reward vector."""
        return len(self.objectives)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The frame's shape, with a leading axis of frames where there are several."""
        return self.frame.shape if self.stack == 1 else (self.stack, *self.frame.shape)

    def to_json(self) -> dict[str, Any]:
        """The values as JSON can hold them; `from_json` reads them back."""
        frame = {
            "shape": list(self.frame.shape),
            "dtype": self.frame.dtype,
            "low": [_finite_or_name(bound) for bound in self.frame.low],
            "high": [_finite_or_name(bound) for bound in self.frame.high],
            "categories": list(self.frame.categories),
        }
        return {
            "num_actions": self.num_actions,
            "objectives": list(self.objectives),
            "frame": frame,
            "stack": self.stack,
        }

    @staticmethod
    def from_json(values: Any, source: str) -> "EnvSpec":
        """Read what `to_json` wrote; InputError, naming `source`, for anything else."""
        try:
            needed = ("num_actions", "objectives", "frame")
            given = _entries("an environment's spec", values, EnvSpec, needed)
            frame = _entries("a frame", given["frame"], FrameSpec, ("shape", "dtype"))
            return EnvSpec(
                _num_actions(given["num_actions"]),
                _names(given["objectives"]),
                FrameSpec(
                    _shape(frame["shape"]),
                    _dtype(frame["dtype"]),
                    _bounds("low", frame.get("low", [])),
                    _bounds("high", frame.get("high", [])),
                    _categories(frame.get("categories", [])),
                ),
                _stack(given.get("stack", 1)),
            )
        except InputError as error:
            raise InputError(f"{source} does not describe an environment: {error}") from error


def _entries(what: str, values: Any, kind: type, needed: tuple[str, ...]) -> dict[str, Any]:
    """The entries of a JSON object, if they are fields of `kind`."""
    if not isinstance(values, Mapping):
        raise InputError(f"{what} must be an object, not {shown(values)}")
    known = [field.name for field in fields(kind)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise InputError(f"{what} has no entry {shown(unknown[0])}")
    for name in needed:
        if name not in values:
            raise InputError(f"{what} lacks {name!r}")
    return dict(values)


def _listed(what: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > MAX_ENTRIES:
        raise InputError(f"{what} must be a list, not {shown(values)}")
    return tuple(values)


def _num_actions(value: Any) -> int:
    return require_int("the number of actions", value, 1, MAX_ACTIONS)


def _stack(value: Any) -> int:
    return require_int("the number of frames per observation", value, 1, MAX_STACK)


def _shape(values: Any) -> tuple[int, ...]:
    shape = tuple(
        require_int("a size in the shape of a frame", size, 1, MAX_ENTRIES)
        for size in _listed("the shape of a frame", values)
    )
    if len(shape) not in (1, 3) or math.prod(shape) > MAX_ENTRIES:
        raise InputError(
            "the shape of a frame must be (entries,) or (height, width, channels), with at most "
            f"{MAX_ENTRIES:,} numbers in all, not {shape}"
        )
    return shape


def _dtype(name: Any) -> str:
    try:
        dtype = np.dtype(name) if isinstance(name, str) else None
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in "biuf" or dtype.name != name:
        raise InputError(
            f"the dtype of a frame must be NumPy's name of a number, such as float32, "
            f"not {shown(name)}"
        )
    return dtype.name


def _bounds(name: str, values: Any) -> tuple[float, ...]:
    return tuple(_bound(name, value) for value in _listed(f"the {name} bounds of a frame", values))


def _bound(name: str, value: Any) -> float:
    if isinstance(value, str) and value in _INFINITIES:
        return _INFINITIES[value]
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    try:
        number = float(value) if real else math.nan
    except OverflowError:  # a whole number that no float can hold
        number = math.nan
    if math.isnan(number):
        raise InputError(f"a {name} bound of a frame must be a number, not {shown(value)}")
    return number


def _categories(values: Any) -> tuple[int, ...]:
    return tuple(
        require_int("a number of categories", value, 1, MAX_ENTRIES)
        for value in _listed("the categories of a frame", values)
    )


def _names(values: Any) -> tuple[str, ...]:
    names = _listed("the objectives of an environment", values)
    if not 1 <= len(names) <= MAX_OBJECTIVES:
        raise InputError(f"there must be 1 to {MAX_OBJECTIVES} objectives, not {len(names)}")
    for name in names:
        if not (isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()):
            raise InputError(
                f"the name of an objective must be 1 to {MAX_NAME} printable characters, "
                f"not {shown(name)}"
            )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the names of objectives must differ, and {twice!r} is there twice")
    return names


def _finite_or_name(value: float) -> float | str:
    """JSON has no infinities: those are written as text."""
    return value if math.isfinite(value) else str(value)
