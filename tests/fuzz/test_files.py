"""Malformed files of every kind: one sentence or no harm, in time, and nothing else is touched."""

import shutil
from pathlib import Path

import pytest

from tests.fuzz.attempt import Tally, snapshot
from tests.fuzz.corruptions import Corruption, remove, written
from tests.fuzz.specimens import KINDS, Kind

QUICK = 4
"""Of every kind, so many in the quick tests."""


def spoil(
    base: Path, kind: Kind, cases: list[Corruption], capfd: pytest.CaptureFixture[str], every: int
) -> Tally:
    """Try all of `cases` on a copy, and every so many of them with a command, too."""
    path, tally = base / kind.file, Tally()
    data, before = path.read_bytes(), snapshot(base, path)
    for index, case in enumerate(cases):
        case.apply(path)
        named = (path.name, str(path.parent)[:60])
        tally.attempt(case.what, lambda: kind.read(path), named)
        if kind.command is not None and index % every == 0:
            tally.command(case.what, kind.command(path), capfd)
        remove(path)
        path.write_bytes(data)
        if snapshot(base, path) != before:
            tally.wrong.append(f"{case.what}: another file was changed")
            break
    return tally


def swapped(base: Path, kind: Kind) -> list[Corruption]:
    """The good files of all other kinds."""
    return [
        written(f"the file of a {name}", (base / other.file).read_bytes())
        for name, other in KINDS.items()
        if other.file != kind.file
    ]


@pytest.fixture
def base(specimens: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(specimens, tmp_path / "files"))


@pytest.mark.parametrize("name", KINDS)
def test_good_files_are_read(name: str, base: Path) -> None:
    KINDS[name].read(base / KINDS[name].file)


@pytest.mark.parametrize("name", KINDS)
def test_some_malformed_files(name: str, base: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kind = KINDS[name]
    cases = kind.cases((base / kind.file).read_bytes())
    spoil(base, kind, cases[:: -(-len(cases) // QUICK)], capfd, 1_000).check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_all_malformed_files(name: str, base: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kind = KINDS[name]
    cases = [*kind.cases((base / kind.file).read_bytes()), *swapped(base, kind)]
    tally = spoil(base, kind, cases, capfd, 12)
    with capfd.disabled():
        tally.check(name)


@pytest.mark.slow
def test_there_are_enough(base: Path) -> None:
    number = sum(len(kind.cases((base / kind.file).read_bytes())) for kind in KINDS.values())
    assert number > 1_500
