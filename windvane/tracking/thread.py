"""One tracker in a thread of its own, so that nothing that it does can stop or slow a training.

What may not live here: what is tracked.
"""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from windvane.errors import in_one_line
from windvane.tracking.tracker import Tracker

PATIENCE = 120.0
"""Seconds that a tracker may take for one thing before it counts as hung up."""
LAST_PATIENCE = 10.0
"""Seconds that all trackers together have when a training was interrupted, where somebody waits."""
_A_WHILE = 3.0
_LOOK = 0.02

Job = Callable[[Tracker], object]


class TrackerThread:
    """Does jobs one after another, until one fails or none come any more."""

    def __init__(self, name: str, prepare: Callable[[], object]):
        """Begin with what takes long before there is anything to track, such as imports."""
        self.name = name
        self.error: str | None = None
        """Why it is off, if it is."""
        self.place: str | None = None
        """What the tracker says of where its files are."""
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._since: float | None = time.monotonic()
        self._tracker: Tracker | None = None
        # A daemon, as a thread that hangs must not keep the program from ending.
        self._thread = threading.Thread(
            target=self._work, args=(prepare,), name=f"windvane-{name}", daemon=True
        )
        self._thread.start()

    def begin(self, make: Callable[[], Tracker]) -> None:
        """Make the tracker; this comes before any job."""

        def first(_: Tracker | None) -> None:
            self._tracker = make()
            self.place = self._tracker.place

        self._jobs.put(first)  # type: ignore[arg-type]

    def put(self, job: Job) -> None:
        """Do this, too, in time."""
        self._jobs.put(job)

    def check(self) -> str | None:
        """Why the tracker is off, or None if it is well."""
        since = self._since
        hangs = since is not None and time.monotonic() - since > PATIENCE
        if self.error is None and hangs and self._thread.is_alive():
            self.error = f"it has not answered for {PATIENCE:.0f} s"
        return self.error

    def end(
        self, deadline: float | None = None, told: Callable[[], object] = lambda: None
    ) -> str | None:
        """Wait until all is done, or until the deadline, and say so if that takes a while; why the
        tracker is off, or None if all went well.
        """
        self._jobs.put(None)
        began: float | None = time.monotonic()
        while self._thread.is_alive() and self.check() is None:
            self._thread.join(_LOOK)
            if deadline is not None and time.monotonic() > deadline and self._thread.is_alive():
                self.error = self.error or "it was not done when the training was interrupted"
            if began is not None and time.monotonic() - began > _A_WHILE:
                told()
                began = None
        return self.error

    def _work(self, prepare: Callable[[], object]) -> None:
        try:
            prepare()
            while True:
                self._since = None
                job = self._jobs.get()
                self._since = time.monotonic()
                if job is None or self.error is not None:
                    return
                job(self._tracker)  # type: ignore[arg-type]
        except BaseException as error:  # whatever somebody else's package does
            self.error = self.error or in_one_line(error)
            with suppress(BaseException):
                if self._tracker is not None:
                    self._tracker.close(False)
