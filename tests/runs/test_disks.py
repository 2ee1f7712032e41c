"""Disks that are full, read-only or somebody else's: one sentence, and exact once there is room."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runs.crashes import stop_after
from tests.runs.small import files_of, results_of, small
from windvane import resume, train
from windvane.errors import InputError
from windvane.runs.result import Result
from windvane.runs.stopping import TrainingStopped

pytestmark = pytest.mark.slow
root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)):
        pytest.skip("no disk may be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, progress=False)


def refused(work: Callable[[], object], reason: str) -> None:
    with pytest.raises(InputError, match=reason) as complaint:
        work()
    assert "\n" not in str(complaint.value)


@root
def test_a_full_disk_at_any_file(disk: Path, finished: Result) -> None:
    assert finished.folder is not None
    expected, filler = results_of(finished.folder), disk / "filler"
    failures = 0
    for left in range(0, 400_000, 8_192):
        folder = disk / f"run-{left}"
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        filler.write_bytes(bytes(max(free - left, 0)))
        complaint = None
        try:
            train(small(), out=folder, progress=False)
        except InputError as error:
            complaint = str(error)
        filler.unlink()
        if complaint is not None:
            failures += 1
            assert "No space left on device" in complaint
            assert "\n" not in complaint
            if (folder / "config.json").exists():
                resume(folder, progress=False)
            else:
                train(small(), out=folder, progress=False)
        assert results_of(folder) == expected, left
        subprocess.run(["rm", "-r", str(folder)], check=True)
        if complaint is None:
            break
    assert failures > 8


@root
def test_a_disk_that_becomes_read_only(
    disk: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finished.folder is not None
    folder = disk / "run"
    stopped(folder, monkeypatch)
    before = files_of(folder)
    assert mount("-o", "remount,ro", str(disk))
    refused(lambda: resume(folder, progress=False), "Read-only file system")
    refused(lambda: train(small(), out=disk / "new", progress=False), "Read-only file system")
    assert mount("-o", "remount,rw", str(disk))
    assert files_of(folder) == before
    resume(folder, progress=False)
    assert results_of(folder) == results_of(finished.folder)
    # What is finished can be read from such a disk.
    assert mount("-o", "remount,ro", str(disk))
    resume(folder, progress=False)


@contextmanager
def nobody() -> Iterator[None]:
    """Somebody without any right to the files meanwhile."""
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@root
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_folder_of_somebody_else(
    mode: int, tmp_path: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finished.folder is not None
    folder = tmp_path / "run"
    stopped(folder, monkeypatch)
    before = files_of(folder)
    for parent in folder.parents:
        if os.stat(parent).st_mode & 0o5 != 0o5:
            parent.chmod(0o755)
    folder.chmod(mode)
    with nobody():
        refused(lambda: resume(folder, progress=False), "Permission denied")
        refused(lambda: train(small(), out=folder, progress=False), "Permission denied|already")
        refused(lambda: train(small(), out=folder / "new", progress=False), "Permission denied")
    folder.chmod(0o755)
    assert files_of(folder) == before
    resume(folder, progress=False)
    assert results_of(folder) == results_of(finished.folder)
