"""Programs of their own that are killed: at some moment, or as they rename a file."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

AT_A_RENAME = """
import os, signal

left, before = int(os.environ["KILL_AT"]), os.environ["KILL_BEFORE"] == "1"


def killing(real):
    def call(*args, **named):
        global left
        left -= 1
        if left == 0 and before:
            os.kill(os.getpid(), signal.SIGKILL)
        real(*args, **named)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return call


if left:
    os.replace, os.link = killing(os.replace), killing(os.link)
"""
"""Put before a program, it kills it at one of its renames; at none where KILL_AT is 0."""


def start(
    program: str, cache: Path, *arguments: object, kill_at: int = 0, before: bool = False
) -> "subprocess.Popen[bytes]":
    """Start a program, which compiles once: what is tested lies after that."""
    env = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "KILL_AT": str(kill_at),
        "KILL_BEFORE": str(int(before)),
    }
    return subprocess.Popen(
        [sys.executable, "-c", AT_A_RENAME + program, *map(str, arguments)], env=env
    )


def live(
    program: str, cache: Path, out: Path, *arguments: object, renames: bool, draw: random.Random
) -> int:
    """One life of a program that writes into `out`, and its exit status: -9 if it was killed."""
    if renames:
        at, before = draw.randint(1, 9), draw.random() < 0.5
        return start(program, cache, *arguments, kill_at=at, before=before).wait()
    known = names(out)
    process = start(program, cache, *arguments)
    while process.poll() is None and names(out) <= known:
        time.sleep(0.005)
    time.sleep(draw.random() * 0.4)
    process.send_signal(signal.SIGKILL)
    return process.wait()


def names(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}
