"""Intermediate results of a long search on disk, so that a stopped search goes on where it was."""

import json
from pathlib import Path
from typing import Any


class Scratch:
    """A small dictionary kept in a JSON file; without a path it lives in memory alone."""

    def __init__(self, path: Path | None = None):
        """Read what an earlier search left, if it can be read."""
        self._path = path
        self._entries: dict[str, Any] = {}
        if path is not None and path.exists():
            try:
                self._entries = json.loads(path.read_text())
            except (OSError, ValueError):
                self._entries = {}

    def get(self, name: str) -> Any | None:
        """What was put under `name`, or None."""
        return self._entries.get(name)

    def put(self, name: str, value: Any) -> None:
        """Keep `value`; a folder that cannot be written only costs the chance to resume."""
        self._entries[name] = value
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial = self._path.with_suffix(".writing")
            partial.write_text(json.dumps(self._entries))
            partial.replace(self._path)
        except OSError:
            self._path = None

    def remove(self) -> None:
        """Forget everything; the search is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
