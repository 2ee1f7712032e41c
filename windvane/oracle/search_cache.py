"""Intermediate results of a long search on disk, so that an interrupted search can be resumed."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from windvane.errors import InputError
from windvane.files import atomic_write, read_bytes

MAX_BYTES = 64 * 2**20
"""A larger file is not a search cache and counts as empty."""


class SearchCache:
    """A small dictionary kept in a JSON file; without a path it lives in memory alone."""

    def __init__(self, path: Path | None = None):
        """Read what an earlier search left; a file that cannot be read counts as empty."""
        self._path = path
        self._entries = {} if path is None else _read(path)

    def get(self, name: str) -> Any | None:
        """The value stored under `name`, or None."""
        return self._entries.get(name)

    def put(self, name: str, value: Any) -> None:
        """Store `value`; without a writable folder, an interrupted search starts over."""
        self._entries[name] = value
        if self._path is None:
            return
        text = json.dumps(self._entries)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(self._path, lambda file: file.write(text.encode()))
        except (OSError, InputError):
            self._path = None

    def remove(self) -> None:
        """Delete the file; the search is done."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()


def _read(path: Path) -> dict[str, Any]:
    try:
        entries = json.loads(read_bytes(path, "the cache", MAX_BYTES))
    except (ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}
