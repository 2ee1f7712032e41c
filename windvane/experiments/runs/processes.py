"""Several processes on one store, one or more per GPU: each takes jobs that no other is running."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from windvane.errors import InputError
from windvane.experiments.runs.reproduce import RESUME_HINT
from windvane.runs.stopping import TrainingStopped

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
_NVIDIA = Path("/proc/driver/nvidia/gpus")


def visible_gpus() -> list[str]:
    """The NVIDIA GPUs that a process started now would see; none of them is initialised."""
    if _VISIBLE in os.environ:
        return [name for name in os.environ[_VISIBLE].split(",") if name.strip()]
    return [str(number) for number, _ in enumerate(_NVIDIA.iterdir())] if _NVIDIA.is_dir() else []


def spawn_processes(arguments: Sequence[str], processes: int) -> None:
    """Run the command line `arguments` as several processes and wait for all of them."""
    children = [_start(arguments, environment_of(n, processes)) for n in range(processes)]
    readers = [
        Thread(target=_print_output, args=(child, f"[{number}] "))
        for number, child in enumerate(children, 1)
    ]
    for reader in readers:
        reader.start()
    stopped = []

    def stop(number: int, frame: Any) -> None:
        del frame
        stopped.append(number)
        for child in children:
            with suppress(ProcessLookupError):
                _pass_on(child, number)

    before = {number: signal.signal(number, stop) for number in _stop_signals()}
    try:
        codes = [child.wait() for child in children]
        for reader in readers:
            reader.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopped:
        raise TrainingStopped(RESUME_HINT)
    failed = sum(code != 0 for code in codes)
    if failed:
        raise InputError(
            f"{failed} of {processes} processes failed, as printed above; the same command trains "
            "what is missing"
        )


def _pass_on(child: subprocess.Popen, number: int) -> None:
    if os.name == "nt":  # which has no signals for other processes; a run folder survives a kill
        child.terminate()
    else:
        child.send_signal(number)


def _stop_signals() -> list[signal.Signals]:
    """Signals that are passed on; not that of a closed terminal where `nohup` has it ignored."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        numbers.append(hangup)
    return numbers


def environment_of(number: int, processes: int) -> dict[str, str]:
    """The environment variables of one of several processes: its GPU, and how it uses memory."""
    environment, gpus = dict(os.environ), visible_gpus()
    if gpus:
        environment[_VISIBLE] = gpus[number % len(gpus)]
    if processes > len(gpus):
        # The first on a GPU would allocate most of its memory, and leave none to the others.
        environment.setdefault(_PREALLOCATE, "false")
    return environment


def _start(arguments: Sequence[str], environment: dict[str, str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "windvane.cli", *arguments, "--processes", "1"]
    # Signals from the keyboard are passed on, so that each child gets them once.
    return subprocess.Popen(
        command, env=environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def _print_output(child: subprocess.Popen, prefix: str) -> None:
    """Print the output of a child, each line after its prefix."""
    if child.stdout is None:
        return
    with child.stdout as lines:
        for line in lines:
            # Without a terminal to print to the child must not wait for a reader.
            with suppress(OSError):
                print(prefix + line, end="", flush=True)
