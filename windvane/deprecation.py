"""Names that have changed: what they are called today, and the warning that says so.

A name that somebody types works for at least two minor releases after it has changed, with a
warning. One that a file holds is read in silence, since nobody can type it anew. docs/releases.md
says what else is promised. What may not live here: any of the names.
"""

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType


class RenamedWarning(DeprecationWarning):
    """A former name was used; the message says what it is called now."""


@dataclass(frozen=True)
class Renamed:
    """What became of a former name."""

    now: str
    until: str
    """The first release that may not know the former name any more, such as 0.4."""


def current_name(what: str, name: str, former: Mapping[str, Renamed], *, typed: bool = True) -> str:
    """What `name` is called today; a warning if it is a former one that somebody has typed."""
    renamed = former.get(name)
    if renamed is None:
        return name
    if typed:
        caller = _caller()
        warnings.warn_explicit(
            f"the {what} {name!r} is called {renamed.now!r} now: Windvane {renamed.until} may not "
            "know the former name any more",
            RenamedWarning,
            caller.f_code.co_filename,
            caller.f_lineno,
            caller.f_globals.get("__name__"),
            caller.f_globals.setdefault("__warningregistry__", {}),
        )
    return renamed.now


def _caller() -> FrameType:
    """Whoever uses the package: past its own functions, and what lies between two of them.

    Python shows a deprecation only where it is the program's own file that the warning names.
    """
    between = ("windvane", "equinox", "jaxtyping", "beartype")
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in between:
            break
        frame = frame.f_back
    return frame
