"""Trying something malformed: it is refused in one sentence, or does no harm; and in time."""

import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from windvane.cli import main
from windvane.errors import InputError, in_one_line

SECONDS = 30.0
"""More than anything may take that is refused."""
LONGEST = 1_500
"""Characters of a sentence."""


class TooSlowError(BaseException):
    """Not an Exception, so that nothing takes it for a damaged file."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Raise an error where something takes longer."""

    def stop(*_: Any) -> None:
        raise TooSlowError(f"it took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Tally:
    """What came of many attempts."""

    refused: int = 0
    harmless: int = 0
    wrong: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.refused + self.harmless + len(self.wrong)

    def attempt(self, what: str, action: Callable[[], Any], named: Sequence[str] = ()) -> None:
        """Count one; a complaint must be one sentence that has one of the words in `named`."""
        try:
            with time_limit():
                action()
        except InputError as error:
            message = str(error)
            if len(message) > LONGEST or "\n" in message:
                self.wrong.append(f"{what}: not one sentence: {message:.300}")
            elif named and not any(name in message for name in named):
                self.wrong.append(f"{what}: names nothing: {message:.300}")
            else:
                self.refused += 1
        except BaseException as error:
            self.wrong.append(f"{what}: {type(error).__name__}: {in_one_line(error):.300}")
        else:
            self.harmless += 1
            self.accepted.append(what)

    def command(self, what: str, line: list[str], capfd: pytest.CaptureFixture[str]) -> None:
        """Run a command; what it prints must be no traceback, and its code one of three."""
        capfd.readouterr()
        try:
            with time_limit(120):
                code = main(line)
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            self.wrong.append(f"{what}, {line}: {type(error).__name__}: {in_one_line(error):.300}")
            return
        said = capfd.readouterr().err
        if code not in (0, 2, 130) or "Traceback" in said:
            self.wrong.append(f"{what}, {line}: code {code}: {said:.300}")
        elif code == 2 and "windvane: " in said and len(said.strip().splitlines()) != 1:
            self.wrong.append(f"{what}, {line}: not one sentence: {said:.300}")
        elif code == 0:
            self.harmless += 1
        else:
            self.refused += 1

    def check(self, name: str) -> None:
        """Fail if anything was wrong."""
        print(f"{name}: {self.number} tried, {self.refused} refused, {self.harmless} harmless")
        assert not self.wrong, f"{len(self.wrong)} of {self.number}:\n" + "\n".join(self.wrong)


def snapshot(folder: Path, but: Path) -> dict[str, bytes]:
    """What lies in a folder, except one file."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path != but and stat.S_ISREG(path.lstat().st_mode)
    }
