"""Work in the background, one job after another, each with its progress; asked for twice, it is
done once.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from windvane.errors import InputError, in_one_line

Progress = Callable[[str, int, int], None]
MOST_KEPT = 256
RETRY_SECONDS = 5.0
"""After which a job that failed is begun anew if it is asked for again."""

_log = logging.getLogger("windvane.studio")


class Job:
    """A piece of work: its progress, and in the end its result or what went wrong."""

    def __init__(self) -> None:
        """It has not begun."""
        self.finished = threading.Event()
        self.result: Any = None
        self.problem: str | None = None
        self.failed_at: float | None = None
        self.what, self.done, self.total = "waiting", 0, 0

    def progress(self, what: str, done: int, total: int) -> None:
        """Take note of how far it is."""
        self.what, self.done, self.total = what, done, total

    @property
    def may_be_tried_again(self) -> bool:
        """Whether it failed, and whoever asked has had time to be told so."""
        return self.failed_at is not None and time.monotonic() - self.failed_at > RETRY_SECONDS

    def to_json(self) -> dict[str, Any]:
        """Its state; the result of one that is done is a dictionary."""
        if not self.finished.is_set():
            return {
                "state": "running", "what": self.what, "done": self.done, "total": self.total,
            }  # fmt: skip
        if self.problem is not None:
            return {"state": "failed", "problem": self.problem}
        return {"state": "done"} | self.result


class Jobs:
    """Jobs by key, done by one thread; the oldest that are finished are forgotten."""

    def __init__(self) -> None:
        """No jobs yet."""
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="windvane-jobs")

    def start(self, key: str, work: Callable[[Progress], Any]) -> Job:
        """The job of that key, begun now if there is none."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.may_be_tried_again:
                job = None
            if job is None:
                job = self._jobs[key] = Job()
                self._thread.submit(_do, job, work)
            self._jobs.move_to_end(key)
            for old in [k for k, j in self._jobs.items() if j.finished.is_set()][:-MOST_KEPT]:
                del self._jobs[old]
            return job

    def close(self) -> None:
        """Begin no more jobs."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _do(job: Job, work: Callable[[Progress], Any]) -> None:
    try:
        job.result = work(job.progress)
    except InputError as error:
        job.problem = in_one_line(error)
    except Exception as error:  # whatever an environment does must not end the page
        _log.exception("a job failed")
        job.problem = f"{type(error).__name__}: {in_one_line(error)}"
    finally:
        if job.problem is not None:
            job.failed_at = time.monotonic()
        job.finished.set()
