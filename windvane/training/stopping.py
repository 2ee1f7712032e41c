"""Ctrl-C and SIGTERM: asked once, training ends after the chunk; asked twice, at once."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

POLL = 0.005
"""Seconds between two looks at whether a chunk is done."""


class TrainingStopped(KeyboardInterrupt):
    """Training was asked to stop; the message says how to go on."""


class StopRequest:
    """Whether somebody has asked for an end."""

    asked: bool = False

    def handle(self, number: int, frame: Any) -> None:
        """What a signal leads to."""
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


def wait_for(tree: Any) -> None:
    """Wait until arrays are computed, open to signals: a plain wait hears none before its end."""
    for leaf in jax.tree.leaves(tree):
        while not leaf.is_ready():
            time.sleep(POLL)
