"""The results store: a folder of Parquet, one file per run.

A run's path follows from its configuration alone, and files are written atomically: two processes
may write to one store, and stores are merged by copying one over the other. Every file describes
itself (see `Store.write`), so any reader of Parquet can work with the folder.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windvane.errors import InputError
from windvane.experiments.report.summary import RunSummary
from windvane.experiments.runs.cells import cell_of
from windvane.experiments.runs.paths import CONTENT, RUNS, STORE_FORMAT, relative_path
from windvane.experiments.runs.provenance import check_provenance
from windvane.files import as_input_error, atomic_write, path_exists
from windvane.runs.divergence import check_loss
from windvane.runs.tables import Records, read_about, write_table
from windvane.training.config import TrainConfig

if TYPE_CHECKING:
    import polars as pl

_METADATA = "windvane"


class StoredRun(NamedTuple):
    """A run as a store keeps it."""

    config: TrainConfig
    """Of this run alone: one seed, one schedule."""
    records: Records
    """A row per episode."""
    failed: bool
    """Whether it diverged: its loss or gradient was not finite, and it stopped learning."""
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """A folder of runs; it need not exist before the first is written."""

    folder: Path

    def path(self, run: TrainConfig) -> Path:
        """Where a run is kept."""
        return self.folder / relative_path(run)

    def has(self, run: TrainConfig) -> bool:
        """Whether a run is there."""
        return path_exists(self.path(run))

    def diverged(self, run: TrainConfig) -> bool:
        """Whether a run is there and diverged; what cannot be read is left to whoever reads it."""
        return self._states(run, "failed")

    def exploded(self, run: TrainConfig) -> bool:
        """Whether a run is there and diverged although its loss stayed finite; as `diverged`."""
        return self._states(run, "exploded")

    def _states(self, run: TrainConfig, name: str) -> bool:
        path = self.path(run)
        try:
            return json.loads(read_about(path)[_METADATA])[name] is True
        except (OSError, KeyError, TypeError, ValueError):  # an InputError is one of the last
            return False

    def write(
        self, run: TrainConfig, records: Records, failed: bool, provenance: dict[str, Any]
    ) -> Path:
        """Write a run: the records of its episodes, after columns with the names of its problem and
        cell; and in the file's metadata its whole configuration, whether it failed or its loss
        exploded, and its provenance.
        """
        names = {"env": run.env, "observation": run.observation, **cell_of(run)._asdict()}
        number = len(records["step"])
        columns = {name: np.full(number, value) for name, value in names.items()}
        columns |= {name: column for name, column in records.items() if name != "run"}
        metadata = {
            "format": STORE_FORMAT,
            "config": run.to_json(),
            "failed": failed,
            "exploded": not failed and check_loss(records, run).exploded,
            "provenance": provenance,
        }
        path = _make_room(self.path(run))
        write_table(path, columns, {_METADATA: json.dumps(metadata)})
        return path

    def write_content(self, run: TrainConfig, content: Records) -> Path:
        """Write what a run's diverse buffer held in the end."""
        path = _make_room(self.content_path(run))
        write_table(path, {name: column for name, column in content.items() if name != "run"})
        return path

    def content_path(self, run: TrainConfig) -> Path:
        """Where that is kept."""
        return self.folder / CONTENT / relative_path(run).relative_to(RUNS)

    def put(self, relative: str, data: bytes) -> None:
        """Add the file of a run that was written to another store."""
        path = _make_room(self.folder / relative)
        atomic_write(path, lambda file: file.write(data))

    def files(self) -> list[Path]:
        """All files that are to be merged into another store."""
        return [*sorted((self.folder / CONTENT).glob("*/*/*.parquet")), *self.paths()]

    def paths(self) -> list[Path]:
        """The files of all runs."""
        return sorted((self.folder / RUNS).glob("*/*/*.parquet"))

    def summaries(self) -> Iterator[RunSummary]:
        """A summary of every run."""
        for path in self.paths():
            yield read_summary(path)


def _make_room(path: Path) -> Path:
    """Make the folder of a file that is about to be written."""
    with as_input_error(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def read_run(path: Path) -> StoredRun:
    """A run as it was written; InputError with the fault if the file holds anything else."""
    run, frame = _read(path)
    return run._replace(records={name: frame[name].to_numpy() for name in frame.columns})


def read_summary(path: Path) -> RunSummary:
    """The summary of a run."""
    from windvane.experiments.report.summarise import summarise_run

    run, frame = _read(path)
    return summarise_run(run.config, frame, run.failed, run.provenance)


def one_run(config: Any, source: str) -> TrainConfig:
    """The configuration of a single run, as it was written to `source`."""
    run = TrainConfig.from_json(config, source)
    if len(run.seed_numbers) != 1 or len(run.runs) != 1:
        raise InputError(f"{source} must have the configuration of 1 run, not of {len(run.runs)}")
    return run


def _read(path: Path) -> "tuple[StoredRun, pl.DataFrame]":
    # Only readers need polars: a machine that trains may do without it.
    from windvane.experiments.report.summarise import check_episodes
    from windvane.experiments.runs.frames import faults_of, metadata_object, read_frame

    with faults_of(path, "a run of a results store"):
        frame, about = read_frame(path)
        metadata = metadata_object(about, _METADATA)
        version = metadata.get("format")
        if type(version) is not int or version < 1:
            raise InputError(f"its format must be a whole number, not {version!r}")
        if version > STORE_FORMAT:
            raise InputError("it was written by a newer Windvane, install a newer one")
        if type(metadata.get("failed")) is not bool:
            raise InputError(f"'failed' must be true or false, not {metadata.get('failed')!r}")
        config = one_run(metadata.get("config"), path.name)
        # Files of the first versions call it the origin.
        source = check_provenance(metadata.get("provenance", metadata.get("origin")))
        check_episodes(frame, config)
    return StoredRun(config, {}, metadata["failed"], source), frame
