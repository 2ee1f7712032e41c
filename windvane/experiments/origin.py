"""Where a result comes from: version, commit, hardware, date."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jax

from windvane.machine import usable_cores
from windvane.training.config import TrainConfig
from windvane.version import __version__

COMMIT = "WINDVANE_COMMIT"
"""Environment variable that names the commit where the package is not in a checkout."""


def origin(config: TrainConfig) -> dict[str, Any]:
    """What to write beside a result that was computed just now, by this process."""
    return {
        "version": __version__,
        "commit": commit(),
        "device": device(),
        "precision": config.resolved().precision,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def device() -> str:
    """The accelerator's name, or the processor's and how many cores may be used."""
    first = jax.local_devices()[0]
    if first.platform != "cpu":
        return first.device_kind
    return f"{_processor()}, {usable_cores()} cores"


@cache
def commit() -> str | None:
    """The commit of the checkout that the package runs from; with a `+` where files differ."""
    if os.environ.get(COMMIT):
        return os.environ[COMMIT]
    here = Path(__file__).parent
    try:
        _git(here, "ls-files", "--error-unmatch", Path(__file__).name)  # not a checkout of others
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}+" if changed else head


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
