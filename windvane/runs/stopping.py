"""Ctrl-C and SIGTERM: asked once, training ends after the chunk; asked twice, at once."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TrainingStopped(KeyboardInterrupt):
    """Training was interrupted; the message says how to resume."""


class StopRequest:
    """Whether an interruption was asked for."""

    asked: bool = False

    def handle(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        del number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("stopping after this chunk; once more stops at once", file=sys.stderr, flush=True)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Listen to the signals meanwhile. Only the main thread of a program can.

    Whoever listened before is told of what was asked here: there may be more to stop.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, request.handle) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
            outer = getattr(handler, "__self__", None)
            if request.asked and isinstance(outer, StopRequest):
                outer.asked = True
