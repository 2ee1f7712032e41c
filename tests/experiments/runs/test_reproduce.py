"""A grid that is stopped, shared or disturbed ends with the store of one that ran through."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.experiments.small_grid import GRID, SETTINGS, content, run_small
from tests.runs.crashes import Crash, crash_at_files, stop_after
from tests.runs.small import small
from windvane.errors import InputError
from windvane.experiments.paper.grids import Grid
from windvane.experiments.report.summary_files import write_summaries
from windvane.experiments.runs import jobs as module
from windvane.experiments.runs.cells import schedules_of
from windvane.experiments.runs.cluster import reproduce_on
from windvane.experiments.runs.jobs import ELAPSED, WORK, make_jobs, run_job, unfinished_jobs
from windvane.experiments.runs.reproduce import reproduce
from windvane.experiments.runs.store import Store, read_run
from windvane.files import BusyError, file_lock
from windvane.learning.learner import init_key
from windvane.runs.runner import train
from windvane.runs.stopping import TrainingStopped
from windvane.training.build import build
from windvane.training.config import TrainConfig


def test_a_store_holds_every_run_and_nothing_is_left_over(whole: Path) -> None:
    assert all(map(Store(whole).has, GRID.runs(2, **SETTINGS)))
    assert len(Store(whole).paths()) == 8
    assert list((whole / WORK).iterdir()) == []
    run, records, failed, provenance = read_run(Store(whole).paths()[0])
    assert not failed
    assert provenance["parallel_runs"] == 4
    assert set(records["seed"].tolist()) == {run.seed_numbers[0]}
    assert set(records["schedule"].tolist()) == {schedules_of(run)[0]}


def test_what_is_there_is_skipped(whole: Path) -> None:
    before = content(whole)
    result = run_small(whole)
    assert (result.trained, result.skipped) == (0, 8)
    assert content(whole) == before


def test_what_is_missing_is_trained(whole: Path, tmp_path: Path) -> None:
    for path in Store(whole).paths():
        if "mo-standard" in str(path):
            Store(tmp_path).put(str(path.relative_to(whole)), path.read_bytes())
    result = run_small(tmp_path)
    assert (result.trained, result.skipped) == (4, 4)
    assert content(tmp_path) == content(whole)


def test_what_is_completed_elsewhere_is_not_trained_again(whole: Path, tmp_path: Path) -> None:
    summaries = [d for d in Store(whole).summaries() if d.config.agent == "mo"]
    write_summaries(summaries, tmp_path / "completed")
    result = run_small(tmp_path / "out", completed=tmp_path / "completed")
    assert (result.trained, result.skipped) == (4, 4)
    there = {str(path) for path in content(tmp_path / "out")}
    assert there == {path for path in content(whole) if "cn-standard" in path}
    # An unfinished job is finished as it is, with all its runs.
    unfinished_out = tmp_path / "unfinished"
    first = make_jobs(GRID.runs(2, **SETTINGS))[0]
    declared = first.path(Store(unfinished_out))
    declared.parent.mkdir(parents=True)
    declared.write_text(json.dumps(first.config.to_json()))
    result = run_small(unfinished_out, completed=whole)
    assert (result.trained, result.skipped) == (4, 4)
    assert list((unfinished_out / WORK).iterdir()) == []
    result = run_small(tmp_path / "none", completed=whole)
    assert (result.trained, result.skipped) == (0, 8)
    result = reproduce_on("nowhere", GRID, tmp_path / "none", seeds=2, completed=whole, **SETTINGS)
    assert (result.trained, result.skipped) == (0, 8)


def test_a_job_is_the_same_in_whatever_order_its_cells_are_asked_for() -> None:
    one, other = (
        make_jobs(GRID.select(patterns).runs(2, **SETTINGS))
        for patterns in (["*-sparse", "*-regular"], ["*-regular", "*-sparse"])
    )
    assert one == other
    # Apart from one another, they keep the order.
    apart = make_jobs(
        GRID.select(["mo-*-regular", "mo-*-sparse"]).runs(1, **SETTINGS), max_parallel_runs=1
    )
    assert [schedules_of(job.config) for job in apart] == [("regular",), ("sparse",)]


def test_parallel_runs_every_run_meets_the_weights_of_its_own_cell(whole: Path) -> None:
    for path in Store(whole).paths():
        run, records, _, _ = read_run(path)
        key = init_key(jax.random.key(run.seed_numbers[0]), 3)
        begins = jnp.asarray(records["step"] - records["length"])
        weights = jax.vmap(build(run).schedule.weights, (None, 0, 0))
        expected = weights(key, jnp.asarray(records["episode"]), begins)
        met = np.stack([records["weights_0"], records["weights_1"]], 1)
        np.testing.assert_allclose(met, expected, atol=1e-6)
        assert len(np.unique(met, axis=0)) == (1 if schedules_of(run)[0] == "sparse" else len(met))


@pytest.mark.slow
def test_a_run_beside_others_is_the_run_alone_up_to_rounding(whole: Path) -> None:
    run = next(run for run in GRID.runs(2, **SETTINGS) if schedules_of(run)[0] == "regular")
    alone = train(run).records
    _, beside, _, _ = read_run(Store(whole).path(run))
    for name in ("step", "length", "weights_0", "return_0", "return_1", "regret", "epsilon"):
        np.testing.assert_allclose(alone[name][:5], beside[name][:5], atol=1e-5)


def test_a_crash_at_any_file_changes_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = crash_at_files(monkeypatch)
    expected, chunks = content(whole), SETTINGS["steps"] // SETTINGS["chunk"]
    # The job, its configuration, a part and a checkpoint a chunk, all records, four policies, the
    # summary, four runs; and the same for the second job.
    a_job = 2 + 2 * chunks + 1 + 4 + 1 + 4
    for number in range(1, 2 * a_job + 1, 3):
        out, left[0] = tmp_path / str(number), number
        with pytest.raises(Crash):
            run_small(out)
        run_small(out)
        assert content(out) == expected, number
        assert list((out / WORK).iterdir()) == [], number
    left[0] = 2 * a_job + 1
    run_small(tmp_path / "through")
    assert left[0] == 1


def test_a_stop_says_how_to_resume(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: Any, **named: Any) -> None:
        raise TrainingStopped("stopped at step 80; go on with: windvane resume elsewhere")

    with monkeypatch.context() as patch:
        patch.setattr(module, "train", stopped)
        with pytest.raises(TrainingStopped, match="stopped; the same command resumes where it was"):
            run_small(tmp_path)
    (elapsed,) = (tmp_path / WORK).glob(f"*{ELAPSED}")
    assert 0 <= float(elapsed.read_text()) < 60
    elapsed.write_text("1000")
    run_small(tmp_path)
    assert content(tmp_path) == content(whole)
    took = [read_run(path)[-1]["seconds"] for path in Store(tmp_path).paths()]
    assert sorted(seconds > 1000 for seconds in took) == [False] * 4 + [True] * 4
    assert list((tmp_path / WORK).iterdir()) == []


def test_seconds_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.seconds"
    assert module._read_seconds(path) == 0
    path.write_text("many")
    assert module._read_seconds(path) == 0
    path.write_text("2.5")
    assert module._read_seconds(path) == 2.5


def test_a_stop_in_the_last_chunk_of_a_job_begins_no_other(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [SETTINGS["steps"]])
        with pytest.raises(TrainingStopped, match="the same command resumes"):
            run_small(tmp_path)
    assert len(Store(tmp_path).paths()) == 4
    assert run_small(tmp_path).trained == 4
    assert content(tmp_path) == content(whole)


def test_what_another_process_has_done_meanwhile_is_not_done_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.train

    def train(config: TrainConfig, **named: Any) -> Any:
        # While this process is at the first job, another does a part of the second.
        for path in Store(whole).paths():
            if "mo-standard-sparse" in str(path):
                Store(tmp_path).put(str(path.relative_to(whole)), path.read_bytes())
        return real(config, **named)

    monkeypatch.setattr(module, "train", train)
    assert run_small(tmp_path).trained == 6
    made = content(tmp_path)
    kept = {name: value for name, value in content(whole).items() if "mo-standard-sparse" in name}
    assert {name: made[name] for name in kept} == kept


def test_a_job_that_fails_is_listed_and_the_others_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.train

    def train(config: TrainConfig, **named: Any) -> Any:
        if config.agent == "cn":
            raise RuntimeError("no memory is left")
        return real(config, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, "train", train)
        result = run_small(tmp_path)
    assert result.trained == 4
    ((job, why),) = result.failures.items()
    assert job == "cn, standard: sparse and regular, seeds 0, 1"
    assert why.startswith("no memory is left; see ")
    assert "in train" in Path(why.rpartition(" ")[2]).read_text()
    assert run_small(tmp_path).trained == 4
    assert list((tmp_path / WORK).iterdir()) == []


def test_a_job_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    first, second = make_jobs(GRID.runs(2, **SETTINGS))
    declared = tmp_path / WORK / f"{first.name}.json"
    declared.parent.mkdir()
    declared.write_text(json.dumps(first.config.to_json()))
    with file_lock(declared):
        with pytest.raises(BusyError):
            run_job(first, Store(tmp_path))
        result = run_small(tmp_path)
    assert result.busy == [str(first)]
    assert result.trained == len(second.config.runs)
    assert unfinished_jobs(Store(tmp_path), GRID.runs(2, **SETTINGS)) == [first]


def test_jobs_share_a_program() -> None:
    every = Grid.paper("dst").runs(10)
    found = make_jobs(every)
    assert len(found) == 14
    assert sorted(run.seed_numbers for b in found for run in b.config.runs) == sorted(
        run.seed_numbers for run in every
    )
    assert {len(b.config.runs) for b in found} == {20}
    assert {len(b.config.runs) for b in make_jobs(every, 8)} == {4, 8}
    assert {run for b in make_jobs(every, 3) for run in b.config.runs} == set(every)
    assert {len(b.config.runs) for b in make_jobs(every, 1)} == {1}
    # Where the seeds of the two kinds differ, they cannot share a job.
    some = [run for run in every if run.agent == "cn" and run.replay == "der"][:15]
    assert [(schedules_of(b.config), len(b.config.runs)) for b in make_jobs(some)] == [
        (("sparse",), 10), (("regular",), 5),
    ]  # fmt: skip
    assert len({b.name for b in found}) == 14


def test_jobs_with_their_own_rhythm_of_changes_are_apart() -> None:
    runs = [*small(schedule="sparse").runs, *small(schedule="regular").runs]
    assert [schedules_of(b.config) for b in make_jobs(runs)] == [("sparse",), ("regular",)]


def test_bad_settings_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown setting 'stepz'"):
        reproduce(GRID, tmp_path / "out", stepz=3)
    with pytest.raises(InputError, match="number of seeds must be a whole number"):
        reproduce(GRID, tmp_path / "out", seeds=0)
    assert not (tmp_path / "out").exists()


PROGRAM = """
import sys
from pathlib import Path
from tests.experiments.small_grid import run_small

result = run_small(Path(sys.argv[1]))
sys.exit(1 if result.failures else 3 if result.busy else 0)
"""


def start(cache: Path, out: Path) -> "subprocess.Popen[bytes]":
    # Compiled once: what is tested lies after that.
    env = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(out)], env=env)


def names(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


@pytest.mark.slow
def test_two_processes_on_one_store_lose_nothing(whole: Path, tmp_path: Path) -> None:
    both = [start(tmp_path / "cache", tmp_path / "out") for _ in range(2)]
    assert {process.wait() for process in both} <= {0, 3}
    run_small(tmp_path / "out")
    assert content(tmp_path / "out") == content(whole)


@pytest.mark.slow
def test_a_grid_killed_at_ten_moments_ends_with_the_same_store(whole: Path, tmp_path: Path) -> None:
    cache, out, draw = tmp_path / "cache", tmp_path / "out", Random(0)
    assert start(cache, tmp_path / "first").wait() == 0
    killed = number = 0
    while killed < 10:
        before = names(out)
        process = start(cache, out)
        while process.poll() is None and names(out) <= before:
            time.sleep(0.005)
        time.sleep(draw.random() * 0.4)
        if process.poll() is None:
            process.kill()
            killed += 1
            process.wait()
        else:  # it was quicker: on with another
            assert process.returncode == 0
            assert content(out) == content(whole)
            number += 1
            out = tmp_path / f"out-{number}"
    assert start(cache, out).wait() == 0
    assert content(out) == content(whole)
