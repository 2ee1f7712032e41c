"""Files that are there whole or not at all, whatever stops the program."""

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from windvane.errors import InputError

UNFINISHED = ".writing"
"""Ending of a file that is being written; one that is left over may be removed."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What a file system without locks answers."""


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, make sure it is on the disk, and only then move it there."""
    # A name of its own, as another process may be writing the same file.
    scratch = path.with_name(f"{path.name}.{uuid4().hex}{UNFINISHED}")
    with one_sentence(path):
        try:
            with scratch.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            move(scratch, path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise


def write_new(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file as a whole, unless it is there: what another process holds is not replaced."""
    own = path.with_name(f"{path.name}.{uuid4().hex}.new{UNFINISHED}")
    write_whole(own, write)
    try:
        os.link(own, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        if not path.exists():
            os.replace(own, path)
    finally:
        own.unlink(missing_ok=True)


def move(scratch: Path, path: Path) -> None:
    """Rename a file, for good."""
    os.replace(scratch, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_folder(path: Path) -> Path:
    """Make a folder that can be written to."""
    with one_sentence(path):
        path.mkdir(parents=True, exist_ok=True)
        trial = path / f"trial.{uuid4().hex}{UNFINISHED}"
        trial.touch()
        trial.unlink()
    return path


class BusyError(InputError):
    """Another process is at it."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a file meanwhile, so that no other process does; let go of it however this one ends."""
    gone = f"another process has just finished with {path}"
    try:
        held = path.open("r+b")  # some file systems lock only what may be written
    except FileNotFoundError as error:
        raise BusyError(gone) from error
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    with held as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(f"another process is training in {path.parent}") from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise InputError(f"cannot lock {path}: {error.strerror or error}") from error
        if not (path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))):
            raise BusyError(gone)
        yield


@contextmanager
def one_sentence(path: Path) -> Iterator[None]:
    """What the system refuses becomes one sentence that names the file."""
    try:
        yield
    except OSError as error:
        what = error.filename or path
        if str(what).endswith(UNFINISHED):  # means nothing to whoever reads it
            what = path
        reason = error.strerror or error
        raise InputError(
            f"cannot write {what}: {reason}; what was written before is untouched"
        ) from error


MAX_JSON_BYTES = 16 * 2**20


def read_json(path: Path) -> Any:
    """What a JSON file holds; InputError if it cannot be read, or is too large to be meant."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise InputError(f"{path} is too large: at most {MAX_JSON_BYTES // 2**20} MiB")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
