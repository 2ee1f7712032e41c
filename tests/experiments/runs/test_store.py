import csv
import json
from pathlib import Path

import numpy as np
import polars
import pytest

from tests.runs.small import same_records, small
from windvane.errors import InputError
from windvane.experiments.report.content import copy_examples, examples
from windvane.experiments.report.summarise import summarise_run
from windvane.experiments.report.summary import POINTS
from windvane.experiments.report.summary_files import (
    LINES,
    SUMMARIES,
    read_summaries,
    write_summaries,
)
from windvane.experiments.runs import paths as module
from windvane.experiments.runs.cells import setting
from windvane.experiments.runs.paths import STORE_FORMAT
from windvane.experiments.runs.store import Store, read_run, read_summary
from windvane.runs.tables import Records, read_table
from windvane.training.config import TrainConfig

PROVENANCE = {"version": "1", "commit": None, "device": "a device", "seconds": 1.5}


def records_of(steps: list[int], regrets: list[float]) -> Records:
    return {
        "run": np.full(len(steps), 7, np.int32),
        "seed": np.full(len(steps), 3),
        "step": np.asarray(steps, np.int32),
        "regret": np.asarray(regrets),
    }


def one(**changes: object) -> TrainConfig:
    return small(**({"seeds": (3,)} | changes))


SOME = records_of([100, 200, 300, 460], [1.0, 0.5, 0.25, 0.125])
OTHER = SOME | {"seed": np.full(4, 4)}


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one()
    assert not store.has(run)
    path = store.write(run, SOME, True, PROVENANCE)
    assert store.has(run)
    config, records, failed, provenance = read_run(path)
    assert (config, failed, provenance) == (run, True, PROVENANCE)
    kept = {name: records[name] for name in SOME if name != "run"}
    assert same_records(kept, {name: SOME[name] for name in kept})
    assert "run" not in records


def test_files_describe_themselves(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(one(), SOME, False, PROVENANCE)
    store.write(one(schedule="regular", schedule_args={}), SOME, False, PROVENANCE)
    found = polars.read_parquet(tmp_path / "runs" / "*" / "*" / "*.parquet")
    assert found.columns[:6] == ["env", "observation", "agent", "replay", "schedule", "seed"]
    assert sorted(found["schedule"].unique()) == ["regular", "sparse"]
    assert len(found) == 8


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 960}, {"width": 16}, {"seeds": (4,)}, {"agent": "mo"}, {"replay": "standard"},
        {"schedule": "regular"}, {"gamma": 0.9}, {"precision": "bfloat16"},
        {"schedule_args": {"every": 50}},
    ],
)  # fmt: skip
def test_other_runs_have_other_paths(change: dict, tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.path(one()) != store.path(one(**change))


DEFAULTS = {
    "env": "minecart", "observation": "pixels", "steps": 1_000_000,
    "gamma": 0.98, "learning_rate": 0.02, "momentum": 0.9, "clip_norm": 1.0, "epsilon_start": 1.0,
    "epsilon_end": 0.05, "epsilon_steps": 100_000, "batch_size": 64, "update_interval": 4,
    "target_interval": 150, "learning_starts": 100, "reward_scale": 1.0,
    "weight_history_size": 16_384,
    "width": 512, "depth": 3, "encoder_depth": 1,
    "precision": "auto", "capacity": 100_000, "priority_exponent": 2.0, "priority_offset": 0.01,
}  # fmt: skip


def test_runs_keep_their_paths_from_version_to_version(tmp_path: Path) -> None:
    """New settings may come, and `DEFAULTS` stay: else stores that people have look empty, or full
    of what they do not hold. A default that must change needs another `STORE_FORMAT`.
    """
    assert STORE_FORMAT == 1
    assert setting(TrainConfig()).items() >= DEFAULTS.items()
    run = TrainConfig.preset("paper-dst", seeds=(0,))
    path = "runs/dst/cn-der-sparse/c6fdaca0b9-seed-0.parquet"
    assert Store(tmp_path).path(run) == tmp_path / path


def test_another_format_has_other_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Store(tmp_path).path(one())
    monkeypatch.setattr(module, "STORE_FORMAT", STORE_FORMAT + 1)
    assert Store(tmp_path).path(one()) != before


@pytest.mark.parametrize("change", [{"chunk": 40}, {"checkpoint_seconds": 9.0}])
def test_what_changes_nothing_changes_no_path(change: dict, tmp_path: Path) -> None:
    assert Store(tmp_path).path(one()) == Store(tmp_path).path(one(**change))


def test_stores_are_merged_by_copying(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    here.write(one(), SOME, False, PROVENANCE)
    path = there.write(one(seeds=(4,)), OTHER, False, PROVENANCE)
    here.put(str(path.relative_to(there.folder)), path.read_bytes())
    assert [d.seed for d in here.summaries()] == [3, 4]


def test_a_summary_by_hand() -> None:
    found = summarise_run(
        one(), SOME, False, PROVENANCE
    )  # 480 steps; the last quarter begins at 360
    assert (found.episodes, found.overall, found.last) == (4, 1.875 / 4, 0.125)
    ends = np.arange(1, POINTS + 1) * 480 / POINTS
    by_hand = [sum(r for s, r in zip(SOME["step"], SOME["regret"], strict=True) if s <= end)
               for end in ends]  # fmt: skip
    np.testing.assert_allclose(found.curve, by_hand)
    assert found.cell == ("cn", "der", "sparse")


def test_summaries_come_back_from_their_files(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for seed in (3, 4):
        records = {3: SOME, 4: OTHER}[seed]
        store.write(one(seeds=(seed,)), records, seed == 4, PROVENANCE | {"commit": 'abc, "d"'})
    summaries = list(store.summaries())
    assert [p.name for p in write_summaries(summaries, tmp_path / "small")] == [SUMMARIES, LINES]
    (tmp_path / "small" / LINES).unlink()  # is for people alone
    for before, after in zip(summaries, read_summaries(tmp_path / "small"), strict=True):
        assert before.config == after.config
        assert (before.failed, before.episodes, before.overall, before.last) == (
            after.failed, after.episodes, after.overall, after.last,
        )  # fmt: skip
        np.testing.assert_allclose(before.curve, after.curve)
        assert before.provenance == after.provenance
    assert read_summaries(tmp_path) == []


def test_what_people_read_of_summaries(tmp_path: Path) -> None:
    write_summaries([summarise_run(one(), SOME, False, PROVENANCE | {"seconds": 2.5})], tmp_path)
    [line] = csv.DictReader((tmp_path / LINES).read_text().splitlines())
    assert (line["agent"], line["seed"], line["failed"], line["episodes"]) == (
        "cn",
        "3",
        "False",
        "4",
    )
    assert (float(line["overall"]), line["seconds"]) == (1.875 / 4, "2.5")
    assert TrainConfig.from_json(json.loads(line["config"])) == one()


@pytest.mark.parametrize("how", ["cut", "other", "seeds", "steps"])
def test_damaged_summaries_are_refused(how: str, tmp_path: Path) -> None:
    write_summaries([summarise_run(one(), SOME, False, PROVENANCE)], tmp_path)
    path = tmp_path / SUMMARIES
    reason = f"{path} is not a summary of runs: "
    if how == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif how == "other":
        polars.DataFrame({"a": [1]}).write_parquet(path)
    else:
        table = polars.read_parquet(path)
        config = json.loads(table["config"][0]) | {how: {"seeds": 2, "steps": -5}[how]}
        table.with_columns(config=polars.lit(json.dumps(config))).write_parquet(path)
        wrong = {"seeds": "configuration of 1 run, not of 2", "steps": "not -5"}[how]
        reason = f"{path} is not a summary of runs: .*{wrong}"
    with pytest.raises(InputError, match=reason):
        read_summaries(tmp_path)


def test_summaries_of_the_earlier_form_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "curves.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="are of an earlier version: make them anew"):
        read_summaries(tmp_path)


def test_a_run_of_a_store_is_one_run(tmp_path: Path) -> None:
    path = Store(tmp_path).write(one(), SOME, False, PROVENANCE)
    about = json.loads(polars.read_parquet_metadata(path)["windvane"])
    about["config"]["seeds"] = 2
    table = polars.read_parquet(path, memory_map=False)
    table.write_parquet(path, metadata={"windvane": json.dumps(about)})
    with pytest.raises(InputError, match=f"{path.name} must have the configuration of 1 run"):
        read_summary(path)


@pytest.mark.parametrize("how", ["cut", "empty", "other"])
def test_a_damaged_run_is_named(how: str, tmp_path: Path) -> None:
    path = Store(tmp_path).write(one(), SOME, False, PROVENANCE)
    if how == "other":
        polars.DataFrame({"a": [1]}).write_parquet(path)
    else:
        path.write_bytes(path.read_bytes()[: 200 if how == "cut" else 0])
    with pytest.raises(InputError, match=f"{path.name} is not a run of a results store"):
        read_summary(path)


def test_what_a_buffer_held_is_kept_beside_the_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    held = {"run": np.zeros(2, np.int32), "diverse": np.asarray([0, 1]), "return_0": np.ones(2)}
    path = store.write_content(one(), held)
    store.write(one(), SOME, False, PROVENANCE)
    assert list(read_table(path)) == ["diverse", "return_0"]
    assert store.paths() == [store.path(one())]
    assert store.files() == [path, store.path(one())]


def test_summaries_have_one_example_of_what_buffers_held(tmp_path: Path) -> None:
    held = {"run": np.zeros(2, np.int32), "diverse": np.asarray([0, 1]), "return_0": np.ones(2)}
    mo, cn, later = one(agent="mo"), one(), one(seeds=(4,))
    for name, run in (("mo", mo), ("cn", cn), ("later", later)):
        Store(tmp_path / name).write_content(run, held)
    published = tmp_path / "published"
    for name, run, copied in (("mo", mo, 1), ("cn", cn, 1), ("later", cn, 0), ("mo", cn, 0)):
        assert len(copy_examples(tmp_path / name, published)) == copied
        kept = Store(published).content_path(run)
        assert list(examples(published).values()) == [kept]
    assert len(list((published / "content").glob("*/*/*"))) == 2
