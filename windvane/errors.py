"""The one exception a user of the package is meant to read: a single sentence about a bad value."""

import math
import operator
from collections.abc import Collection
from numbers import Real
from typing import Any

LARGEST_COUNT = 2**31 - 1
"""Steps are counted in 32 bits."""


class InputError(ValueError):
    """A value from outside is not usable; the message names the value and what is allowed.

    The command line prints the message alone and exits with code 2.
    """


def in_one_line(error: BaseException) -> str:
    """What an exception of others says, as a part of a sentence; if nothing, what it is."""
    return " ".join(str(error).split()) or type(error).__name__


def shown(value: object) -> str:
    """A value as part of a sentence: on one line, and not too long."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        text = f"a value of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def choose(what: str, name: Any, choices: Collection[str]) -> str:
    """Return `name` if it is one of `choices`, else complain about `what` by naming them all."""
    if not isinstance(name, str) or name not in choices:
        raise InputError(f"unknown {what} {shown(name)}; choose one of: {', '.join(choices)}")
    return name


def require_int(what: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value`, Python's or NumPy's, if it is a whole number from `least` to `most`."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{what} must be a whole number {allowed}, not {shown(value)}")
    return number


def require_positive_int(what: str, value: Any, most: int | None = None) -> int:
    """Return `value` if it is a whole number of at least 1, and of at most `most`."""
    return require_int(what, value, 1, most)


def is_number(value: object) -> bool:
    """Whether `value` is a finite real number, Python's or NumPy's; truth values are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False
