"""Files that are there whole or not at all, whatever stops the program; locks, and path checks.

All of it works on Linux, macOS and Windows; what a system lacks (locks, flushing a folder) is left
out there.
"""

import errno
import hashlib
import itertools
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from windvane.errors import InputError, in_one_line, shown

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:  # anywhere else
    msvcrt = None

UNFINISHED = ".writing"
"""Ending of a file that is being written; one that is left over may be removed."""
_LEFTOVER = re.compile(rf".+\.[0-9a-f]{{32}}(\.new)?{re.escape(UNFINISHED)}")
MAX_TEXT = 16 * 2**20
"""Most bytes of a text file from outside."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a file system without locks."""
_PATIENCE = (0.01, 0.03, 0.1, 0.3, 1.0) if os.name == "nt" else ()
"""Seconds between attempts to replace a file: Windows refuses while another process reads it."""
_LOCKED_BYTE = 2**30
"""What Windows locks nobody else can read, so it locks a byte far behind the end of the file."""


def atomic_write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, make sure it is on the disk, and only then move it there."""
    with as_input_error(path):
        if not path.name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        # A name of its own, as another process may be writing the same file.
        temporary = path.with_name(f"{path.name}.{uuid4().hex}{UNFINISHED}")
        try:
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            move(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_new(path: Path, write: Callable[[IO[bytes]], object]) -> bool:
    """Write a file as a whole, unless it is there: what another process holds is not replaced.

    Whether it was written: of several processes that try at once, one has written it.
    """
    own = path.with_name(f"{path.name}.{uuid4().hex}.new{UNFINISHED}")
    atomic_write(own, write)
    try:
        os.link(own, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        with as_input_error(path):
            if path.exists():
                return False
            os.replace(own, path)
    finally:
        own.unlink(missing_ok=True)
    with as_input_error(path):
        _flush_folder(path.parent)
    return True


def move(temporary: Path, path: Path) -> None:
    """Rename a file, for good."""
    for seconds in _PATIENCE:
        try:
            os.replace(temporary, path)
            break
        except PermissionError:
            time.sleep(seconds)
    else:
        os.replace(temporary, path)
    _flush_folder(path.parent)


def make_folder(path: Path) -> Path:
    """Make a folder that can be written to."""
    with as_input_error(path):
        path.mkdir(parents=True, exist_ok=True)
        trial = path / f"trial.{uuid4().hex}{UNFINISHED}"
        trial.touch()
        trial.unlink()
    return path


def path_exists(path: str | Path) -> bool:
    """Whether there is a file or a folder; InputError for what no path can be called."""
    check_name(path)
    try:
        return Path(path).exists()
    except OSError as error:
        raise InputError(f"cannot open {shown(str(path))}: {error.strerror or error}") from error


def shown_path(path: str | Path | bytes) -> str:
    """A path as part of a sentence: on one line, and not too long."""
    text = " ".join(str(path).split())
    return text if len(text) <= 300 else f"{text[:100]}...{text[-100:]}"


def check_name(path: str | Path) -> None:
    """Complain about a path that no system could have."""
    try:
        wrong = b"\0" in os.fsencode(path)
    except ValueError:  # characters that cannot be encoded
        wrong = True
    if wrong:
        raise InputError(
            f"{shown(str(path))} cannot be a path: it has a character that no file name may have"
        )


def file_size(path: str | Path, what: str = "the file") -> int:
    """Bytes of a file from outside, which must be there and be a plain file: to open a pipe or a
    device could wait for ever. `what` is it called in the sentence about a bad one.
    """
    check_name(path)
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(_unreadable(path, what, error)) from error
    if not stat.S_ISREG(status.st_mode):
        folder = stat.S_ISDIR(status.st_mode)
        reason = os.strerror(errno.EISDIR) if folder else "it is a pipe or a device, not a file"
        raise InputError(f"cannot read {what} {shown_path(path)}: {reason}")
    return status.st_size


def read_bytes(path: str | Path, what: str = "the file", most: int = MAX_TEXT) -> bytes:
    """What a file from outside holds, if that is not more than `most` bytes."""
    size = file_size(path, what)
    try:
        with Path(path).open("rb") as file:
            # Python sets memory aside for all that is asked for.
            data = file.read(min(most, max(size, MAX_TEXT)) + 1)
    except OSError as error:
        raise InputError(_unreadable(path, what, error)) from error
    if len(data) > most:
        raise InputError(f"cannot read {what} {shown_path(path)}: it is larger than {most:,} bytes")
    return data


def read_text(path: str | Path, what: str = "the file", most: int = MAX_TEXT) -> str:
    """The text of a file from outside."""
    data = read_bytes(path, what, most)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"cannot read {what} {shown_path(path)}: it is not text (UTF-8)"
        ) from error


def read_json(path: str | Path, what: str = "the file", most: int = MAX_TEXT) -> Any:
    """What a JSON file from outside holds."""
    text = read_text(path, what, most)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError(
            f"{what} {shown_path(path)} is not usable: it is nested too deeply"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{what} {shown_path(path)} is not valid JSON: {in_one_line(error)}"
        ) from error


@contextmanager
def faults_of(path: str | Path, what: str) -> Iterator[None]:
    """Turn a complaint about what a file holds into one that names the file."""
    try:
        yield
    except InputError as error:
        raise InputError(
            f"{what} {shown_path(path)} is not usable: {in_one_line(error)}"
        ) from error


def own_files(folder: Path, name: re.Pattern[str]) -> list[Path]:
    """The plain files of a folder whose whole names match, in order. No link is followed, as what
    lies behind it need not be ours.
    """
    try:
        if folder.is_symlink() or not folder.is_dir():
            return []
        named = (path for path in folder.iterdir() if name.fullmatch(path.name))
        return sorted(path for path in named if _is_plain(path))
    except OSError as error:
        raise InputError(_unreadable(folder, "the folder", error)) from error


def remove_files(paths: Iterable[Path], begins: bytes = b"") -> None:
    """Remove plain files that begin with the bytes that a file of their kind begins with. A folder,
    a link or another file that has the name of one is left alone.
    """
    for path in paths:
        with suppress(OSError):
            if _is_plain(path) and _begins(path, begins):
                path.unlink()


def _is_plain(path: Path) -> bool:
    """Whether it is a file, and neither a link nor gone meanwhile."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _begins(path: Path, begins: bytes) -> bool:
    if not begins:
        return True
    with path.open("rb") as file:
        return file.read(len(begins)) == begins


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be used, so that it is neither read again nor lost."""
    names = (path.with_name(f"{path.name}.aside{number}") for number in itertools.count(1))
    aside = next(name for name in names if not path_exists(name))
    with as_input_error(path):
        os.replace(path, aside)
    return aside


def file_sum(path: Path, what: str = "the file") -> str:
    """The SHA-256 sum of a file."""
    file_size(path, what)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(_unreadable(path, what, error)) from error


def remove_folder(path: Path) -> None:
    """Remove a folder of ours, unless it is a link or something else lies in it."""
    if not path.is_symlink():
        with suppress(OSError):
            path.rmdir()


def sweep(*folders: Path) -> None:
    """Remove what writing left in folders when it was killed."""
    for folder in folders:
        remove_files(own_files(folder, _LEFTOVER))


class BusyError(InputError):
    """Another process holds the file."""


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a file meanwhile, so that no other process does; let go of it however this one ends."""
    check_name(path)
    gone = f"another process has just finished with {path}"
    try:
        opened = path.open("r+b")  # some file systems lock only what may be written
    except FileNotFoundError as error:
        raise BusyError(gone) from error
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    with opened as file:
        try:
            _lock(file)
        except (BlockingIOError, PermissionError) as error:
            raise BusyError(f"another process is training in {path.parent}") from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise InputError(f"cannot lock {path}: {error.strerror or error}") from error
        if not _is_at(file, path):
            raise BusyError(gone)
        yield


@contextmanager
def as_input_error(path: Path) -> Iterator[None]:
    """Turn what the system refuses into an InputError that names the file."""
    check_name(path)
    try:
        yield
    except OSError as error:
        what = error.filename or path
        if str(what).endswith(UNFINISHED):  # means nothing to whoever reads it
            what = path
        reason = error.strerror or error
        raise InputError(
            f"cannot write {shown_path(what)}: {reason}; what was written before is untouched"
        ) from error


def _unreadable(path: str | Path, what: str, error: OSError) -> str:
    return f"cannot read {what} {shown_path(path)}: {error.strerror or error}"


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except OSError:
        return False


def _lock(file: IO[bytes]) -> None:
    """Lock an open file until it is closed, or raise an OSError at once."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        windows: Any = msvcrt
        file.seek(_LOCKED_BYTE)
        windows.locking(file.fileno(), windows.LK_NBLCK, 1)


def _flush_folder(folder: Path) -> None:
    """Make sure that a new name in a folder is on the disk, where the system can do that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
