"""What a run folder keeps of its trackers: which they are, and how far each has written.

Resuming needs it and nothing else does. Without the file, nothing is tracked from then on.
"""

import json
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path

from windvane.errors import InputError, in_one_line, shown
from windvane.files import atomic_write, faults_of, path_exists, read_json
from windvane.tracking import TRACKERS

FILE = "tracking.json"


class TrackingState:
    """The step that each tracker of a run has written up to, by name."""

    def __init__(self, folder: Path, run_id: str | None, written: dict[str, int] | None = None):
        """Of a run, whose id tells the file from one that another run has left."""
        self._folder, self._run_id = folder, run_id
        self._written = dict(written or {})
        self._lock = threading.Lock()

    @staticmethod
    def read(folder: Path, run_id: str | None) -> "TrackingState":
        """What a folder holds; nothing, with a warning, if that is damaged."""
        try:
            return TrackingState(folder, run_id, _read(folder / FILE, run_id))
        except InputError as error:
            warnings.warn(
                f"no tracker goes on unless it is named again: {in_one_line(error)}", stacklevel=2
            )
            return TrackingState(folder, run_id)

    @property
    def names(self) -> tuple[str, ...]:
        """The trackers that the run had."""
        return tuple(self._written)

    def written(self, name: str) -> int:
        """The last step that a tracker has written; 0 if it is new."""
        return self._written.get(name, 0)

    def add(self, names: Iterable[str]) -> None:
        """Note that a run has these trackers."""
        self._update({name: self.written(name) for name in names})

    def record(self, name: str, step: int) -> None:
        """Note that a tracker has written all points up to a step."""
        self._update({name: step})

    def _update(self, written: dict[str, int]) -> None:
        with self._lock:
            self._written |= written
            values = {"run_id": self._run_id, "written": self._written}
            text = json.dumps(values, indent=2) + "\n"
            atomic_write(self._folder / FILE, lambda file: file.write(text.encode()))


def _read(path: Path, run_id: str | None) -> dict[str, int]:
    if not path_exists(path):
        return {}
    found = read_json(path)
    with faults_of(path, "the file"):
        written = found.get("written") if isinstance(found, dict) else None
        if not isinstance(written, dict):
            raise InputError(f"it must say what trackers have written, not {shown(found)}")
        if found.get("run_id") != run_id:  # left by another run
            return {}
        for name, step in written.items():
            TRACKERS.check(name)
            if type(step) is not int or step < 0:
                raise InputError(f"a step must be a whole number, not {shown(step)}")
    return written
