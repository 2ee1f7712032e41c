"""What is shown while training goes on: a bar on a terminal, a line now and then in a log."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from windvane.progress import LOG_EVERY

LAST_EPISODES = 100
"""Episodes whose mean regret is shown."""
_LOOKS = 20
"""Chunks that the speed is measured over."""
_COMPILED = 2
"""Chunks after which all is compiled."""


Display = Callable[[int, np.ndarray], None]
"""Told after every chunk how far all runs are and the regrets of the episodes that ended."""


class Measures:
    """Speed, time left and recent regret, from what is told after every chunk."""

    def __init__(self, step: int, steps: int, runs: int):
        """Begin at `step` of `steps`."""
        self.steps, self.runs, self.step, self._chunks = steps, runs, step, 0
        self._looks: deque[tuple[float, int]] = deque(maxlen=_LOOKS)
        self._regrets: deque[float] = deque(maxlen=LAST_EPISODES)

    def add(self, now: float, step: int, regrets: np.ndarray) -> None:
        """Take note of a chunk that ended at `step`."""
        self.step = step
        # The first two chunks compile: their time says nothing about those to come.
        self._chunks += 1
        if self._chunks >= _COMPILED:
            self._looks.append((now, step))
        self._regrets.extend(regrets.tolist())

    @property
    def text(self) -> str:
        """All in one line."""
        parts = [f"step {self.step:,} of {self.steps:,}"]
        if len(self._looks) > 1:
            (before, first), (now, last) = self._looks[0], self._looks[-1]
            speed = (last - first) / (now - before)
            parts.append(f"{speed * self.runs:,.0f} steps/s")
            parts.append(f"{_duration((self.steps - last) / speed)} left")
        if self._regrets:
            mean = np.mean(self._regrets)
            parts.append(f"regret of the last {len(self._regrets)} episodes {mean:.4f}")
        return ", ".join(parts)


@contextmanager
def training_display(
    console: Console | None, step: int, steps: int, runs: int
) -> Iterator[Display]:
    """Yield what is to be told after every chunk; without a console nothing is shown."""
    measures = Measures(step, steps, runs)
    if console is None:
        yield lambda step, regrets: None
    elif not console.is_terminal:
        yield _log(console, measures)
    else:
        columns = (BarColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=console, transient=True) as bars:
            task = bars.add_task("compiling", total=steps, completed=step)

            def show(step: int, regrets: np.ndarray) -> None:
                measures.add(time.monotonic(), step, regrets)
                bars.update(task, completed=step, description=measures.text)

            yield show


def _log(console: Console, measures: Measures) -> Display:
    last = time.monotonic()

    def show(step: int, regrets: np.ndarray) -> None:
        nonlocal last
        now = time.monotonic()
        measures.add(now, step, regrets)
        if now - last >= LOG_EVERY:
            last = now
            console.print(measures.text, highlight=False, soft_wrap=True)

    return show


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
