"""Where a result comes from: version, commit, hardware, date; recorded, and checked when read."""

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jax

from windvane.errors import InputError, is_number
from windvane.machine import usable_cores
from windvane.training.config import TrainConfig
from windvane.version import __version__

COMMIT = "WINDVANE_COMMIT"
"""Environment variable that names the commit where the package is not in a checkout."""
_EARLIER_NAMES = {"side_by_side": "parallel_runs"}
_NUMBERS = ("seconds", "parallel_runs")
_LONGEST = 1000
"""Characters of one fact."""
MOST = 1e12
"""The largest number of seconds, or of runs, that is believed."""


def provenance(config: TrainConfig) -> dict[str, Any]:
    """What to write beside a result that this process has just computed."""
    return {
        "version": __version__,
        "commit": commit(),
        "device": device(),
        "precision": config.resolved().precision,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def check_provenance(values: Any) -> dict[str, Any]:
    """What a file says about where its runs come from, with the names of today."""
    if not isinstance(values, Mapping):
        raise InputError(f"its provenance must be names with values, not {str(values)[:60]!r}")
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if not isinstance(name, str) or not (value is None or isinstance(value, str | int | float)):
            raise InputError(
                f"the provenance {name!r} must be text or a number, not {str(value)[:60]!r}"
            )
        if isinstance(value, str) and len(value) > _LONGEST:
            raise InputError(f"the provenance {name!r} is longer than {_LONGEST} characters")
        checked[_EARLIER_NAMES.get(name, name)] = value
    for name in _NUMBERS:
        number = checked.get(name)
        if number is not None and not (is_number(number) and 0 <= number <= MOST):
            raise InputError(
                f"the provenance {name!r} must be a number from 0 to {MOST:g}, not {number!r}"
            )
    return checked


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
    package = Path(__file__).parents[2]
    try:
        _git(package, "ls-files", "--error-unmatch", "__init__.py")  # not a checkout of others
        head = _git(package, "rev-parse", "--short=12", "HEAD")
        changed = _git(package, "status", "--porcelain", "--untracked-files=no", "--", ".")
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
