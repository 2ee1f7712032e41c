"""Ways to spoil a file, by the file's form: each is a description and the bytes that it leaves.

Everything follows from a seed. What may not live here: which files there are, and who reads them.
"""

import io
import json
import math
import os
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl


class Corruption(NamedTuple):
    """What was done to a file."""

    what: str
    apply: Callable[[Path], None]


def written(what: str, data: bytes) -> Corruption:
    """A file with other content."""

    def apply(path: Path) -> None:
        path.write_bytes(data)

    return Corruption(what, apply)


DEEP = "[" * 20_000 + "]" * 20_000
VALUES: tuple[Any, ...] = (
    None, True, "text", "", -1, 0, 2**31, 10**30, 1e308, -0.5, math.nan, math.inf, [], [[]], {},
    {"a": 1}, ["a", "b"], "\0", "x" * 5_000, [1, [2, [3, [4]]]], "a\nb", "../../etc", "custom:X",
)  # fmt: skip
"""What stands in the place of a value in JSON."""


def of_bytes(data: bytes, draw: np.random.Generator, number: int) -> Iterator[Corruption]:
    """For files of any form: flipped bits, pieces that are missing, doubled or zero."""
    for _ in range(number):
        place = int(draw.integers(max(len(data), 1)))
        bit = 1 << int(draw.integers(8))
        if data:
            flipped = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
            yield written(f"bit {bit} of byte {place} flipped", flipped)
        yield written(f"cut at byte {place}", data[:place])
        size = int(draw.integers(1, 64))
        yield written(f"{size} zeros at {place}", data[:place] + bytes(size) + data[place + size :])
        yield written(f"{size} bytes lost at {place}", data[:place] + data[place + size :])
    yield written("twice", data + data)
    yield written("garbage", draw.bytes(500))
    yield written("garbage before it", draw.bytes(8) + data)
    yield written("empty", b"")


def of_places() -> Iterator[Corruption]:
    """Something else than a file in its place."""

    def folder(path: Path) -> None:
        path.unlink()
        path.mkdir()

    def pipe(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    def link(target: str) -> Callable[[Path], None]:
        def apply(path: Path) -> None:
            path.unlink()
            path.symlink_to(target.format(name=path.name))

        return apply

    yield Corruption("a folder", folder)
    yield Corruption("a pipe", pipe)
    yield Corruption("a link to nothing", link("nowhere"))
    yield Corruption("a link to itself", link("{name}"))
    yield Corruption("a device", link("/dev/zero"))


def remove(path: Path) -> None:
    """Remove whatever a corruption put in a file's place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


def of_json(data: bytes, draw: np.random.Generator) -> Iterator[Corruption]:
    """Other values in every place, entries that are missing or too many, and deep nesting."""
    for what, text in json_texts(json.loads(data), draw):
        yield written(what, text.encode())


def json_texts(values: Any, draw: np.random.Generator) -> Iterator[tuple[str, str]]:
    """The same as texts."""
    places = list(_places(values))
    for place in places:
        for index in draw.choice(len(VALUES), 5, replace=False):
            changed = _replaced(values, place, VALUES[index])
            yield f"{_name(place)} is {VALUES[index]!r:.40}", json.dumps(changed)
    for place in places:
        if place:
            yield f"without {_name(place)}", json.dumps(_without(values, place))
    if isinstance(values, dict):
        yield "an unknown entry", json.dumps(values | {"unknown": 1})
        yield "an entry twice", json.dumps(values)[:-1] + ', "format": 1}'
        first = next(iter(values))
        yield "nested deeply", json.dumps(values | {first: 0}).replace(": 0", f": {DEEP}", 1)
    yield "nothing but nesting", DEEP
    yield "a very long number", "9" * 10_000
    yield "not closed", json.dumps(values)[:-1]
    yield "within a list", json.dumps([values])


def of_table(data: bytes, draw: np.random.Generator) -> Iterator[Corruption]:
    """Columns that are missing, renamed or of another type, other numbers, rows in disorder;
    without a checksum, which would have all refused before anybody looks at a column.
    """
    frame = pl.read_parquet(io.BytesIO(data))
    about = pl.read_parquet_metadata(io.BytesIO(data))
    left_out = ("ARROW:schema", "windvane.checksum")
    about = {name: text for name, text in about.items() if name not in left_out}
    for what, changed in _frames(frame, draw):
        yield written(what, to_parquet(changed, about))


def to_parquet(frame: pl.DataFrame, about: dict[str, str]) -> bytes:
    """A table as a file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata=about)
    return buffer.getvalue()


def _frames(frame: pl.DataFrame, draw: np.random.Generator) -> Iterator[tuple[str, pl.DataFrame]]:
    rows = len(frame)
    names = frame.columns
    if len(names) > 30:  # the curves of summaries: some of them
        names = [names[i] for i in sorted(draw.choice(len(names), 30, replace=False))]
    for name in names:
        column, row = frame[name], int(draw.integers(rows))
        yield f"without {name}", frame.drop(name)
        yield f"{name} renamed", frame.rename({name: f"{name}x"})
        yield f"{name} as text", frame.with_columns(column.cast(pl.String))
        yield f"{name} as truths", frame.with_columns(pl.Series(name, [True] * rows))
        yield f"{name} as lists", frame.with_columns(pl.Series(name, [[1, 2]] * rows))
        yield f"{name} as dates", frame.with_columns(pl.Series(name, [0] * rows, pl.Datetime))
        yield f"{name} missing in a row", _with(frame, name, row, None)
        if column.dtype.is_numeric():
            yield f"{name} as numbers with a fraction", frame.with_columns(column.cast(float) + 0.5)
            for value in (math.nan, math.inf, -1e300, -1.0, 1e300):
                changed = frame.with_columns(column.cast(pl.Float64))
                yield f"{name} is {value} in a row", _with(changed, name, row, value)
            for value in (-1, 2**40):
                if column.dtype.is_integer():
                    changed = frame.with_columns(column.cast(pl.Int64))
                    yield f"{name} is {value} in a row", _with(changed, name, row, value)
            yield f"{name} reversed", frame.with_columns(column.reverse())
    yield "no rows", frame.head(0)
    yield "no columns", pl.DataFrame()
    yield "rows twice", pl.concat([frame, frame])
    yield "a row twice", pl.concat([frame, frame.tail(1)])
    yield "rows reversed", frame.reverse()
    yield "rows shuffled", frame.sample(fraction=1.0, shuffle=True, seed=1)
    yield "a column more", frame.with_columns(more=pl.lit("x"))
    yield "columns in another order", frame.select(frame.columns[::-1])
    yield "the first rows alone", frame.head(max(rows // 2, 1))


def of_archive(data: bytes, draw: np.random.Generator) -> Iterator[Corruption]:
    """Arrays of NumPy's archives: other types, shapes and headers, and sizes that are not so."""
    with np.load(io.BytesIO(data)) as loaded:
        arrays: dict[str, Any] = dict(loaded.items())
    name = next(name for name, array in arrays.items() if array.size > 1 and name != "header")
    array = arrays[name]
    changes: dict[str, dict[str, Any]] = {
        "another type": {name: array.astype(np.float16)},
        "text": {name: array.astype(str)},
        "complex numbers": {name: array.astype(np.complex64)},
        "another shape": {name: array[None]},
        "fewer numbers": {name: array.ravel()[:-1]},
        "huge": {name: np.zeros(10**7)},
        "no header": {"header": None},
        "a header of zeros": {"header": np.zeros(3, np.uint8)},
        "an array more": {"more": np.zeros(3)},
        "an array less": {name: None},
        "objects": {name: np.asarray([{}, []], object)},
    }
    for what, change in changes.items():
        changed = {n: a for n, a in (arrays | change).items() if a is not None}
        yield written(f"{name}: {what}", _packed(changed))
    yield written("compressed", _packed(arrays, np.savez_compressed))
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in arrays:
            archive.writestr(f"{member}.npy", bytes(20 * 2**20))
    yield written("a bomb", bomb.getvalue())
    for place in ("central", "local"):
        yield written(f"sizes in the {place} directory", _with_sizes(data, place))
    header = arrays["header"]
    as_bytes = header.dtype == np.uint8
    values = json.loads(header.tobytes() if as_bytes else str(header))
    listed = values.pop("arrays", None)
    for what, text in json_texts(values, draw):
        if listed is not None and text.startswith("{"):
            text = f'{text[:-1]}, "arrays": {json.dumps(listed)}}}'
        changed = np.frombuffer(text.encode(), np.uint8) if as_bytes else np.asarray(text)
        yield written(f"header: {what}", _packed(arrays | {"header": changed}))


def of_policy(data: bytes, draw: np.random.Generator) -> Iterator[Corruption]:
    """The header of Windvane's, and the arrays, of a file in the form of safetensors."""
    from safetensors.numpy import load, save

    arrays = load(data)
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])["__metadata__"]["windvane"]
    unsigned = json.loads(header)
    del unsigned["header_checksum"]  # or it would be all that is looked at
    for what, text in json_texts(unsigned, draw):
        yield written(what, save(arrays, {"windvane": text}))
    name, array = next((n, a) for n, a in arrays.items() if a.size > 1)
    for what, change in {
        "a number that is NaN": _first(array, np.nan),
        "a number that is infinite": _first(array, np.inf),
        "another type": array.astype(np.float64),
        "another shape": array.reshape(-1),
        "fewer numbers": np.ascontiguousarray(array[:-1]),
    }.items():
        yield written(f"{name}: {what}", save(arrays | {name: change}, {"windvane": header}))
    fewer = {n: a for n, a in arrays.items() if n != name}
    yield written("an array less", save(fewer, {"windvane": header}))
    yield written("an array more", save(arrays | {"more": array}, {"windvane": header}))
    yield written("no header", save(arrays))
    for length in (0, 2**40, 2**63, size + 1):
        yield written(f"its header states {length} bytes", struct.pack("<Q", length) + data[8:])


def _first(array: np.ndarray, value: float) -> np.ndarray:
    changed = array.copy()
    changed.flat[0] = value
    return changed


def _packed(arrays: dict[str, Any], save: Callable[..., None] = np.savez) -> bytes:
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


def _with_sizes(data: bytes, place: str) -> bytes:
    """An archive whose first entry states another size than it has."""
    mark, offset = (b"PK\x01\x02", 24) if place == "central" else (b"PK\x03\x04", 22)
    at = data.index(mark) + offset
    return data[:at] + struct.pack("<I", 2**31) + data[at + 4 :]


def _with(frame: pl.DataFrame, name: str, row: int, value: Any) -> pl.DataFrame:
    values = frame[name].to_list()
    values[row] = value
    return frame.with_columns(pl.Series(name, values, frame[name].dtype))


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if len(place) > 4:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, (*place, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:2]):
            yield from _places(inner, (*place, index))


def _replaced(values: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = dict(values) if isinstance(values, dict) else list(values)
    changed[place[0]] = _replaced(values[place[0]], place[1:], value)
    return changed


def _without(values: Any, place: tuple[Any, ...]) -> Any:
    changed = dict(values) if isinstance(values, dict) else list(values)
    if len(place) == 1:
        del changed[place[0]]
    else:
        changed[place[0]] = _without(values[place[0]], place[1:])
    return changed


def _name(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place)) or "all"
