"""Checksums of tables: in a Parquet file a flipped bit reads as another number, as nothing odd, or
ends the program, as polars allocates whatever it is told.

A file states the SHA-256 of all its bytes, with zeros where that stands itself, so that it can be
checked before anything else looks at the file. Files of earlier versions state none. What may not
live here: reading, as that needs polars.
"""

import hashlib
import io
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from windvane.errors import InputError
from windvane.files import atomic_write
from windvane.runs.tables import Records

KEY = "windvane.checksum"
"""Its name in the metadata of a file, which holds all texts as they are."""
_PREFIX = b"windvane-sha256:"
_OPEN = _PREFIX + b"0" * 64


def write_checked(path: Path, columns: Records, about: Mapping[str, str] | None = None) -> None:
    """Write a table, with its checksum; `about` goes into the file's metadata."""
    data = _encode(columns, {**(about or {}), KEY: _OPEN.decode()})
    place = data.rindex(_PREFIX)
    sealed = data[:place] + _seal(data) + data[place + len(_OPEN) :]
    atomic_write(path, lambda file: file.write(sealed))


def require_intact(data: bytes) -> None:
    """Complain about a file whose bytes are not those that were written."""
    place = data.rfind(_PREFIX)
    if place < 0 and KEY.encode() not in data:
        return
    end = place + len(_OPEN)
    if place < 0 or data[place:end] != _seal(data[:place] + _OPEN + data[end:]):
        raise InputError("it is damaged or was edited: its checksum is that of another content")


def _seal(data: bytes) -> bytes:
    return _PREFIX + hashlib.sha256(data).hexdigest().encode()


def _encode(columns: Records, about: dict[str, str]) -> bytes:
    """A table as Parquet, by polars or by pyarrow where there is only that."""
    file = io.BytesIO()
    try:
        import polars
    except ImportError:
        try:
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise InputError("a store needs polars or pyarrow: install one of them") from error
        table = arrow.table(columns).replace_schema_metadata(about)
        parquet.write_table(table, file, compression="zstd")
    else:
        polars.DataFrame(columns).write_parquet(file, metadata=about)
    return file.getvalue()
