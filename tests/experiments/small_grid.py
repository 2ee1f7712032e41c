"""One small grid for all tests of experiments: two programs, four runs each."""

from pathlib import Path
from typing import Any

from tests.runs.small import small
from windvane.experiments.grid import Grid
from windvane.experiments.reproduce import Outcome, reproduce
from windvane.experiments.store import Store, read_run

GRID = Grid.of("small", "quick-dst", ["cn", "mo"], ["standard"])
SETTINGS: dict[str, Any] = {
    name: getattr(small(), name)
    for name in ("steps", "learning_starts", "chunk", "width", "depth", "capacity", "batch_size",
                 "checkpoint_seconds")
}  # fmt: skip


def run_small(out: Path, **changes: Any) -> Outcome:
    return reproduce(GRID, out, seeds=2, **(SETTINGS | changes))


def content(folder: Path) -> dict[str, Any]:
    """All that a store holds but when it was made and how long it took."""
    found = {}
    for path in Store(folder).paths():
        config, records, failed, origin = read_run(path)
        kept = {name: value for name, value in origin.items() if name not in ("date", "seconds")}
        columns = {name: column.tolist() for name, column in records.items()}
        found[str(path.relative_to(folder))] = (config, columns, failed, kept)
    return found
