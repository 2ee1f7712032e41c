"""Records of episodes: right numbers, and what a table in a file gives back."""

import builtins
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import jax.numpy as jnp
import numpy as np
import pytest

from tests.runs.small import STEPS, same_records
from windvane import optimal_value, read_records, regret
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError
from windvane.runs import tables
from windvane.runs.records import RecordWriter, episode_rows
from windvane.runs.result import Result
from windvane.training.fused import StepInfo

ENV, GAMMA, SCALE = DeepSeaTreasure(), 0.95, 0.01


def random_infos(steps: int, runs: int, draw: np.random.Generator) -> StepInfo:
    shape = (steps, runs)
    numbers = draw.random((steps, runs, 2)).astype(np.float32)
    weights = numbers / numbers.sum(-1, keepdims=True)
    return StepInfo(*map(jnp.asarray, (
        draw.random(shape) < 0.3, draw.integers(1, 50, shape), weights, numbers[..., ::-1],
        draw.random(shape).astype(np.float32), draw.random(shape).astype(np.float32),
    )))  # fmt: skip


def test_rows_equal_a_slow_recomputation() -> None:
    def optimal(weights: np.ndarray) -> np.ndarray:
        return np.asarray([optimal_value(ENV, GAMMA, row) * SCALE for row in weights], float)

    steps = random_infos(40, 3, np.random.default_rng(0))
    seeds, before = np.asarray([7, 0, 4]), np.asarray([2, 0, 9])
    rows = episode_rows(steps, 100, seeds, before, optimal)
    row, episodes = 0, before.copy()
    for at in range(40):
        for run in range(3):
            if not steps.ended[at, run]:
                continue
            one = SimpleNamespace(**{name: column[row] for name, column in rows.items()})
            assert (one.run, one.seed, one.step) == (run, seeds[run], 100 + at + 1)
            assert (one.episode, one.length) == (episodes[run], steps.length[at, run])
            weights, returns = (
                np.asarray(steps.weights[at, run]),
                np.asarray(steps.returns[at, run]),
            )
            assert (one.weights_0, one.weights_1) == tuple(weights)
            assert (one.return_0, one.return_1) == tuple(returns)
            best = float(optimal_value(ENV, GAMMA, weights)) * SCALE
            earned = sum(float(w) * float(r) for w, r in zip(weights, returns, strict=True))
            assert one.optimal == pytest.approx(best)
            assert one.regret == pytest.approx(best - earned)
            assert one.utility == pytest.approx(earned)
            assert (one.epsilon, one.loss) == (steps.epsilon[at, run], steps.loss[at, run])
            episodes[run] += 1
            row += 1
    assert row == len(rows["run"]) > 20


def test_records_of_a_training_fit_together(finished: Result) -> None:
    table = finished.records
    assert (np.diff(table["step"]) >= 0).all()
    for run, seed in enumerate(finished.config.seed_numbers):
        mine = {name: column[table["run"] == run] for name, column in table.items()}
        number = len(mine["step"])
        assert number > 10
        assert (mine["seed"] == seed).all()
        assert (mine["episode"] == np.arange(number)).all()
        # Episodes follow one another without a gap, up to the one that is running in the end.
        assert (np.cumsum(mine["length"]) == mine["step"]).all()
        assert 0 <= STEPS - mine["step"][-1] <= ENV.time_limit
    # All is known of an episode of Deep Sea Treasure from its length and its treasure.
    length = table["length"].astype(float)
    np.testing.assert_allclose(table["return_1"], -SCALE * (1 - GAMMA**length) / (1 - GAMMA), 1e-5)
    treasures = table["return_0"] / GAMMA ** (length - 1) / SCALE
    known = [0, *np.asarray(ENV.sea_map)[np.asarray(ENV.sea_map) > 0]]
    assert all(np.isclose(treasure, known, atol=1e-2).any() for treasure in treasures)
    weights = np.stack([table["weights_0"], table["weights_1"]], 1).astype(float)
    weights /= weights.sum(1, keepdims=True)
    returns = np.stack([table["return_0"], table["return_1"]], 1) / SCALE
    expected = regret(ENV, GAMMA, weights, returns) * SCALE
    np.testing.assert_allclose(table["regret"], expected, atol=1e-6)
    np.testing.assert_allclose(table["utility"], table["optimal"] - table["regret"], atol=1e-12)


def test_the_summary_is_of_the_records(finished: Result) -> None:
    table = finished.records
    for column, summary in (("regret", finished.regret), ("utility", finished.utility)):
        for run in range(2):
            mine = table[column][table["run"] == run]
            late = table[column][(table["run"] == run) & (table["step"] > 360)]
            assert summary.overall[run] == pytest.approx(np.mean(mine))
            assert summary.last_quarter[run] == pytest.approx(np.mean(late))


def test_what_is_written_is_read(finished: Result) -> None:
    assert finished.folder is not None
    assert same_records(read_records(finished.folder), finished.records)


def test_parts_beyond_the_step_are_written_anew(tmp_path: Path) -> None:
    def rows(number: int) -> tables.Records:
        whole = {"run": 0, "seed": 3, "step": number, "length": 1}
        names = ("weights_0", "return_0", "optimal", "regret", "utility", "epsilon", "loss")
        columns = {name: np.full(2, value, np.int32) for name, value in whole.items()}
        columns["episode"] = np.arange(number, number + 2, dtype=np.int32)
        return columns | {name: np.zeros(2) for name in names}

    writer = RecordWriter(tmp_path, 0)
    for step in (10, 20):
        writer.add(rows(step))
        writer.write(step)
    (tmp_path / "records" / f"steps-1.parquet.{uuid4().hex}.writing").touch()
    again = RecordWriter(tmp_path, 10)
    for step in (25, 30):
        again.add(rows(step))
        again.write(step)
    assert read_records(tmp_path)["step"].tolist() == [10, 10, 25, 25, 30, 30]
    assert len(list((tmp_path / "records").iterdir())) == 3
    # More than one was not left by a crash: a checkpoint was lost.
    with pytest.warns(UserWarning, match="records of later steps are kept in"):
        RecordWriter(tmp_path, 10)
    assert read_records(tmp_path)["step"].tolist() == [10, 10]
    assert len(list((tmp_path / "records").iterdir())) == 3


def test_without_polars_or_pyarrow_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("polars"):
            raise ImportError(name)
        return real(name, *rest, **named)

    def none(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(tables, "import_module", none)
    with pytest.raises(InputError, match="polars or pyarrow"):
        tables.write_table(tmp_path / "a.parquet", {"a": np.zeros(3)})
    assert list(tmp_path.iterdir()) == []


def test_pyarrow_and_polars_read_one_anothers_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    table = {"a": np.arange(3, dtype=np.int32), "b": np.asarray([0.5, np.nan, 1], np.float32)}
    about = {"windvane": "about"}
    tables.write_table(tmp_path / "polars.parquet", table, about)
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("polars"):
            raise ImportError(name)
        return real(name, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without)
        tables.write_table(tmp_path / "pyarrow.parquet", table, about)
        assert same_records(tables.read_table(tmp_path / "polars.parquet"), table)
        assert tables.read_about(tmp_path / "polars.parquet")["windvane"] == "about"
    assert same_records(tables.read_table(tmp_path / "pyarrow.parquet"), table)
    assert tables.read_about(tmp_path / "pyarrow.parquet")["windvane"] == "about"


@pytest.mark.parametrize("polars", [True, False])
def test_a_disk_that_is_full_is_one_sentence(
    polars: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.parquet"
    tables.write_table(path, {"a": np.arange(3)})
    before = path.read_bytes()
    if not polars:
        pytest.importorskip("pyarrow")
        real = builtins.__import__

        def without(name: str, *rest: Any, **named: Any) -> Any:
            if name.startswith("polars"):
                raise ImportError(name)
            return real(name, *rest, **named)

        monkeypatch.setattr(builtins, "__import__", without)
    numbers = np.random.default_rng(0).integers(0, 2**62, 100_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As on a full disk, some of the file can be written and the rest cannot.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InputError, match=r"cannot write .*a\.parquet: .*too large; what was"):
            tables.write_table(path, {"a": numbers})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [before]


def test_a_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"l\xff.parquet")
    try:
        path.touch()
    except OSError:
        pytest.skip("this file system has no such names")
    table = {"a": np.arange(3)}
    tables.write_table(path, table, {"windvane": "about"})
    assert same_records(tables.read_table(path), table)
    assert tables.read_about(path)["windvane"] == "about"


def test_no_records(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no records of a training run"):
        read_records(tmp_path)


def test_the_content_of_diverse_buffers_is_of_episodes_that_were_played(finished: Result) -> None:
    content, records = finished.content, finished.records
    assert content is not None
    for run in range(2):
        mine, played = content["run"] == run, records["run"] == run
        returns = np.stack([records["return_0"][played], records["return_1"][played]], 1)
        held = np.stack([content["return_0"][mine], content["return_1"][mine]], 1)
        distances = np.abs(held[:, None] - returns[None]).max(-1)
        assert (distances.min(1) < 1e-5).all()
        recent = held[content["diverse"][mine] == 0]
        np.testing.assert_allclose(recent, returns[-len(recent) :], atol=1e-5)
        assert (content["diverse"][mine] == 1).any()


def test_no_part_is_written_for_no_steps(tmp_path: Path) -> None:
    """An environment may fail at the first step after a checkpoint, and again when resumed."""
    writer = RecordWriter(tmp_path, 0)
    writer.add({"step": np.zeros(0, np.int32)})
    writer.write(0)
    assert not list((tmp_path / "records").iterdir())
    RecordWriter(tmp_path, 0)
