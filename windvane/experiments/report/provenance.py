"""Where the runs of a report come from: enough to repeat them, or to see that they do not match."""

from collections.abc import Sequence

from windvane.experiments.report.summary import RunSummary
from windvane.experiments.report.titles import printable

_TITLES = {
    "version": "Windvane",
    "commit": "Commit",
    "jax": "JAX",
    "python": "Python",
    "device": "Device",
    "precision": "Precision",
}


def provenance_facts(summaries: Sequence[RunSummary]) -> dict[str, str]:
    """What is known about the provenance of the runs, by its title; of several values, all."""
    facts = {"Runs": f"{len(summaries):,}"}
    for name, title in _TITLES.items():
        values = _values(summaries, name)
        if values:
            facts[title] = ", ".join(values)
    dates = _values(summaries, "date")
    if dates:
        facts["Date"] = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    seconds = sum(_seconds(summary) for summary in summaries)
    if seconds:
        facts["Seconds"] = f"{seconds:,.0f} in all"
    return facts


def _seconds(summary: RunSummary) -> float:
    """A run's share of the time that it took together with those in parallel."""
    provenance = summary.provenance
    return (provenance.get("seconds") or 0) / (provenance.get("parallel_runs") or 1)


def _values(summaries: Sequence[RunSummary], name: str) -> list[str]:
    """Different values in order; dates in ISO format sort by time."""
    found = (s.provenance[name] for s in summaries if s.provenance.get(name))
    return sorted({printable(str(value)) for value in found})
