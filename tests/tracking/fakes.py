"""Trackers as somebody else would write them: one that works, and some that fail."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from windvane.tracking.points import Point
from windvane.tracking.tracker import TrackedTraining, Tracker

SEEN: list[Any] = []
"""What trackers were told, in order."""
RELEASE = threading.Event()
"""Ends what hangs."""


class Listening(Tracker):
    """Writes into a list."""

    def __init__(self, training: TrackedTraining):
        super().__init__(training)
        SEEN.append(("begin", training))

    @property
    def place(self) -> str:
        return "a list"

    def log(self, points: Sequence[Point]) -> None:
        SEEN.extend(("point", point) for point in points)

    def finish(self, numbers: Sequence[Mapping[str, float]]) -> None:
        SEEN.append(("finish", numbers))

    def close(self, finished: bool) -> None:
        SEEN.append(("close", finished))


def points() -> list[Point]:
    return [what for kind, what in SEEN if kind == "point"]


def of_kind(kind: str) -> list[Any]:
    return [what for one, what in SEEN if one == kind]


class NeverBegun(Listening):
    def __init__(self, training: TrackedTraining):
        raise OSError(28, "No space left on device")


class FailsLater(Listening):
    def log(self, points: Sequence[Point]) -> None:
        super().log(points)
        if points[-1].step > 200:
            raise RuntimeError("the server\nsays no")


class Exits(Listening):
    def log(self, points: Sequence[Point]) -> None:
        raise SystemExit(3)


class FailsInTheEnd(Listening):
    def finish(self, numbers: Sequence[Mapping[str, float]]) -> None:
        raise RuntimeError("no more room")


class Hangs(Listening):
    def log(self, points: Sequence[Point]) -> None:
        super().log(points)
        RELEASE.wait(60)


class Slow(Listening):
    def log(self, points: Sequence[Point]) -> None:
        time.sleep(0.2)
        super().log(points)


def not_a_tracker(training: TrackedTraining) -> int:
    return 3


OTHER = 3
