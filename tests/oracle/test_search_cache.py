"""What an interrupted search left, whole or damaged."""

import json
from pathlib import Path
from typing import Any

import pytest

from windvane.envs.minecart import Minecart
from windvane.oracle.minecart import _cached_routes
from windvane.oracle.minecart_routes import Route, Stop
from windvane.oracle.search_cache import SearchCache

ROUTE = Route((Stop(1, 2),), (3, 5, 4), (3, 5), True)


def test_what_was_put_is_there_after_an_interruption(tmp_path: Path) -> None:
    path = tmp_path / "new" / "search.json"
    SearchCache(path).put("mine 1", [ROUTE.to_json()])
    again = SearchCache(path)
    assert _cached_routes(Minecart(), again, 1) == [ROUTE]
    assert _cached_routes(Minecart(), again, 0) == []
    assert list(path.parent.iterdir()) == [path]
    again.remove()
    assert SearchCache(path).get("mine 1") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\x00", b"{", b"[1]", b"7", b"[" * 10_000 + b"]" * 10_000, b" " * (2**26 + 1)],
)
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "search.json"
    path.write_bytes(content)
    cache = SearchCache(path)
    assert cache.get("mine 0") is None
    cache.put("mine 0", [])
    assert json.loads(path.read_text()) == {"mine 0": []}


@pytest.mark.parametrize(
    "entry",
    [
        3,
        "route",
        [3],
        [[1, 2]],
        [[[[1, 2]], [3], [3]]],
        [[[[1, 2]], [3.5], [3], True]],
        [[[[1, 2]], [6], [3], True]],
        [[[[1, 2]], [3], [-1], True]],
        [[[[4, 2]], [3], [3], True]],
        [[[[1, 2, 3]], [3], [3], True]],
        {"a": 1},
    ],
)
def test_entries_that_are_no_routes_are_searched_anew(entry: Any) -> None:
    cache = SearchCache()
    cache.put("mine 1", entry)
    assert _cached_routes(Minecart(), cache, 1) == []


def test_a_folder_that_cannot_be_written_only_costs_the_resumption(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = SearchCache(tmp_path / "file" / "search.json")
    cache.put("mine 1", [1])
    assert cache.get("mine 1") == [1]
    cache.remove()
