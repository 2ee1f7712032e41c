"""What this program may use of the machine it runs on."""

import os


def usable_cores() -> int:
    """Cores that this process may use: in a container often fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone
    return len(affinity(0)) if affinity else os.cpu_count() or 1
