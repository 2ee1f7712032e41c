"""Tables in Parquet: written and read with polars or pyarrow, and checked column by column.

Whatever is wrong with a file that is read becomes an `InputError` that names the file and the
fault. What may not live here: which columns a particular kind of file has.
"""

import io
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import InputError, in_one_line
from windvane.files import atomic_write, faults_of, file_size, read_bytes
from windvane.runs.checksums import KEY, OPEN, require_intact, seal

Records = dict[str, np.ndarray]
"""A table: columns of equal length by name."""

MAX_ROWS = 10**8
"""A file of a few bytes can state any number of rows."""


def write_table(path: Path, records: Records, about: dict[str, str] | None = None) -> None:
    """Write Parquet with polars, or with pyarrow where there is only that, and with a checksum;
    `about` goes into the file's metadata.
    """
    data, about = io.BytesIO(), {**(about or {}), KEY: OPEN}
    try:
        import polars
    except ImportError:
        arrow, parquet = _pyarrow()
        table = arrow.table(records).replace_schema_metadata(about)
        parquet.write_table(table, data, compression="zstd")
    else:
        polars.DataFrame(records).write_parquet(data, metadata=about)
    sealed = seal(data.getvalue())
    atomic_write(path, lambda file: file.write(sealed))


def read_table(path: Path) -> Records:
    """Read Parquet as columns; InputError for a file that is anything else, or is damaged."""
    with _faults_of(path):
        try:
            import polars
        except ImportError:
            file = _pyarrow()[1].ParquetFile(_intact(path))
            _check_rows(file.metadata.num_rows)
            table = file.read()
            return {name: _plain(table[name].to_numpy()) for name in table.column_names}
        options: dict[str, Any] = {"hive_partitioning": False, "glob": False}
        source = _intact(path)
        rows = polars.scan_parquet(source, **options).select(polars.len()).collect()
        _check_rows(rows.item())
        frame = polars.read_parquet(source, memory_map=False, **options)
        return {name: _plain(frame[name].to_numpy()) for name in frame.columns}


def read_about(path: Path) -> dict[str, str]:
    """The metadata of a Parquet file."""
    with _faults_of(path):
        try:
            import polars
        except ImportError:
            found = _pyarrow()[1].read_metadata(_intact(path)).metadata or {}
            return {name.decode(): text.decode() for name, text in found.items()}
        return polars.read_parquet_metadata(_intact(path))


def concatenate(tables: Iterable[Records]) -> Records:
    """One table of many with the same columns; of none, one without columns."""
    tables = list(tables)
    names = tables[0] if tables else {}
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def whole_numbers(table: Records, name: str, least: int, most: int) -> np.ndarray:
    """A column of whole numbers from `least` to `most`."""
    column = _column(table, name)
    if column.dtype.kind not in "iu":
        raise InputError(f"the column {name!r} must be of whole numbers, not of {column.dtype}")
    wrong = column[(column < least) | (column > most)]
    if wrong.size:
        raise InputError(f"the column {name!r} must be from {least} to {most:,}, not {wrong[0]}")
    return column


def numbers(
    table: Records, name: str, least: float = -math.inf, most: float = math.inf, *,
    unknown: bool = False,
) -> np.ndarray:  # fmt: skip
    """A column of finite numbers from `least` to `most`; NaN stands for an unknown one if that is
    allowed.
    """
    column = _column(table, name)
    if column.dtype.kind not in "fiu":
        raise InputError(f"the column {name!r} must be of numbers, not of {column.dtype}")
    good = np.isfinite(column) & (column >= least) & (column <= most)
    wrong = column[~(good | np.isnan(column)) if unknown else ~good]
    if wrong.size:
        range_ = "" if math.isinf(least) else f" from {least:g} to {most:g}"
        raise InputError(
            f"the column {name!r} must be of finite numbers{range_}, and one is {wrong[0]}"
        )
    return column


def vector(table: Records, name: str) -> list[np.ndarray]:
    """The columns `name_0`, `name_1` and so on, of which there must be at least one."""
    found = [column for column in table if re.fullmatch(rf"{name}_\d+", column, re.ASCII)]
    expected = [f"{name}_{index}" for index in range(max(len(found), 1))]
    return [numbers(table, column) for column in expected]


def _column(table: Records, name: str) -> np.ndarray:
    if name not in table:
        raise InputError(f"it has no column {name!r}")
    column = table[name]
    if column.ndim != 1:
        raise InputError(f"the column {name!r} must be of numbers, not of lists")
    return column


def _intact(path: Path) -> io.BytesIO:
    """What a file holds, once it is known to be what was written. It is read once, as another
    process may replace the file meanwhile.
    """
    data = read_bytes(path, "the table", sys.maxsize - 1)
    with faults_of(path, "the table"):
        require_intact(data)
    return io.BytesIO(data)


def _check_rows(number: int) -> None:
    if number > MAX_ROWS:
        raise ValueError(f"it states {number:,} rows, and at most {MAX_ROWS:,} are read")


def _plain(column: Any) -> np.ndarray:
    """An array that owns its numbers; one that may be missing, or text, is of objects."""
    return np.asarray(column)


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """Turn whatever reading a table raises into a sentence."""
    file_size(path, "the table")
    try:
        with without_panics():
            yield
    except (KeyboardInterrupt, SystemExit, InputError):
        raise
    except (OSError, MemoryError) as error:
        raise InputError(f"cannot read the table {path}: {in_one_line(error)}") from error
    except BaseException as error:  # a panic of polars is no Exception
        raise InputError(f"{path} is not a table (Parquet): {in_one_line(error)}") from error


@contextmanager
def without_panics() -> Iterator[None]:
    """Keep what polars writes about a panic, a page of Rust's, from standard error: the exception
    says it all. Whatever else is written meanwhile appears a moment later.
    """
    try:
        said = tempfile.TemporaryFile()  # noqa: SIM115
        real = os.dup(2)
    except OSError:  # there is no standard error, or no room to keep anything
        yield
        return
    kept = False
    with said:
        os.dup2(said.fileno(), 2)
        try:
            yield
            kept = True
        except Exception:
            kept = True
            raise
        finally:
            os.dup2(real, 2)
            if kept:
                said.seek(0)
                os.write(2, said.read())
            os.close(real)


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError("records need polars or pyarrow: install one of them") from error
