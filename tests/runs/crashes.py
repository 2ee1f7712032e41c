"""Programs that end too early: while they write their files, or because a signal asks for it."""

import math
import signal
from pathlib import Path
from typing import Any

import pytest

from windvane import files
from windvane.runs import runner, status


class Crash(BaseException):
    """The program ends here."""


def crash_at_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on the program ends when it has written all but one of the files in the list. What
    a run in progress shows is written by the clock, so it is left out here.
    """
    real, left = files.move, [0]
    monkeypatch.setattr(status, "FIRST", math.inf)

    def move(temporary: Path, path: Path) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Crash
        real(temporary, path)

    monkeypatch.setattr(files, "move", move)
    return left


def stop_after(monkeypatch: pytest.MonkeyPatch, steps: list[int]) -> None:
    """Raise a signal while the chunk that ends at the next of `steps` is looked at."""
    real = runner.episode_rows

    def rows(infos: Any, start: int, *rest: Any) -> Any:
        if steps and start + len(infos.ended) == steps[0]:
            signal.raise_signal(signal.SIGINT if len(steps) % 2 else signal.SIGTERM)
            steps.pop(0)
        return real(infos, start, *rest)

    monkeypatch.setattr(runner, "episode_rows", rows)
