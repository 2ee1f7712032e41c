"""Files that several processes may be at."""

import multiprocessing
from pathlib import Path

import pytest

from windvane.errors import InputError
from windvane.files import BusyError, file_lock, make_folder, write_new


def make_often(path: Path) -> None:
    for _ in range(300):
        make_folder(path)


def test_two_processes_make_one_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=make_often, args=(tmp_path / "work",)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert list((tmp_path / "work").iterdir()) == []


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_new(path, lambda file: file.write(b"first"))
    with file_lock(path):
        write_new(path, lambda file: file.write(b"second"))
        with pytest.raises(BusyError, match="another process is training"), file_lock(path):
            pass
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_gone_cannot_be_held(tmp_path: Path) -> None:
    with (
        pytest.raises(BusyError, match="another process has just finished"),
        file_lock(tmp_path / "a"),
    ):
        pass
    with pytest.raises(InputError, match="cannot write"), file_lock(tmp_path):
        pass
