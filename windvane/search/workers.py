"""Who works on a study: which processes live, and how long there was anyone at work.

Each process holds a lock on a file of its own, which the system lets go of however the process
ends; on a file system that machines share and that has locks, also from another machine.
"""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from windvane.errors import InputError
from windvane.files import BusyError, atomic_write, file_lock, make_folder, path_exists, read_json

WORKERS = "workers"
PULSE = 2.0
"""Seconds between two notes that a process makes of how far it is."""
PATIENCE = 120.0
"""Seconds to wait for another process that holds a lock for a moment."""


class Worker:
    """A process at work on a study: the one it is made in."""

    def __init__(self, folder: Path):
        """To be entered before trials are asked for."""
        self.folder, self.id = folder, uuid4().hex
        self._path = make_folder(folder / WORKERS) / f"{self.id}.lock"
        self._start, self._noted, self._cpu = time.time(), 0.0, time.process_time()
        self._lock = file_lock(self._path)

    def __enter__(self) -> "Worker":
        atomic_write(self._path, lambda file: file.write(socket.gethostname().encode()))
        self._lock.__enter__()
        self.note(force=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.note(force=True)
        self._lock.__exit__(kind, error, trace)

    def note(self, force: bool = False) -> None:
        """Write down until when it has been at work, and how much processor time it took."""
        now = time.time()
        if not force and now - self._noted < PULSE:
            return
        self._noted = now
        values = {"start": self._start, "stop": now, "cpu": time.process_time() - self._cpu}
        text = json.dumps(values)
        path = self._path.with_suffix(".json")
        atomic_write(path, lambda file: file.write(text.encode()))


def is_gone(folder: Path, worker: str) -> bool:
    """Whether a process that was at work has ended. Of one that never noted itself in this folder
    nothing is known, and it is taken to live.
    """
    path = folder / WORKERS / f"{worker}.lock"
    if not path_exists(path):
        return False
    try:
        with file_lock(path):
            return True
    except BusyError:
        return False


def seconds_at_work(folder: Path) -> float:
    """Seconds in which at least one process was at work."""
    total, reached = 0.0, float("-inf")
    for start, stop, _ in sorted(_notes(folder)):
        total += max(stop - max(start, reached), 0.0)
        reached = max(reached, stop)
    return total


def cpu_seconds(folder: Path) -> float:
    """Processor time of all processes while they were at work."""
    return sum(cpu for _, _, cpu in _notes(folder))


def _notes(folder: Path) -> list[tuple[float, float, float]]:
    found = []
    for path in (folder / WORKERS).glob("*.json"):
        try:
            values = read_json(path)
            found.append(tuple(float(values[name]) for name in ("start", "stop", "cpu")))
        except (InputError, KeyError, TypeError, ValueError):  # being written, or not ours
            continue
    return found


@contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """Hold a file, after whoever holds it now."""
    path.touch()
    end = time.monotonic() + PATIENCE
    while True:
        lock = file_lock(path)
        try:
            lock.__enter__()
            break
        except BusyError as error:
            if time.monotonic() > end:
                raise InputError(f"another process holds {path} for very long") from error
            time.sleep(0.02)
    try:
        yield
    finally:
        lock.__exit__(None, None, None)
