"""All trackers of one training: a callback that makes points and hands them on.

A tracker that fails is off for the rest of the training, with one warning; nothing else changes.
"""

import json
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from rich.console import Console

from windvane.progress import say
from windvane.registry import is_import_path, load
from windvane.tracking import TRACKERS
from windvane.tracking.points import Curves, Point, final_numbers
from windvane.tracking.state import TrackingState
from windvane.tracking.thread import LAST_PATIENCE, TrackerThread
from windvane.tracking.tracker import Setting, TrackedRun, TrackedTraining, Tracker
from windvane.training.callbacks import TrainingProgress
from windvane.training.config import TrainConfig

LONGEST = 250
"""Letters of a setting that are kept: not every tracker takes more."""


class Tracking:
    """The trackers of a training, from its beginning to its end; `with` closes them."""

    def __init__(
        self,
        names: Sequence[str],
        config: TrainConfig,
        folder: Path,
        run_id: str,
        console: Console,
        state: TrackingState,
    ):
        """Nothing is begun yet. `run_id` is of the training, `state` what its folder says."""
        self._names, self._config, self._console, self._state = names, config, console, state
        self._training = TrackedTraining(folder, tracked_runs(config, run_id), config.steps)
        self._threads: list[TrackerThread] = []
        self._curves: Curves | None = None
        self._finished = False

    def __enter__(self) -> "Tracking":
        self._state.add(self._names)
        self._threads = [TrackerThread(name, lambda n=name: _factory(n)) for name in self._names]
        return self

    def __call__(self, progress: TrainingProgress) -> None:
        """Hand the points of what is new to every tracker that is well."""
        if self._curves is None:
            self._curves = Curves(progress.steps, progress.objectives)
            self._begin(progress.step if progress.resumed else 0)
        points = self._curves.add(progress)
        for thread in self._well():
            if points:
                thread.put(lambda tracker, t=thread: self._log(t.name, tracker, points))

    def finish(self, means: Mapping[str, np.ndarray]) -> None:
        """Hand over the final numbers: means per run, by name."""
        numbers = [final_numbers(means, run) for run in range(len(self._training.runs))]
        self._finished = True
        for thread in self._well():
            thread.put(lambda tracker: tracker.finish(numbers))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        threads = self._well()
        for thread in threads:
            if self._curves is not None:
                thread.put(lambda tracker: tracker.close(self._finished))
        deadline = None if self._finished else time.monotonic() + LAST_PATIENCE
        for thread in threads:
            reason = self._end(thread, deadline)
            if reason is not None:
                _warn(thread.name, reason)
            elif thread.place is not None:
                say(self._console, f"tracked: {thread.place}")

    def _end(self, thread: TrackerThread, deadline: float | None) -> str | None:
        try:
            return thread.end(deadline, lambda: say(self._console, f"waiting for {thread.name}"))
        except KeyboardInterrupt:  # all but this is done
            return "it was not waited for"

    def _begin(self, resumed: int) -> None:
        for thread in self._threads:
            written = self._state.written(thread.name)
            training = replace(self._training, resumed=resumed, written=written)
            thread.begin(lambda name=thread.name, given=training: self._make(name, given))

    def _make(self, name: str, training: TrackedTraining) -> Tracker:
        tracker = TRACKERS.make(name, {}, training, trusted=True)
        self._state.record(name, tracker.after)
        return tracker

    def _log(self, name: str, tracker: Tracker, points: list[Point]) -> None:
        new = [point for point in points if point.step > tracker.after]
        if new:
            tracker.log(new)
            self._state.record(name, new[-1].step)

    def _well(self) -> list[TrackerThread]:
        """The trackers that go on; each that does not is named once."""
        for thread in list(self._threads):
            reason = thread.check()
            if reason is not None:
                self._threads.remove(thread)
                _warn(thread.name, reason)
        return list(self._threads)


def tracked_runs(config: TrainConfig, run_id: str) -> tuple[TrackedRun, ...]:
    """The runs of a training as trackers know them."""
    return tuple(
        TrackedRun(name, f"{run_id}-{number}", flat_settings(one))
        for number, (name, one) in enumerate(zip(config.run_names, config.runs, strict=True))
    )


def flat_settings(config: TrainConfig) -> dict[str, Setting]:
    """A configuration without levels: `env_args.map`, and lists and None as texts."""
    flat: dict[str, Setting] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                add(f"{name}.{key}", inner)
        elif isinstance(value, str | int | float):
            flat[name] = value[:LONGEST] if isinstance(value, str) else value
        else:
            flat[name] = json.dumps(value)[:LONGEST]

    for name, value in config.to_json().items():
        add(name, value)
    return flat


def _factory(name: str) -> Any:
    return load(name) if is_import_path(name) else TRACKERS[name].factory()


def _warn(name: str, reason: str) -> None:
    text = f"the tracker {name} is off for the rest of this training, which goes on: {reason}"
    try:
        warnings.warn(text, stacklevel=2)
    except UserWarning:  # a program may make errors of warnings, and this must not be one
        print(f"windvane: {text}", file=sys.stderr)
