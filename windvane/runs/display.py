"""What is shown during training: a bar on a terminal, a line now and then in a log."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from windvane.progress import LOG_EVERY, duration, say
from windvane.runs.compiling import Compiling

LAST_EPISODES = 100
"""Episodes whose mean is shown."""
_LOOKS = 20
"""Chunks that the speed is measured over."""

Display = Callable[[int, dict[str, np.ndarray]], None]
"""Called after every chunk with the step of all runs and the records of episodes that ended."""


class Measures:
    """Speed, time left and how recent episodes went, from what each chunk brought."""

    def __init__(self, step: int, steps: int, runs: int, programs: int = 2):
        """Begin at `step` of `steps`; each of the first chunks compiles one of `programs`."""
        self.steps, self.runs, self.step, self._chunks = steps, runs, step, 0
        self._programs = programs
        self._looks: deque[tuple[float, int]] = deque(maxlen=_LOOKS)
        self._recent = {name: deque[float](maxlen=LAST_EPISODES) for name in ("regret", "utility")}

    def add(self, now: float, step: int, rows: dict[str, np.ndarray]) -> None:
        """Take note of a chunk that ended at `step`."""
        self.step = step
        # The first chunks compile: their time says nothing about those to come.
        self._chunks += 1
        if self.compiled:
            self._looks.append((now, step))
        for name, values in self._recent.items():
            values.extend(rows[name].tolist())

    @property
    def compiled(self) -> bool:
        """Whether every program was needed once."""
        return self._chunks >= self._programs

    @property
    def text(self) -> str:
        """All in one line."""
        parts = [f"step {self.step:,} of {self.steps:,}"]
        if not self.compiled:
            parts.append("compiling the rest")
        if len(self._looks) > 1:
            (before, first), (now, last) = self._looks[0], self._looks[-1]
            speed = (last - first) / max(now - before, 1e-9)
            parts.append(f"{speed * self.runs:,.0f} steps/s")
            if speed > 0:
                parts.append(f"{duration((self.steps - last) / speed)} left")
        for name, values in self._recent.items():
            known = [value for value in values if np.isfinite(value)]
            if known:
                parts.append(f"mean {name} of the last {len(known)} episodes {np.mean(known):.4f}")
                break
        return ", ".join(parts)


@contextmanager
def training_display(
    console: Console, step: int, steps: int, runs: int, compiling: Compiling
) -> Iterator[Display]:
    """Yield what is to be called after every chunk."""
    measures = Measures(step, steps, runs, compiling.programs)
    if not console.is_terminal:
        yield _log(console, measures, compiling)
        return
    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(compiling.sentence, total=steps, completed=step)

        def show(step: int, rows: dict[str, np.ndarray]) -> None:
            _add(measures, compiling, step, rows)
            bars.update(task, completed=step, description=measures.text)

        yield show


def _add(measures: Measures, compiling: Compiling, step: int, rows: dict[str, np.ndarray]) -> float:
    """Take note of a chunk; when that was."""
    waited, now = not measures.compiled, time.monotonic()
    measures.add(now, step, rows)
    if waited and measures.compiled:
        compiling.done()
    return now


def _log(console: Console, measures: Measures, compiling: Compiling) -> Display:
    last = time.monotonic()
    say(console, compiling.sentence)

    def show(step: int, rows: dict[str, np.ndarray]) -> None:
        nonlocal last
        now = _add(measures, compiling, step, rows)
        if now - last >= LOG_EVERY:
            last = now
            say(console, measures.text)

    return show
