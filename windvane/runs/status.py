"""What a run in progress shows to whoever looks at its folder: how far it is, its curves so far,
and the policies of its first runs. All of it is removed in the end.

It is for looking only: a run is never resumed from it, and what cannot be written is left out.
"""

import json
import re
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import InputError, in_one_line, is_number, require_int, shown
from windvane.files import (
    atomic_write,
    faults_of,
    make_folder,
    own_files,
    path_exists,
    read_json,
    remove_files,
    remove_folder,
)
from windvane.policy import trained_policy
from windvane.runs.folder import CURRENT, POLICIES, STATUS
from windvane.runs.tables import Records
from windvane.schedules import LIVE
from windvane.training.build import Training
from windvane.training.config import TrainConfig
from windvane.training.session import Session

FIRST = 1.0
"""Seconds after which there is a status at all: shorter runs need none."""
EVERY = 3.0
"""Least seconds between two writes."""
SHARE = 50
"""Writing takes at most one part in so many of the time."""
BINS = 100
"""Points of a curve."""
MOST_RUNS = 20
"""Runs with a curve of their own."""
MOST_POLICIES = 4
"""Runs whose policies are written."""
FRESH = 60.0
"""Least seconds after which a status says nothing of the present any more; of a run with long
chunks it is five of them.
"""
QUANTITIES = ("utility", "regret")
_POLICY = re.compile(r".+\.safetensors")


class Curves:
    """Means of the episodes that ended in each of equal stretches, for each of the first runs."""

    def __init__(self, config: TrainConfig):
        """No episodes yet."""
        self._config = config
        self._runs = min(len(config.runs), MOST_RUNS)
        shape = (len(QUANTITIES), self._runs, BINS)
        self._sums, self._counts = np.zeros(shape), np.zeros(shape)

    def add(self, rows: Records) -> None:
        """Count the episodes of some records."""
        mine = rows["run"] < self._runs
        run, step = rows["run"][mine], rows["step"][mine]
        place = -(-step.astype(np.int64) * BINS // self._config.steps) - 1
        for number, name in enumerate(QUANTITIES):
            values = rows[name][mine]
            known = np.isfinite(values)
            at = (run[known], place[known])
            np.add.at(self._sums[number], at, values[known])
            np.add.at(self._counts[number], at, 1)

    def to_json(self) -> list[dict[str, Any]]:
        """For each run its name, the middles of stretches in which episodes ended, and the means
        there; None for a quantity that is not known in all of them.
        """
        middle = ((np.arange(BINS) + 0.5) * self._config.steps / BINS).astype(int)
        curves = []
        for run, name in enumerate(self._config.run_names[: self._runs]):
            ended = self._counts[0, run] > 0
            curve: dict[str, Any] = {"name": name, "steps": middle[ended].tolist()}
            for number, quantity in enumerate(QUANTITIES):
                counts = self._counts[number, run][ended]
                known = counts.size and counts.min() > 0
                means = self._sums[number, run][ended] / np.maximum(counts, 1)
                curve[quantity] = means.tolist() if known else None
            curves.append(curve)
        return curves


class StatusWriter:
    """Keeps the status of a run folder up to date. Without a folder it does nothing."""

    def __init__(self, training: Training, folder: Path | None, earlier: Sequence[Records] = ()):
        """Begin with the records of `earlier` parts, of a run that is resumed."""
        self._training, self._folder = training, folder
        self._curves = Curves(training.config)
        self._weights: list[float] | None = None
        self._due = time.monotonic() + FIRST
        self._updated = time.monotonic()
        for rows in earlier:
            self._count(rows)

    def update(self, step: int, rows: Records, session: Session) -> None:
        """Take note of a chunk that ended at `step`, and write if it is time to."""
        if self._folder is None:
            return
        self._count(rows)
        began = time.monotonic()
        chunk, self._updated = began - self._updated, began
        if began < self._due or step >= self._training.config.steps:
            return
        try:
            self._write(self._folder, step, max(EVERY, chunk))
            self._write_policies(self._folder, step, session)
        except InputError:  # the disk is full, say; the records will tell
            pass
        except Exception as error:  # somebody's own agent may do anything
            warnings.warn(
                f"{self._folder} does not show how training goes on: {in_one_line(error)}",
                stacklevel=2,
            )
            self._folder = None
        took = time.monotonic() - began
        self._due = began + max(EVERY, SHARE * took)

    def _count(self, rows: Records) -> None:
        self._curves.add(rows)
        first = np.flatnonzero(rows["run"] == 0)
        names = sorted((n for n in rows if n.startswith("weights_")), key=_index)
        if first.size:
            self._weights = [float(rows[name][first[-1]]) for name in names]

    def _write(self, folder: Path, step: int, interval: float) -> None:
        config = self._training.config
        watched = None
        if config.schedules[0].startswith(LIVE):
            watched = str(Path(config.schedules[0].removeprefix(LIVE)).absolute())
        status = {
            "step": step,
            "steps": config.steps,
            "time": time.time(),
            "interval": interval,
            "weights": self._weights,
            "weights_file": watched,
            "runs": self._curves.to_json(),
        }
        text = json.dumps(status)
        atomic_write(folder / STATUS, lambda file: file.write(text.encode()))

    def _write_policies(self, folder: Path, step: int, session: Session) -> None:
        names = self._training.config.run_names[:MOST_POLICIES]
        make_folder(folder / POLICIES / CURRENT)
        for run, name in enumerate(names):
            policy = trained_policy(self._training, session.policy_network(run), run, step)
            policy.save(folder / POLICIES / CURRENT / f"{name}.safetensors")


def remove_status(folder: Path) -> None:
    """Remove what is there only while a run is in progress."""
    current = folder / POLICIES / CURRENT
    with suppress(InputError):
        remove_files(own_files(folder, re.compile(re.escape(STATUS))), b"{")
        remove_files(own_files(current, _POLICY))
    remove_folder(current)


def read_status(folder: Path) -> dict[str, Any] | None:
    """The status of a run folder, checked; None if there is none."""
    path = folder / STATUS
    if not path_exists(path) or path.is_symlink():
        return None
    status = read_json(path)
    with faults_of(path, "the status"):
        if not isinstance(status, dict) or not isinstance(status.get("runs"), list):
            raise InputError(f"it must be an object with runs, not {shown(status)}")
        for name in ("step", "steps"):
            require_int(f"its {name}", status.get(name), 0)
        if not is_number(status.get("time")):
            raise InputError(f"its time must be a number, not {shown(status.get('time'))}")
        for run in status["runs"]:
            _check_curve(run)
        watched = status.get("weights_file")
        if not (watched is None or isinstance(watched, str)):
            raise InputError(f"its weights_file must be a path, not {shown(watched)}")
        if status.get("weights") is not None:
            _check_numbers(status["weights"], "weights")
    return status


def is_fresh(status: dict[str, Any]) -> bool:
    """Whether a status is of a run that is probably still in progress."""
    interval: Any = status.get("interval")
    usual = float(interval) if is_number(interval) else 0.0
    return abs(time.time() - status["time"]) < max(FRESH, 5 * usual)


def _check_curve(run: Any) -> None:
    if not isinstance(run, dict) or not isinstance(run.get("name"), str):
        raise InputError(f"a run of it must be an object with a name, not {shown(run)}")
    _check_numbers(run.get("steps"), "steps")
    for name in QUANTITIES:
        if run.get(name) is not None:
            _check_numbers(run[name], name)
            if len(run[name]) != len(run["steps"]):
                raise InputError(f"its {name} must be as many as its steps")


def _check_numbers(values: Any, what: str) -> None:
    listed = isinstance(values, list) and len(values) <= 10_000
    if not (listed and all(is_number(value) for value in values)):
        raise InputError(f"its {what} must be a list of numbers, not {shown(values)}")


def _index(name: str) -> int:
    return int(name.removeprefix("weights_"))
