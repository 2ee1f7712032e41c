"""Flipped bits: what a store or its summaries hold is what was written, or is refused."""

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.experiments.runs.test_store_faults import PROVENANCE, RECORDS, run
from tests.experiments.synthetic import make_cell
from windvane.errors import InputError
from windvane.experiments.report.content import read_content
from windvane.experiments.report.summary_files import SUMMARIES, read_summaries, write_summaries
from windvane.experiments.runs.frames import read_frame
from windvane.experiments.runs.store import Store, read_run, read_summary
from windvane.runs.checksums import KEY
from windvane.runs.tables import write_table

SAMPLE = 200
"""Bytes of each file in which a bit is flipped, beside all of its end."""


def plain(values: dict[str, np.ndarray]) -> dict[str, Any]:
    """Columns bit for bit."""
    return {n: (c.dtype.str, c.tolist() if c.dtype == object else c.tobytes())
            for n, c in values.items()}  # fmt: skip


def stored(folder: Path) -> tuple[Path, Callable[[Path], Any]]:
    path = Store(folder).write(run(), RECORDS, False, PROVENANCE)
    return path, lambda path: (found := read_run(path))._replace(records=plain(found.records))


def content(folder: Path) -> tuple[Path, Callable[[Path], Any]]:
    held = {"diverse": np.asarray([0, 1]), "return_0": np.ones(2), "return_1": np.zeros(2)}
    path = Store(folder).write_content(run(), held)
    return path, lambda path: [array.tobytes() for array in read_content(path)]


def summaries(folder: Path) -> tuple[Path, Callable[[Path], Any]]:
    write_summaries(make_cell([0.1, 0.2]), folder)

    def read(path: Path) -> Any:
        return [
            (each.config, each.failed, each.episodes, each.overall, each.last, each.provenance,
             each.curve.tobytes(), each.overall_utility == each.overall_utility)
            for each in read_summaries(path.parent)
        ]  # fmt: skip

    return folder / SUMMARIES, read


@pytest.mark.parametrize("make", [stored, content, summaries])
def test_a_flipped_bit_is_refused(make: Any, tmp_path: Path) -> None:
    path, read = make(tmp_path)
    whole, expected, draw = path.read_bytes(), read(path), Random(0)
    # The end is looked at more closely: the footer is there, and the checksum in it.
    places = {*draw.sample(range(len(whole)), SAMPLE), *range(len(whole) - 100, len(whole))}
    for place in sorted(places):
        flipped = bytes([whole[place] ^ 1 << draw.randrange(8)])
        path.write_bytes(whole[:place] + flipped + whole[place + 1 :])
        with pytest.raises(InputError) as error:
            read(path)
        assert str(error.value).startswith(f"{path} is not "), place
        assert "\n" not in str(error.value)
    path.write_bytes(whole)
    assert read(path) == expected


def test_what_would_end_the_program_is_refused(tmp_path: Path) -> None:
    """One bit of the length of a page, for which polars asks for 2**61 bytes and aborts."""
    path = stored(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[312] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="is not a run of a results store: it is damaged"):
        read_summary(path)


def test_files_of_earlier_versions_have_no_checksum(tmp_path: Path) -> None:
    path, read = stored(tmp_path)
    expected = read(path)
    about = pl.read_parquet_metadata(path)
    assert about[KEY].startswith("windvane-sha256:")
    frame = pl.read_parquet(path, memory_map=False)
    frame.write_parquet(path, metadata={"windvane": about["windvane"]})
    assert read(path) == expected
    assert read_summaries(Path(__file__).parents[3] / "results" / "paper")


def test_a_file_says_what_it_holds_whoever_wrote_it(tmp_path: Path) -> None:
    """What names the checksum may be part of the values, too."""
    text = f"windvane-sha256:{'0' * 64}"
    columns = {"text": np.asarray([text, "b"]), "number": np.asarray([-0.0, np.nan])}
    path = tmp_path / "table.parquet"
    write_table(path, columns, {"windvane": text, "another": text})
    frame, about = read_frame(path)
    assert frame["text"].to_list() == [text, "b"]
    assert frame["number"].to_numpy().tobytes() == columns["number"].tobytes()
    assert about["windvane"] == about["another"] == text


def test_pyarrow_writes_checksums_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "polars", None)
        path, read = stored(tmp_path)
    expected, data = read(path), path.read_bytes()
    assert expected[2] is False
    place = data.index(b"small") if b"small" in data else 60
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(InputError, match="it is damaged"):
        read(path)
