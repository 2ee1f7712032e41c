"""What the machine offers: cores, and a folder for what is expensive to compute."""

import os
import platform
from pathlib import Path


def usable_cores() -> int:
    """Cores that this process may use: in a container often fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def cache_folder() -> Path:
    """Where results of long searches are kept: `WINDVANE_CACHE`, else the user's cache folder."""
    own = os.environ.get("WINDVANE_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windvane"


def use_compilation_cache() -> None:
    """Keep compiled programs on disk, so that a second training starts at once.

    `JAX_COMPILATION_CACHE_DIR` chooses another folder; `WINDVANE_COMPILATION_CACHE=0` keeps none.
    """
    import jax

    if os.environ.get("WINDVANE_COMPILATION_CACHE") == "0" or jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return
    folder = cache_folder() / "xla" / f"{platform.machine()}-{jax.__version__}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
