"""Which runs are completed: in a results store, or in published summaries of one."""

from collections.abc import Container, Iterable
from pathlib import Path

from windvane.errors import InputError
from windvane.experiments.report.summary import RunSummary
from windvane.experiments.runs.paths import relative_path
from windvane.experiments.runs.store import Store
from windvane.training.config import TrainConfig


def summaries_in(folder: Path) -> list[RunSummary]:
    """Every run of a store, or of published summaries; InputError if there is none."""
    return merged(_published(folder), Store(folder).summaries())


def completed_paths(folder: str | Path | None) -> set[Path]:
    """The relative paths of these runs; no run of a store needs to be read for it.

    Without a folder nothing is completed.
    """
    if folder is None:
        return set()
    store = Store(Path(folder))
    published = {relative_path(summary.config) for summary in _published(store.folder)}
    return published | {path.relative_to(store.folder) for path in store.paths()}


def missing(
    runs: Iterable[TrainConfig], store: Store, completed: Container[Path] = ()
) -> list[TrainConfig]:
    """The runs that are neither in the store nor among the `completed` relative paths."""
    return [run for run in runs if not (store.has(run) or relative_path(run) in completed)]


def merged(before: Iterable[RunSummary], after: Iterable[RunSummary]) -> list[RunSummary]:
    """All runs; where a run is in both, the later one."""
    return list({relative_path(each.config): each for each in (*before, *after)}.values())


def _published(folder: Path) -> list[RunSummary]:
    """The summaries in a folder, if there are some; InputError if there is no run at all."""
    from windvane.experiments.report.summary_files import read_summaries

    try:
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}")
        stored = Store(folder).paths()
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror}") from error
    summaries = read_summaries(folder)
    if not (summaries or stored):
        raise InputError(f"there are no finished runs in {folder}")
    return summaries
