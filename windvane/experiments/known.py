"""Which runs are there already: in a results store, or in a digest of one that was published."""

from collections.abc import Container, Iterable
from pathlib import Path

from windvane.errors import InputError
from windvane.experiments.digest import Digest
from windvane.experiments.digest_files import read_digests
from windvane.experiments.store import Store, place
from windvane.training.config import TrainConfig


def digests_in(folder: Path) -> list[Digest]:
    """Every run of a store, or of a digest of one; InputError if there is none."""
    return merged(_published(folder), Store(folder).digests())


def places_in(folder: str | Path | None) -> set[Path]:
    """The places of these runs in any store; to know them, no file of a store need be read.

    Without a folder nothing is known.
    """
    if folder is None:
        return set()
    store = Store(Path(folder))
    published = {place(digest.config) for digest in _published(store.folder)}
    return published | {path.relative_to(store.folder) for path in store.paths()}


def missing(
    runs: Iterable[TrainConfig], store: Store, elsewhere: Container[Path] = ()
) -> list[TrainConfig]:
    """The runs that are not in the store and have no place `elsewhere`."""
    return [run for run in runs if not (store.has(run) or place(run) in elsewhere)]


def merged(before: Iterable[Digest], after: Iterable[Digest]) -> list[Digest]:
    """All runs; where a run is in both, the later one."""
    return list({place(digest.config): digest for digest in (*before, *after)}.values())


def _published(folder: Path) -> list[Digest]:
    """The digest in a folder, if there is one; InputError if there is no run at all."""
    try:
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}")
        stored = Store(folder).paths()
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror}") from error
    digests = read_digests(folder)
    if not (digests or stored):
        raise InputError(f"there are no finished runs in {folder}")
    return digests
