"""Checksums of tables: in a Parquet file a flipped bit reads as another number, as nothing odd, or
ends the program, as polars allocates whatever it is told.

A file states the SHA-256 of all its bytes, with zeros where that stands itself, so that it can be
checked before anything else looks at the file. Files of earlier versions state none. What may not
live here: writing and reading tables (see `tables.py`).
"""

import hashlib

from windvane.errors import InputError

KEY = "windvane.checksum"
"""Its name in the metadata of a file, which holds all texts as they are."""
_PREFIX = b"windvane-sha256:"
_OPEN = _PREFIX + b"0" * 64
OPEN = _OPEN.decode()
"""What stands there before the checksum is known."""


def seal(data: bytes) -> bytes:
    """The bytes of a file that has `OPEN` in its metadata, with its checksum instead."""
    place = data.rindex(_PREFIX)
    return data[:place] + _sum(data) + data[place + len(_OPEN) :]


def require_intact(data: bytes) -> None:
    """Complain about a file whose bytes are not those that were written."""
    place = data.rfind(_PREFIX)
    if place < 0 and KEY.encode() not in data:
        return
    end = place + len(_OPEN)
    if place < 0 or data[place:end] != _sum(data[:place] + _OPEN + data[end:]):
        raise InputError("it is damaged or was edited: its checksum is that of another content")


def _sum(data: bytes) -> bytes:
    return _PREFIX + hashlib.sha256(data).hexdigest().encode()
