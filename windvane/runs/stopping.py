"""Ctrl-C, SIGTERM and SIGHUP: asked once, training ends after the chunk; asked twice, at once.

Python tells of a signal between two instructions of the main thread, and compiling a program is one
instruction of up to half a minute. A command therefore has a thread that hears signals at once, and
that ends the process where the main thread does not (`end_process_when_asked`). In a program of the
user's own, whatever ends at once is a KeyboardInterrupt.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

INTERRUPTED = 130
"""Exit code of a process that was asked to stop."""
GRACE = 1.0
"""Seconds that the main thread has to hear a signal."""
UNWINDING = 5.0
"""Seconds that it has then to close what is open."""
_SIGNALS = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
SIGNALS = [number for number in _SIGNALS if number is not None]
"""What asks for an end; Windows has no SIGHUP."""

_CLEAR_LINE, _SHOW_CURSOR = b"\r\x1b[2K", b"\x1b[?25h"
_ending = threading.Lock()
_active: "StopRequest | None" = None
_command = False
"""Whether this process may be ended."""


class TrainingStopped(KeyboardInterrupt):
    """Training was interrupted; the message says how to resume."""


class StopRequest:
    """Whether an interruption was asked for. `hint` says how to resume after an end at once."""

    def __init__(self, hint: str = "stopped"):
        """Nothing is asked yet."""
        self.hint = hint
        self.asked = self.raised = False
        """What the main thread has heard: that it should stop, that it should do so at once."""
        self.heard = 0
        """Signals, as a command's own thread counts them."""
        self._told = self.disposable = self._unsaved = False
        self._kinds: set[Hashable] = set()
        self._terminals = [number for number in (1, 2) if _is_terminal(number)]

    @contextmanager
    def chunk(self, kind: Hashable, *, learning: bool) -> Iterator[None]:
        """Work that a signal does not interrupt. The first of a kind compiles, which takes longer
        than all else: where nothing that was learned is lost with it, one signal ends it, if this
        is a command. What is of no kind looks for signals itself.
        """
        new = kind is not None and kind not in self._kinds
        self.disposable = new and not self._unsaved and not self.asked
        try:
            yield
        finally:
            self.disposable = False
        self._kinds.add(kind)
        self._unsaved |= learning

    def saved(self) -> None:
        """A checkpoint has been written."""
        self._unsaved = False

    def handle(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        del number, frame
        self.leave_lost_terminals()
        # A program of the user's own may go on afterwards, or end while JAX is at work and crash.
        if self.asked or (self.disposable and _command):
            self.asked = self.raised = True
            raise KeyboardInterrupt
        self.asked = True
        self.tell()

    def tell(self) -> None:
        """Say once what happens now."""
        if self._told:
            return
        self._told, text = True, "stopping after this chunk; once more stops at once"
        if threading.current_thread() is not threading.main_thread():
            return _write(text)
        try:
            print(text, file=sys.stderr, flush=True)
        except RuntimeError:  # the signal came while something was printed
            _write(text)
        except (OSError, ValueError):  # a terminal that is gone
            return

    def leave_lost_terminals(self) -> None:
        """Write to nowhere from now on where a terminal was closed: each write would fail."""
        for number in list(self._terminals):
            if not _is_terminal(number):
                self._terminals.remove(number)
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, number)
                os.close(nowhere)


@contextmanager
def stop_request(hint: str = "stopped") -> Iterator[StopRequest]:
    """Listen to the signals meanwhile. Only the main thread of a program can.

    Whoever listened before is told of what was asked here: there may be more to stop. What ignores
    SIGHUP, as after `nohup`, goes on doing so.
    """
    global _active
    # What was begun last is a part of what was asked for.
    request = StopRequest(hint if _active is None else _active.hint)
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    hangup, ignored = getattr(signal, "SIGHUP", None), signal.SIG_IGN
    numbers = [n for n in SIGNALS if n != hangup or signal.getsignal(n) is not ignored]
    outer, _active = _active, request
    before = {number: signal.signal(number, request.handle) for number in numbers}
    try:
        yield request
    finally:
        _active = outer
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if outer is not None and request.asked:
            outer.asked = True


@contextmanager
def end_process_when_asked() -> Iterator[None]:
    """End this process on signals that its main thread does not hear in time. For commands alone:
    nothing that is open is closed, and a run folder is as after a kill.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _command
    ours, pythons = socket.socketpair()
    pythons.setblocking(False)
    threading.Thread(target=_listen, args=(ours,), daemon=True).start()
    before = signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)
    report, sys.unraisablehook = sys.unraisablehook, _end_or(sys.unraisablehook)
    _command = True
    try:
        yield
    finally:
        _command = False
        sys.unraisablehook = report
        signal.set_wakeup_fd(before)
        pythons.close()  # which ends the thread


def _end_or(report: Callable[[Any], object]) -> Callable[[Any], None]:
    """What to do about exceptions that Python can only report: where a library is called back, such
    as by the garbage collector, a KeyboardInterrupt goes no further.
    """

    def end(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            end_process("stopped" if _active is None else _active.hint)
        report(unraisable)

    return end


def end_process(text: str = "", code: int = INTERRUPTED) -> NoReturn:
    """End the process without what Python does at its end: JAX may still be compiling or computing
    in threads of its own, and then that crashes.
    """
    if not _ending.acquire(blocking=False):
        time.sleep(60)  # another thread is about to end the process
    # In a thread, since whoever prints now may hold what is flushed.
    flushing = threading.Thread(target=_flush, daemon=True)
    flushing.start()
    flushing.join(GRACE / 2)
    if text:
        _write(f"windvane: {text}")
    if _is_terminal(2):
        _write_bytes(_SHOW_CURSOR)
    os._exit(code)


def _listen(signals: socket.socket) -> None:
    """Hear of signals, from Python's own handler in C, until the other end is closed."""
    with signals:
        while numbers := signals.recv(64):
            for number in numbers:
                if number in SIGNALS:
                    threading.Thread(target=_hear, args=(number,), daemon=True).start()


def _hear(number: int) -> None:
    request = _active
    if request is None:
        if signal.getsignal(number) is signal.default_int_handler:
            time.sleep(GRACE)
            end_process("stopped")
        return
    request.leave_lost_terminals()
    request.heard += 1
    first = request.heard == 1
    time.sleep(GRACE)
    if first and not request.raised and (request.asked or not request.disposable):
        if not request.asked:
            request.tell()
        return
    if _active is not request:  # the main thread has heard, and is closing what is open
        time.sleep(UNWINDING)
    end_process(request.hint)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _write(text: str) -> None:
    """A line on standard error, whoever else is writing there."""
    line = text.encode(getattr(sys.stderr, "encoding", None) or "utf-8", "replace") + b"\n"
    _write_bytes(_CLEAR_LINE + line if _is_terminal(2) else line)


def _write_bytes(data: bytes) -> None:
    with suppress(OSError):
        os.write(2, data)


def _is_terminal(number: int) -> bool:
    """Whether a terminal is there; one that was closed is none any more."""
    try:
        os.get_terminal_size(number)
    except (OSError, ValueError):
        return False
    return True
