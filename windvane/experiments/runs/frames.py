"""Tables from files of others: read without surprises, and checked column by column.

Whatever is wrong with a file becomes an `InputError` with the file and the fault. What may not live
here: which columns a particular kind of file has.
"""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from windvane.errors import InputError, in_one_line
from windvane.files import file_size
from windvane.runs.checksums import require_intact
from windvane.runs.tables import MAX_ROWS, without_panics

LARGEST = 1e15
"""The largest regret or return that is taken for a measurement."""
_FAILURES = (Exception, pl.exceptions.PanicException)  # a panic is no Exception


@contextmanager
def faults_of(path: Path, what: str) -> Iterator[None]:
    """Turn any failure within into an `InputError` that says that `path` is not `what`."""
    try:
        yield
    except _FAILURES as error:
        raise InputError(f"{path} is not {what}: {in_one_line(error)}") from error


def read_frame(path: Path) -> tuple[pl.DataFrame, dict[str, str]]:
    """A Parquet file as a table, and its metadata; it may fail in any way. A file with a checksum
    is as it was written.
    """
    file_size(path, "the table")  # a pipe would be waited for
    data = path.read_bytes()  # once, as another process may replace the file meanwhile
    require_intact(data)
    with without_panics():
        about = pl.read_parquet_metadata(io.BytesIO(data))
        rows = pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item()
        if rows > MAX_ROWS:
            raise InputError(f"it states {rows:,} rows, and at most {MAX_ROWS:,} are read")
        return pl.read_parquet(io.BytesIO(data), hive_partitioning=False), about


def metadata_object(about: Mapping[str, str], key: str) -> dict[str, Any]:
    """A JSON object in the metadata of a table."""
    if key not in about:
        raise InputError(f"its metadata has no {key!r}")
    return read_object(about[key], f"the metadata {key!r}")


def read_object(text: Any, what: str) -> dict[str, Any]:
    """A JSON object from its text."""
    try:
        values = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {in_one_line(error)}") from error
    if not isinstance(values, dict):
        raise InputError(f"{what} must be a JSON object, not {str(values)[:60]!r}")
    return values


def to_frame(columns: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """Columns of equal length as a table."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"its columns must have equal lengths, not {lengths}")
    return pl.DataFrame(dict(columns))


def require_columns(frame: pl.DataFrame, names: tuple[str, ...]) -> None:
    """Complain about the first column that is missing."""
    for name in names:
        if name not in frame.columns:
            raise InputError(f"it has no column {name!r}")


def whole_numbers(frame: pl.DataFrame, name: str, least: int, most: int) -> pl.Series:
    """A column of whole numbers from `least` to `most`."""
    column = _numeric(frame, name)
    if not column.dtype.is_integer():
        raise InputError(f"the column {name!r} must be of whole numbers, not of {column.dtype}")
    if len(column) and not column.is_between(least, most).all():
        wrong = column.filter(~column.is_between(least, most))[0]
        raise InputError(f"the column {name!r} must be from {least} to {most:,}, not {wrong}")
    return column


def numbers(frame: pl.DataFrame, name: str, allow_nan: bool = False) -> pl.Series:
    """A column of finite numbers of a sensible size; NaN stands for an unknown one if allowed."""
    column = _numeric(frame, name).cast(pl.Float64)
    good = column.is_finite() & (column.abs() <= LARGEST)
    if allow_nan:
        good |= column.is_nan()
    if not good.all():
        wrong = column.filter(~good)[0]
        raise InputError(
            f"the column {name!r} must be of numbers between -{LARGEST:g} and {LARGEST:g}, "
            f"not {wrong}"
        )
    return column


def texts(frame: pl.DataFrame, name: str) -> list[str]:
    """A column of text."""
    require_columns(frame, (name,))
    column = frame[name]
    if column.dtype != pl.String or column.null_count():
        raise InputError(f"the column {name!r} must be of text, not of {column.dtype}")
    return column.to_list()


def _numeric(frame: pl.DataFrame, name: str) -> pl.Series:
    require_columns(frame, (name,))
    column = frame[name]
    if not column.dtype.is_numeric():
        raise InputError(f"the column {name!r} must be of numbers, not of {column.dtype}")
    if column.null_count():
        raise InputError(f"the column {name!r} has {column.null_count()} empty places")
    return column
