"""The generic parts: covers, corner weights, saving and loading."""

import contextlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane import oracle
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.linear_support import corner_weights
from windvane.oracle.coverage import CoverageSet, cover


def random_values(seed: int, objectives: int, entries: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(entries, objectives))


@given(seed=st.integers(0, 10_000), objectives=st.integers(2, 4))
def test_cover_serves_every_weight_and_needs_no_dominated_row(seed: int, objectives: int) -> None:
    values = random_values(seed, objectives)
    values = np.vstack([values, values[0] - 1.0])
    weights = np.random.default_rng(seed + 1).dirichlet(np.ones(objectives), 300)
    rows = cover(values, weights, 1e-3)
    scores = weights @ values.T
    assert (scores[:, rows].max(1) >= scores.max(1) - 1e-3).all()
    assert len(values) - 1 not in rows
    assert len(set(rows)) == len(rows)


@given(seed=st.integers(0, 10_000), objectives=st.integers(2, 4))
def test_the_gap_to_a_richer_set_is_largest_at_a_corner(seed: int, objectives: int) -> None:
    values = random_values(seed, objectives)
    richer = np.vstack([values, random_values(seed + 1, objectives) + 0.3])
    corners = corner_weights(values)
    assert np.allclose(corners.sum(1), 1)
    assert (corners >= 0).all()

    def gap(weights: np.ndarray) -> np.ndarray:
        return (weights @ richer.T).max(1) - (weights @ values.T).max(1)

    anywhere = np.random.default_rng(seed).dirichlet(np.ones(objectives), 2000)
    assert gap(anywhere).max() <= gap(corners).max() + 1e-6


def test_corners_of_two_lines_by_hand() -> None:
    # w (1, 0) and w (0, 1) cross at (1/2, 1/2); the other corners are the simplex's own.
    corners = corner_weights(np.asarray([[1.0, 0.0], [0.0, 1.0]]))
    assert np.allclose(corners, [[0, 1], [0.5, 0.5], [1, 0]])


def test_saving_and_loading_returns_the_same_set(tmp_path) -> None:
    coverage = oracle.coverage_set(DeepSeaTreasure(), 0.95)
    path = tmp_path / "deep" / "set.npz"
    coverage.save(path)
    again = CoverageSet.load(path, coverage.plan(0))
    assert np.array_equal(again.values, coverage.values)
    assert again.behaviours == coverage.behaviours
    assert again.gamma == coverage.gamma
    assert np.array_equal(again.plans.actions, coverage.plans.actions)
    assert not list(path.parent.glob("*.partial"))


def test_another_format_is_refused(tmp_path, monkeypatch) -> None:
    coverage = oracle.coverage_set(DeepSeaTreasure(), 0.95)
    path = tmp_path / "set.npz"
    with monkeypatch.context() as patch:
        patch.setattr("windvane.oracle.coverage.FORMAT", 99)
        coverage.save(path)
    with pytest.raises(ValueError, match="format 99"):
        CoverageSet.load(path, coverage.plan(0))


def rewritten(path: Path, **changes: Any) -> None:
    """Write a saved set again, with some of its arrays or entries of its header changed."""
    with np.load(path) as data:
        arrays: dict[str, Any] = {name: data[name] for name in data.files}
    header = json.loads(str(arrays["header"]))
    for name, value in changes.items():
        if name in header:
            header[name] = value
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value
    np.savez(path, **(arrays | {"header": json.dumps(header)}))


SET = oracle.coverage_set(DeepSeaTreasure(), 0.95)
PLAN = SET.plan(0)


@pytest.mark.parametrize(
    "changes",
    [
        {"values": np.full((10, 2), np.nan)},
        {"values": np.full((10, 2), np.inf)},
        {"values": np.zeros((9, 2))},
        {"values": np.zeros(10)},
        {"values": np.zeros((0, 2))},
        {"values": np.zeros((10, 2), complex)},
        {"values": np.full((10, 2), "a")},
        {"values": None},
        {"leaf0": None},
        {"leaf0": np.zeros((10, 3))},
        {"leaf0": np.zeros(10, int)},
        {"leaf0": np.zeros((10, 0), int)},
        {"leaf1": np.zeros(3, int)},
        {"gamma": 2},
        {"gamma": "0.95"},
        {"gamma": None},
        {"behaviours": ["one"]},
        {"behaviours": list(range(10))},
        {"groups": 3},
        {"errors": [1]},
        {"errors": {"rounding": "small"}},
        {"format": [1]},
    ],
)
def test_a_file_of_another_form_is_a_value_error(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "set.npz"
    SET.save(path)
    rewritten(path)
    assert len(CoverageSet.load(path, PLAN)) == 10
    rewritten(path, **changes)
    with pytest.raises(ValueError, match="it"):
        CoverageSet.load(path, PLAN)


def test_damaged_files_are_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    SET.save(path)
    data = path.read_bytes()
    damaged = [data[:n] for n in (0, 3, 10, len(data) // 2, len(data) - 1)]
    damaged += [data[:n] + b"\xa5" + data[n + 1 :] for n in range(0, len(data), 97)]
    for content in damaged:
        path.write_bytes(content)
        with contextlib.suppress(ValueError):  # not every byte matters
            assert len(CoverageSet.load(path, PLAN)) == 10


def test_what_would_unpack_to_too_much_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", b"\0" * (65 * 2**20))
    assert path.stat().st_size < 2**20
    with pytest.raises(ValueError, match="unpack to more than 67,108,864 bytes"):
        CoverageSet.load(path, PLAN)
    path.write_bytes(b" " * (2**26 + 1))
    with pytest.raises(ValueError, match="larger than"):
        CoverageSet.load(path, PLAN)


def test_sizes_that_an_array_states_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    SET.save(path)
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"shape": (10**12, 2), "fortran_order": False, "descr": "<f8"}
    )
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["values.npy"] = buffer.getvalue() + b"\0" * 160
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match="another size than it states"):
        CoverageSet.load(path, PLAN)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_names_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        SET.save(tmp_path / name)
    with pytest.raises((OSError, ValueError)):
        CoverageSet.load(tmp_path / name, PLAN)


def test_a_cache_that_cannot_be_opened_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = oracle.coverage_set(Minecart(), 0.98)
    monkeypatch.setenv("WINDVANE_CACHE", str(tmp_path / ("name" * 100)))
    monkeypatch.setattr(oracle.minecart, "solve", lambda *_: known)
    with (
        pytest.warns(UserWarning, match="cannot be used and is computed anew: cannot open"),
        pytest.warns(UserWarning, match="the coverage set could not be cached: cannot write"),
    ):
        assert oracle.coverage_set(Minecart(), 0.5) is known
    with pytest.raises(InputError, match=r"cannot write .*File name too long"):
        known.save(tmp_path / ("name" * 100) / "set.npz")
