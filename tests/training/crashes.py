"""A program that ends while it writes its files."""

from pathlib import Path

import pytest

from windvane import files


class Crash(BaseException):
    """The program ends here."""


def crash_at_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on the program ends when it has written all but one of the files in the list."""
    real, left = files.move, [0]

    def move(scratch: Path, path: Path) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Crash
        real(scratch, path)

    monkeypatch.setattr(files, "move", move)
    return left
