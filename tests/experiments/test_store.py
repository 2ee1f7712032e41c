import csv
import json
from pathlib import Path

import numpy as np
import polars
import pytest

from tests.runs.small import same_records, small
from windvane.errors import InputError
from windvane.experiments import store as module
from windvane.experiments.content import copy_examples, examples
from windvane.experiments.digest import POINTS, digest, setting
from windvane.experiments.digest_files import DIGEST, LINES, read_digests, write_digests
from windvane.experiments.store import FORMAT, Store, read_digest, read_run
from windvane.training.config import TrainConfig
from windvane.training.records import Records, read_table

ORIGIN = {"version": "1", "commit": None, "device": "a device", "seconds": 1.5}


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


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one()
    assert not store.has(run)
    path = store.write(run, SOME, True, ORIGIN)
    assert store.has(run)
    config, records, failed, origin = read_run(path)
    assert (config, failed, origin) == (run, True, ORIGIN)
    kept = {name: records[name] for name in SOME if name != "run"}
    assert same_records(kept, {name: SOME[name] for name in kept})
    assert "run" not in records


def test_files_describe_themselves(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(one(), SOME, False, ORIGIN)
    store.write(one(weights="regular", weights_every=None), SOME, False, ORIGIN)
    found = polars.read_parquet(tmp_path / "runs" / "*" / "*" / "*.parquet")
    assert found.columns[:6] == ["env", "observation", "agent", "replay", "weights", "seed"]
    assert sorted(found["weights"].unique()) == ["regular", "sparse"]
    assert len(found) == 8


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 960}, {"width": 16}, {"seeds": (4,)}, {"agent": "mo"}, {"replay": "standard"},
        {"weights": "regular"}, {"gamma": 0.9}, {"precision": "bfloat16"}, {"weights_every": 50},
    ],
)  # fmt: skip
def test_other_runs_have_other_places(change: dict, tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.path(one()) != store.path(one(**change))


DEFAULTS = {
    "env": "minecart", "observation": "pixels", "weights_every": None, "steps": 1_000_000,
    "gamma": 0.98, "learning_rate": 0.02, "momentum": 0.9, "clip_norm": 1.0, "epsilon_start": 1.0,
    "epsilon_end": 0.05, "epsilon_steps": 100_000, "batch_size": 64, "update_interval": 4,
    "target_interval": 150, "learning_starts": 100, "reward_scale": 1.0, "encountered": 16_384,
    "kappa": 0.01, "reuse": "full", "room": 24, "width": 512, "depth": 3, "encoder_depth": 1,
    "precision": "auto", "capacity": 100_000, "priority_exponent": 2.0, "priority_offset": 0.01,
    "trajectories": None,
}  # fmt: skip


def test_runs_keep_their_places_from_version_to_version(tmp_path: Path) -> None:
    """New settings may come, and `DEFAULTS` stay: else stores that people have look empty, or full
    of what they do not hold. A default that must change needs another `FORMAT`.
    """
    assert FORMAT == 1
    assert setting(TrainConfig()).items() >= DEFAULTS.items()
    run = TrainConfig.preset("paper-dst", seeds=(0,))
    place = "runs/dst/cn-der-sparse/c6fdaca0b9-seed-0.parquet"
    assert Store(tmp_path).path(run) == tmp_path / place


def test_another_format_has_other_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Store(tmp_path).path(one())
    monkeypatch.setattr(module, "FORMAT", FORMAT + 1)
    assert Store(tmp_path).path(one()) != before


@pytest.mark.parametrize("change", [{"chunk": 40}, {"checkpoint_seconds": 9.0}])
def test_what_changes_nothing_changes_no_place(change: dict, tmp_path: Path) -> None:
    assert Store(tmp_path).path(one()) == Store(tmp_path).path(one(**change))


def test_stores_are_merged_by_copying(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    here.write(one(), SOME, False, ORIGIN)
    path = there.write(one(seeds=(4,)), SOME, False, ORIGIN)
    here.put(str(path.relative_to(there.folder)), path.read_bytes())
    assert [d.seed for d in here.digests()] == [3, 4]


def test_a_digest_by_hand() -> None:
    found = digest(one(), SOME, False, ORIGIN)  # 480 steps; the last quarter begins at 360
    assert (found.episodes, found.overall, found.last) == (4, 1.875 / 4, 0.125)
    ends = np.arange(1, POINTS + 1) * 480 / POINTS
    by_hand = [sum(r for s, r in zip(SOME["step"], SOME["regret"], strict=True) if s <= end)
               for end in ends]  # fmt: skip
    np.testing.assert_allclose(found.curve, by_hand)
    assert found.cell == ("cn", "der", "sparse")


def test_digests_come_back_from_their_files(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for seed in (3, 4):
        store.write(one(seeds=(seed,)), SOME, seed == 4, ORIGIN | {"commit": 'abc, "d"'})
    digests = list(store.digests())
    assert [p.name for p in write_digests(digests, tmp_path / "small")] == [DIGEST, LINES]
    (tmp_path / "small" / LINES).unlink()  # is for people alone
    for before, after in zip(digests, read_digests(tmp_path / "small"), strict=True):
        assert before.config == after.config
        assert (before.failed, before.episodes, before.overall, before.last) == (
            after.failed, after.episodes, after.overall, after.last,
        )  # fmt: skip
        np.testing.assert_allclose(before.curve, after.curve)
        assert before.origin == after.origin
    assert read_digests(tmp_path) == []


def test_what_people_read_of_digests(tmp_path: Path) -> None:
    write_digests([digest(one(), SOME, False, ORIGIN | {"seconds": 2.5})], tmp_path)
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
def test_damaged_digests_are_refused(how: str, tmp_path: Path) -> None:
    write_digests([digest(one(), SOME, False, ORIGIN)], tmp_path)
    path = tmp_path / DIGEST
    reason = f"the digest in {tmp_path} is damaged: "
    if how == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif how == "other":
        polars.DataFrame({"a": [1]}).write_parquet(path)
    else:
        table = polars.read_parquet(path)
        config = json.loads(table["config"][0]) | {how: {"seeds": 2, "steps": -5}[how]}
        table.with_columns(config=polars.lit(json.dumps(config))).write_parquet(path)
        wrong = {"seeds": "configuration of 1 run, not of 2", "steps": "not -5"}[how]
        reason = f"cannot read the digest in {tmp_path}: .*{wrong}"
    with pytest.raises(InputError, match=reason):
        read_digests(tmp_path)


def test_a_digest_of_the_earlier_form_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "curves.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="is of an earlier version: make it anew"):
        read_digests(tmp_path)


def test_a_run_of_a_store_is_one_run(tmp_path: Path) -> None:
    path = Store(tmp_path).write(one(), SOME, False, ORIGIN)
    about = json.loads(polars.read_parquet_metadata(path)["windvane"])
    about["config"]["seeds"] = 2
    table = polars.read_parquet(path, memory_map=False)
    table.write_parquet(path, metadata={"windvane": json.dumps(about)})
    with pytest.raises(InputError, match=f"{path.name} must have the configuration of 1 run"):
        read_digest(path)


@pytest.mark.parametrize("how", ["cut", "empty", "other"])
def test_a_damaged_run_is_named(how: str, tmp_path: Path) -> None:
    path = Store(tmp_path).write(one(), SOME, False, ORIGIN)
    if how == "other":
        polars.DataFrame({"a": [1]}).write_parquet(path)
    else:
        path.write_bytes(path.read_bytes()[: 200 if how == "cut" else 0])
    with pytest.raises(InputError, match=f"{path.name} is no run of a results store"):
        read_digest(path)


def test_what_a_buffer_held_is_kept_beside_the_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    held = {"run": np.zeros(2, np.int32), "diverse": np.asarray([0, 1]), "return_0": np.ones(2)}
    path = store.write_content(one(), held)
    store.write(one(), SOME, False, ORIGIN)
    assert list(read_table(path)) == ["diverse", "return_0"]
    assert store.paths() == [store.path(one())]
    assert store.files() == [path, store.path(one())]


def test_a_digest_has_one_example_of_what_buffers_held(tmp_path: Path) -> None:
    held = {"run": np.zeros(2, np.int32), "diverse": np.asarray([0, 1]), "return_0": np.ones(2)}
    mo, cn, later = one(agent="mo"), one(), one(seeds=(4,))
    for name, run in (("mo", mo), ("cn", cn), ("later", later)):
        Store(tmp_path / name).write_content(run, held)
    digest_folder = tmp_path / "digest"
    for name, run, copied in (("mo", mo, 1), ("cn", cn, 1), ("later", cn, 0), ("mo", cn, 0)):
        assert len(copy_examples(tmp_path / name, digest_folder)) == copied
        kept = Store(digest_folder).content_path(run)
        assert list(examples(digest_folder).values()) == [kept]
    assert len(list((digest_folder / "content").glob("*/*/*"))) == 2
