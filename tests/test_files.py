"""Files that several processes may be at."""

import errno
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from windvane import files
from windvane.errors import InputError
from windvane.files import (
    BusyError,
    atomic_write,
    file_lock,
    make_folder,
    path_exists,
    read_json,
    read_text,
    write_new,
)


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


IMPOSSIBLE = ["nothing\0here", "x" * 300, "lone \ud800 surrogate"]


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_names_that_no_file_can_have_are_one_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for uses in (
        lambda: path_exists(path),
        lambda: atomic_write(path, lambda file: file.write(b"")),
        lambda: make_folder(path),
        lambda: read_text(path, "the text"),
        lambda: read_json(path, "the settings"),
        lambda: file_lock(path).__enter__(),
    ):
        with pytest.raises(InputError) as caught:
            uses()
        assert "\n" not in str(caught.value)
        assert "\0" not in str(caught.value)


def test_what_exists(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert path_exists(tmp_path / "file")
    assert path_exists(str(tmp_path))
    assert not path_exists(tmp_path / "nothing")
    assert not path_exists(tmp_path / "file" / "below")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic_write(path, lambda file: file.write(b"old"))

    def fail(file: Any) -> None:
        file.write(b"half")
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        atomic_write(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    for folder in (tmp_path, Path("/"), Path()):
        with pytest.raises(InputError, match="Is a directory"):
            atomic_write(folder, lambda file: file.write(b""))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe\0\x01" * 10, "is not text"),
        (b" " * 101, "is larger than 100 bytes"),
        (b"[" * 100, "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b"{'a': 1}", "is not valid JSON"),
    ],
)
def test_a_bad_json_file_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_json(path, "the settings", 100)
    assert "the settings" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_nested_too_deeply(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 10_000 + "]" * 10_000)
    with pytest.raises(InputError, match="nested too deeply"):
        read_json(path, "the settings")
    path.write_text(json.dumps({"a": [1]}))
    assert read_json(path, "the settings") == {"a": [1]}
    with pytest.raises(InputError, match=r"cannot read the settings .*: Is a directory"):
        read_json(tmp_path, "the settings")


def test_without_fcntl_files_are_still_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "fcntl", None)

    def refuse(path: Any, flags: int) -> int:
        raise PermissionError(errno.EACCES, "folders cannot be opened", str(path))

    path, other = tmp_path / "file", _touched(tmp_path / "other")
    monkeypatch.setattr(os, "open", refuse)
    files.move(other, path)
    assert path.exists()
    with file_lock(path):
        assert path.exists()


class Windows:
    """What the part of `msvcrt` that is used here does."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.busy, self.places = False, []

    def locking(self, descriptor: int, mode: int, size: int) -> None:
        self.places.append((os.lseek(descriptor, 0, os.SEEK_CUR), mode, size))
        if self.busy:
            raise PermissionError(errno.EACCES, "Permission denied")


def test_replacing_a_file_that_is_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, replace, refused = tmp_path / "file", os.replace, []

    def refuse_twice(old: Path, new: Path) -> None:
        if len(refused) < 2:
            refused.append(new)
            raise PermissionError(errno.EACCES, "Access is denied", str(new))
        replace(old, new)

    monkeypatch.setattr(os, "replace", refuse_twice)
    monkeypatch.setattr(files, "_PATIENCE", (0.0, 0.0, 0.0))  # as on Windows
    files.atomic_write(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert len(refused) == 2
    monkeypatch.setattr(files, "_PATIENCE", ())
    refused.clear()
    with pytest.raises(InputError, match="Access is denied"):
        files.atomic_write(path, lambda file: file.write(b"newer"))
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_locks_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows()
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setattr(files, "msvcrt", windows)
    path = _touched(tmp_path / "file")
    with file_lock(path):
        windows.busy = True
        with pytest.raises(BusyError, match="another process is training"), file_lock(path):
            pass
    # Behind the end of the file, so that others can read it.
    assert windows.places == [(2**30, 2, 1)] * 2
    assert path.stat().st_size == 0


def _touched(path: Path) -> Path:
    path.touch()
    return path
