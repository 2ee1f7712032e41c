"""The results store: a folder of Parquet, one file a run.

A run's place follows from its configuration alone, and a file is there whole or not at all: two
processes may write to one store, and stores are merged by copying one over the other. Every file
describes itself (see `Store.write`), so any reader of Parquet can work with the folder.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import InputError, in_one_line
from windvane.experiments.digest import Digest, digest, setting
from windvane.files import atomic_write
from windvane.training.config import TrainConfig
from windvane.training.records import Records, read_about, read_table, write_table

FORMAT = 1
RUNS = "runs"
CONTENT = "content"
_ABOUT = "windvane"
_NAMED = ("env", "observation", "agent", "replay", "weights")


@dataclass(frozen=True)
class Store:
    """A folder of runs; it need not exist before the first is written."""

    folder: Path

    def path(self, run: TrainConfig) -> Path:
        """Where a run is kept."""
        return self.folder / place(run)

    def has(self, run: TrainConfig) -> bool:
        """Whether a run is there."""
        return self.path(run).exists()

    def write(self, run: TrainConfig, records: Records, failed: bool, origin: dict) -> Path:
        """Keep a run: the records of its episodes, with the names of its problem and cell in
        columns before them, and in the file's metadata its whole configuration, whether it failed,
        and where it comes from.
        """
        number = len(records["step"])
        names = {name: np.full(number, getattr(run, name)) for name in _NAMED}
        columns = {name: column for name, column in records.items() if name != "run"}
        about = {"format": FORMAT, "config": run.to_json(), "failed": failed, "origin": origin}
        path = self.path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, names | columns, {_ABOUT: json.dumps(about)})
        return path

    def write_content(self, run: TrainConfig, content: Records) -> Path:
        """Keep what a run's diverse buffer held in the end, beside its records."""
        path = self.content_path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, {name: column for name, column in content.items() if name != "run"})
        return path

    def content_path(self, run: TrainConfig) -> Path:
        """Where that is kept."""
        return self.folder / CONTENT / self.path(run).relative_to(self.folder / RUNS)

    def put(self, relative: str, data: bytes) -> None:
        """Keep the file of a run that was written to another store."""
        path = self.folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, lambda file: file.write(data))

    def files(self) -> list[Path]:
        """All files that are to be merged into another store."""
        return [*sorted((self.folder / CONTENT).glob("*/*/*.parquet")), *self.paths()]

    def paths(self) -> list[Path]:
        """The files of all runs."""
        return sorted((self.folder / RUNS).glob("*/*/*.parquet"))

    def digests(self) -> Iterator[Digest]:
        """Every run in a few numbers."""
        for path in self.paths():
            yield read_digest(path)


def read_run(path: Path) -> tuple[TrainConfig, Records, bool, dict[str, Any]]:
    """A run as it was written: its configuration, records, whether it failed, and its origin."""
    try:
        about = json.loads(read_about(path)[_ABOUT])
        newer = about["format"] > FORMAT
        failed, origin = bool(about["failed"]), dict(about["origin"])
        config, records = about["config"], read_table(path)
    except Exception as error:  # a damaged file may fail in any way
        raise InputError(f"{path} is no run of a results store: {in_one_line(error)}") from error
    if newer:
        raise InputError(f"{path} was written by a newer Windvane: install a newer one")
    return one_run(config, str(path)), records, failed, origin


def one_run(config: dict[str, Any], source: str) -> TrainConfig:
    """The configuration of a single run, as it was written to `source`."""
    run = TrainConfig.from_json(config, source)
    if len(run.runs) != 1:
        raise InputError(f"{source} must have the configuration of 1 run, not of {len(run.runs)}")
    return run


def read_digest(path: Path) -> Digest:
    """A run in a few numbers."""
    run, records, failed, origin = read_run(path)
    return digest(run, records, failed, origin)


def place(run: TrainConfig) -> Path:
    """Where a run is kept in any store: by its problem, its cell, then all other settings as a
    fingerprint, and its seed.
    """
    cell = f"{run.agent}-{run.replay}-{run.weights}"
    (seed,) = run.seed_numbers
    return Path(RUNS) / run.env / cell / f"{fingerprint(run)}-seed-{seed}.parquet"


def fingerprint(run: TrainConfig) -> str:
    """A short name for all settings that are not in the names of the problem and of the cell.

    Only those count that are not at their defaults, so that runs keep their places when there are
    new settings, whose defaults must mean what was before. A default that changes needs another
    `FORMAT`, which counts, too.
    """
    defaults = setting(TrainConfig())
    changed = {name: x for name, x in setting(run).items() if x != defaults[name]}
    return mark({"format": FORMAT, **changed})


def mark(values: dict[str, Any]) -> str:
    """Ten letters and digits for plain values, others for others."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
