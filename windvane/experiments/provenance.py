"""Where a report's runs come from: enough to make them again, or to see that they do not match."""

from collections.abc import Sequence

from windvane.experiments.digest import Digest

_NAMES = {
    "version": "Windvane",
    "commit": "Commit",
    "jax": "JAX",
    "python": "Python",
    "device": "Device",
    "precision": "Precision",
}


def provenance(digests: Sequence[Digest]) -> dict[str, str]:
    """What is known about the origin of the runs, by its title; of several values, all."""
    known = {"Runs": f"{len(digests):,}"}
    for name, title in _NAMES.items():
        values = _values(digests, name)
        if values:
            known[title] = ", ".join(values)
    dates = _values(digests, "date")
    if dates:
        known["Date"] = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    seconds = sum(_seconds(digest) for digest in digests)
    if seconds:
        known["Seconds"] = f"{seconds:,.0f} in all"
    return known


def _seconds(digest: Digest) -> float:
    """A run's share of the time that it took together with those beside it."""
    return (digest.origin.get("seconds") or 0) / (digest.origin.get("side_by_side") or 1)


def _values(digests: Sequence[Digest], name: str) -> list[str]:
    """Different values in order; dates as they are written down are in order of time, too."""
    return sorted({str(digest.origin[name]) for digest in digests if digest.origin.get(name)})
