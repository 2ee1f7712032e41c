"""Which runs are there already: in a results store, or in a digest of one that was published."""

from collections.abc import Iterable
from pathlib import Path

from windvane.errors import InputError
from windvane.experiments.digest import Digest
from windvane.experiments.digest_files import read_digests
from windvane.experiments.store import Store, place
from windvane.training.config import TrainConfig


def digests_in(folder: Path) -> list[Digest]:
    """Every run of a store, or of a digest of one; InputError if there is none."""
    return merged(_published(folder), Store(folder).digests())


def places_in(folder: Path) -> set[Path]:
    """The places of these runs in any store; to know them, no file of a store need be read."""
    stored = {path.relative_to(folder) for path in Store(folder).paths()}
    return stored | {place(digest.config) for digest in _published(folder)}


def merged(before: Iterable[Digest], after: Iterable[Digest]) -> list[Digest]:
    """All runs; where a run is in both, the later one."""
    return list({place(digest.config): digest for digest in (*before, *after)}.values())


def unknown(runs: Iterable[TrainConfig], known: str | Path | None) -> list[TrainConfig]:
    """The runs that are not in the folder `known`, a store or a digest of one."""
    there = set() if known is None else places_in(Path(known))
    return [run for run in runs if place(run) not in there]


def _published(folder: Path) -> list[Digest]:
    """The digest in a folder, if there is one; InputError if there is no run at all."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    digests = read_digests(folder)
    if not (digests or Store(folder).paths()):
        raise InputError(f"there are no finished runs in {folder}")
    return digests
