"""What every command shows: lines of text and, for long jobs, a bar on a terminal or a line now and
then in a log.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LOG_EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line as it is: names of files may hold what Rich would take for markup."""
    console.print(text, style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_display(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function to call with what is done, how much of it, and how much there is."""
    if not console.is_terminal:
        yield _logger(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, int] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        yield report


def _logger(console: Console) -> Callable[[str, int, int], None]:
    started = last = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LOG_EVERY:
            last = now
            console.print(f"{what}: {done} of {total} after {now - started:.0f} s")

    return report
