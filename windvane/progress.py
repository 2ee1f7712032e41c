"""What every command shows: lines of text and, for long jobs, a bar on a terminal or a line now and
then in a log.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

LOG_EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line as it is: names of files may hold what Rich would take for markup."""
    console.print(text, style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_display(
    console: Console, announcement: str = ""
) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function to call with what is done, how much of it, and how much there is.

    Where it is called at all, the `announcement` is printed first.
    """
    if not console.is_terminal:
        yield _announced(console, announcement, _logger(console))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _TimeColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, int] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        yield _announced(console, announcement, report)


def _announced(
    console: Console, announcement: str, report: Callable[[str, int, int], None]
) -> Callable[[str, int, int], None]:
    waiting = [announcement] if announcement else []

    def announced(what: str, done: int, total: int) -> None:
        if waiting:
            say(console, waiting.pop())
        report(what, done, total)

    return announced


def _logger(console: Console) -> Callable[[str, int, int], None]:
    started: dict[str, float] = {}
    last = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        begun = started.setdefault(what, now)
        if now - last >= LOG_EVERY:
            last = now
            say(console, f"{what}: {done:,} of {total:,}, {time_left(now - begun, done, total)}")

    return report


def time_left(seconds: float, done: int, total: int) -> str:
    """How long something has taken, and how long the rest will take at the same pace."""
    told = f"{duration(seconds)} so far"
    if not 0 < done < total:
        return told
    return f"{told}, about {duration(seconds * (total - done) / done)} left"


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class _TimeColumn(ProgressColumn):
    """Time so far and time left, beside a bar."""

    def render(self, task: Task) -> Text:
        return Text(time_left(task.elapsed or 0.0, int(task.completed), int(task.total or 0)))
