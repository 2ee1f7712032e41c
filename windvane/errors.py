"""The one exception a user of the package is meant to read: a single sentence about a bad value."""

from collections.abc import Collection


class InputError(ValueError):
    """A value from outside is not usable; the message names the value and what is allowed.

    The command line prints the message alone and exits with code 2.
    """


def choose(what: str, name: str, choices: Collection[str]) -> str:
    """Return `name` if it is one of `choices`, else complain about `what` by naming them all."""
    if name not in choices:
        raise InputError(f"unknown {what} {name!r}; choose one of: {', '.join(choices)}")
    return name


def require_positive_int(what: str, value: object) -> int:
    """Return `value` if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{what} must be a whole number of at least 1, not {value!r}")
    return value
