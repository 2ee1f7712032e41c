"""What the machine offers: cores, memory, and a folder for what is expensive to compute."""

import os
import platform
from pathlib import Path

from windvane.errors import InputError


def usable_cores() -> int:
    """Cores that this process may use: in a container often fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Memory that this process may use at most; None where the system does not say."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None
    return min([size for size in (whole, *_memory_limits()) if size > 0], default=None)


def _memory_limits() -> list[int]:
    """What Linux's control groups, such as those of containers and cluster jobs, allow."""
    found, root = [], Path("/sys/fs/cgroup")
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return []
    for _, kinds, path in (line.split(":", 2) for line in groups if line.count(":") >= 2):
        if kinds and "memory" not in kinds.split(","):
            continue
        home, name = (root / "memory", "memory.limit_in_bytes") if kinds else (root, "memory.max")
        group = home / path.lstrip("/")
        for folder in (group, *group.parents):
            try:
                found.append(int((folder / name).read_text()))
            except (OSError, ValueError):  # not visible from here, or "max"
                continue
    return found


def cache_folder() -> Path:
    """Where results of long searches are kept: `WINDVANE_CACHE`, else the user's cache folder."""
    own = os.environ.get("WINDVANE_CACHE")
    if own:
        return Path(own)
    caches = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(caches or Path.home() / ".cache") / "windvane"
    except RuntimeError as error:
        raise InputError(
            "this user has no home folder to keep results in: set WINDVANE_CACHE to a folder"
        ) from error


def use_compilation_cache() -> None:
    """Keep compiled programs on disk, so that a second training starts at once.

    `JAX_COMPILATION_CACHE_DIR` chooses another folder; `WINDVANE_COMPILATION_CACHE=0` keeps none.
    """
    import jax

    if os.environ.get("WINDVANE_COMPILATION_CACHE") == "0" or jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return
    try:
        folder = cache_folder() / "xla" / f"{platform.machine()}-{jax.__version__}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, InputError):  # it only saves time
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
