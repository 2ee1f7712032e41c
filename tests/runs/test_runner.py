"""Stopping and resuming: the outcome is the one of an uninterrupted training, bit by bit."""

import errno
import io
import json
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from rich.console import Console

from tests.runs.crashes import Crash, crash_at_files, stop_after
from tests.runs.small import STEPS, STOPS, files_of, same_records, small, state_of
from windvane import files, resume, train
from windvane.agents.conditioned import ConditionedNetwork
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError
from windvane.runs import checkpoint, display, runner
from windvane.runs.checkpoint import Checkpoint
from windvane.runs.result import Result
from windvane.runs.stopping import TrainingStopped
from windvane.training import fused_session


def same_outcome(result: Result, expected: Result) -> bool:
    pairs = zip(result.policies, expected.policies, strict=True)
    return same_records(result.records, expected.records) and all(
        bool((a == b).all())
        for one, other in pairs
        for a, b in zip(jax.tree.leaves(one.network), jax.tree.leaves(other.network), strict=True)
    )


@pytest.mark.parametrize("stops", [[stop] for stop in STOPS[::2]] + [list(STOPS)])
@pytest.mark.usefixtures("keep_checkpoints")
def test_a_stopped_training_resumes_to_the_same_end(
    stops: list[int],
    folder: Path,
    finished: Result,
    last_state: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    todo = list(stops)
    stop_after(monkeypatch, todo)
    begin: Callable[[], Result] = lambda: train(small(checkpoint_seconds=1e6), out=folder)  # noqa: E731
    for stop in stops:
        with pytest.raises(TrainingStopped, match=f"stopped at step {stop}; resume with: windvane"):
            begin()
        begin = lambda: resume(folder)  # noqa: E731
    result = begin()
    assert not todo
    assert same_outcome(result, finished)
    assert state_of(folder) == last_state


def test_a_checkpoint_within_a_chunk_is_resumed_from(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one may be that was written by a version with chunks of other lengths."""
    stop_after(monkeypatch, [160])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder)
    longer = list(runner.chunks(small(chunk=200)))
    assert [chunk.stop - chunk.start for chunk in longer] == [80, 200, 200]
    monkeypatch.setattr(runner, "chunks", lambda config: longer)
    assert same_outcome(resume(folder), finished)


def test_a_finished_training_is_read(finished: Result) -> None:
    assert finished.folder is not None
    before = files_of(finished.folder)
    assert same_outcome(resume(finished.folder), finished)
    assert files_of(finished.folder) == before
    assert sorted(before) == [
        "config.json", "episodes.parquet", "policies/seed-3.safetensors",
        "policies/seed-5.safetensors", "replay-content.parquet", "summary.json",
    ]  # fmt: skip
    summary = json.loads(before["summary.json"])
    assert summary["runs"] == ["seed-3", "seed-5"]
    assert summary["regret"] == pytest.approx(finished.regret.overall.tolist())
    assert summary["utility"] == pytest.approx(finished.utility.overall.tolist())


def test_a_crash_at_any_file_loses_and_doubles_nothing(
    tmp_path: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = crash_at_files(monkeypatch)
    crashes = 0
    for number in range(1, 100):
        folder, left[0] = tmp_path / str(number), number
        try:
            train(small(), out=folder)
        except Crash:
            crashes += 1
            there = (folder / "config.json").exists()
            result = resume(folder) if there else train(small(), out=folder)
            assert same_outcome(result, finished), number
            assert same_records(resume(folder).records, finished.records), number
        else:
            break
    # The configuration, a part and a checkpoint for each of six chunks, and five more in the end.
    assert crashes == 1 + 2 * 6 + 5


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    match how:
        case "cut":
            del data[len(data) // 2 :]
        case "empty":
            data.clear()
        case "flipped":
            data[len(data) // 2] ^= 1
        case "zeros":
            data[-4096:] = bytes(4096)
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "empty", "flipped", "zeros"])
@pytest.mark.parametrize("number", [1, 2])
def test_damaged_checkpoints_are_passed_over(
    how: str, number: int, folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, [320])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder)
    saved = checkpoint.saved(folder)
    assert len(saved) == 2
    for path in saved[-number:]:
        damage(path, how)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = resume(folder)
    sentences = [str(one.message) for one in said]
    damaged = [one for one in sentences if "is damaged and is passed over" in one]
    assert len(damaged) == number
    assert same_outcome(result, finished)
    # Without a checkpoint it began anew, and keeps the records that there were.
    aside = list(folder.rglob("*.aside*"))
    assert len(aside) == (4 if number == 2 else 0)
    assert [one for one in sentences if "training resumes at step 0" in one] == sentences[number:]
    assert len(sentences[number:]) == number - 1


def test_with_all_checkpoints_damaged_new_ones_are_kept(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, [400])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder)
    for path in checkpoint.saved(folder):
        damage(path, "cut")
    stop_after(monkeypatch, [240])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TrainingStopped):
            resume(folder)
    assert [path.stem for path in checkpoint.saved(folder)] == [
        "step-000000000160", "step-000000000240",
    ]  # fmt: skip
    assert same_outcome(resume(folder), finished)


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    state = {"key": jax.random.key(1), "a": jnp.arange(5), "b": jnp.asarray([True, False])}
    path = checkpoint.save(tmp_path, Checkpoint(7, state))
    data = path.read_bytes()
    step, back, *_ = checkpoint.read(path, state)
    assert step == 7
    assert jax.tree.structure(back) == jax.tree.structure(state)
    assert back["key"] == state["key"]
    rejected = 0
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        try:
            step, changed, *_ = checkpoint.read(path, state)
        except Exception:
            rejected += 1
        else:  # a date or the like: whatever is read is right
            assert step == 7
            assert changed["key"] == state["key"]
            assert (changed["a"] == state["a"]).all()
            assert (changed["b"] == state["b"]).all()
    assert rejected > len(data) / 2


def test_a_checkpoint_of_another_training_is_not_used(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, Checkpoint(7, {"a": jnp.arange(5)}))
    with pytest.raises(InputError, match=r"does not fit the config\.json .* int32 of shape"):
        checkpoint.load(tmp_path, {"a": jnp.arange(6)})
    assert len(checkpoint.saved(tmp_path)) == 1


def test_a_checkpoint_of_a_newer_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(tmp_path, Checkpoint(1, {"a": jnp.arange(5)}))
    monkeypatch.setattr(checkpoint, "FORMAT", 0)
    with pytest.raises(InputError, match="written by a newer Windvane"):
        checkpoint.load(tmp_path, {"a": jnp.arange(5)})


def test_a_full_disk_leaves_what_there_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_after(monkeypatch, [240])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder)
    before = files_of(folder)

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(InputError, match="No space left on device") as complaint:
            resume(folder)
    assert "\n" not in str(complaint.value)
    assert files_of(folder) == before


def test_a_file_in_the_way_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        train(small(), out=tmp_path / "file")


def test_a_folder_in_use_is_refused(finished: Result) -> None:
    assert finished.folder is not None
    with pytest.raises(InputError, match="choose another folder, or resume it"):
        train(small(), out=finished.folder)


def test_a_training_that_goes_on_elsewhere_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, [80])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder)
    with (
        files.file_lock(folder / "config.json"),
        pytest.raises(InputError, match="another process is training in"),
    ):
        resume(folder)


def test_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no training run in"):
        resume(tmp_path)


def test_without_a_folder_the_outcome_is_the_same(finished: Result) -> None:
    assert same_outcome(train(small()), finished)


def test_a_thread_of_the_users_own(finished: Result) -> None:
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(train(small())))
    thread.start()
    thread.join()
    assert same_outcome(results[0], finished)


def test_stopping_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_after(monkeypatch, [160])
    with pytest.raises(TrainingStopped, match="stopped at step 160; nothing was kept"):
        train(small())


def test_asked_twice_it_stops_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(tree: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(fused_session, "wait_for", wait)
    before = signal.getsignal(signal.SIGINT)  # in the background of a shell it is ignored
    with pytest.raises(TrainingStopped, match="stopped at once; resume from its last checkpoint"):
        train(small(), out=folder)
    assert signal.getsignal(signal.SIGINT) is before


def test_names_settings_and_objects(folder: Path, finished: Result) -> None:
    settings = {k: v for k, v in small().to_json().items() if k not in ("format", "env")}
    assert same_outcome(train("dst", **settings), finished)
    # An environment that its parameters rebuild is known by its name.
    result = train(DeepSeaTreasure(), out=folder, **settings)
    assert same_outcome(result, finished)
    assert result.config == finished.config
    assert same_outcome(resume(folder), finished)


class Sea(DeepSeaTreasure):
    """What no name rebuilds."""


def test_objects_must_be_given_again(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {k: v for k, v in small().to_json().items() if k not in ("format", "env")}
    stop_after(monkeypatch, [240])
    with pytest.raises(TrainingStopped):
        train(Sea(), out=folder, **settings)
    with pytest.raises(InputError, match=r"Sea\) and cannot be rebuilt: give it again, as env="):
        resume(folder)
    with pytest.raises(InputError, match="is not the one that this run was trained with"):
        resume(folder, env=Sea(time_limit=50))
    with pytest.raises(InputError, match="is not the one that this run was trained with"):
        resume(folder, env=DeepSeaTreasure())
    with pytest.raises(InputError, match="this run's agent is 'cn' by name, and an object was"):
        resume(folder, env=Sea(), agent=ConditionedNetwork())
    with pytest.raises(InputError, match="this run's agent is 'cn', not 'mo'"):
        resume(folder, env=Sea(), agent="mo")
    assert same_outcome(resume(folder, env=Sea()), finished)
    # Once it is finished it is only read, which needs no environment.
    assert same_outcome(resume(folder), finished)
    assert same_outcome(resume(folder, env=Sea()), finished)
    with pytest.raises(InputError, match="cannot be rebuilt: give it again, as env="):
        _ = resume(folder).policies[0].env


def test_bad_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match="unknown env 'chess'"):
        train("chess")
    with pytest.raises(InputError, match="env must be a configuration"):
        train(3)
    with pytest.raises(InputError, match="unknown setting 'lr'"):
        train("dst", lr=3)
    with pytest.raises(InputError, match="agent must be a name or an object of its class, not 3"):
        train("dst", 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="give a schedule or fixed weights, not both"):
        train("dst", schedule="sparse", weights=[0.5, 0.5])
    with pytest.raises(InputError, match="weights must be one vector of numbers, not 'sparse'"):
        train("dst", weights="sparse")
    for wrong in (np.ones((1, 2)) / 2, np.asarray(["a", "b"]), [True, False], [], 0.5):
        with pytest.raises(InputError, match="weights must be one vector of numbers"):
            train("dst", weights=wrong)
    with pytest.raises(InputError, match="is for 3 objectives, and the environment has 2"):
        train("dst", weights=[0.25, 0.25, 0.5])
    with pytest.raises(InputError, match="optimal values must be rows of finite numbers"):
        train("dst", optimal=[[1.0, float("nan")]])


@pytest.mark.parametrize(
    "weights", [[0.25, 0.75], (0.25, 0.75), np.float32([0.25, 0.75]), jnp.asarray([0.25, 0.75])]
)
def test_fixed_weights_are_a_vector_of_any_kind(weights: Any) -> None:
    assert runner._schedule(None, weights) == runner._schedule(weights, None) == "0.25,0.75"
    assert runner._schedule(("sparse", "regular"), None) == ("sparse", "regular")


def test_a_failed_run_is_named_and_the_others_go_on(finished: Result) -> None:
    failed = Result(finished.config, finished.records, finished.policies, (1,))
    (sentence,) = failed.sentences
    assert "1 of 2 runs diverged (seed-5)" in sentence
    assert finished.sentences == []


def test_a_log_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "LOG_EVERY", 0.0)
    text = io.StringIO()
    train(small(), console=Console(file=text, width=40))
    lines = text.getvalue().splitlines()
    assert lines.pop(0) == "compiling, about 20 s on an idle machine"
    assert len(lines) == STEPS // 80
    assert lines[-1].startswith("step 480 of 480, ")
    assert " steps/s, 0 s left, mean regret of the last 100 episodes 0." in lines[-1]
    assert all("\x1b" not in line for line in lines)


def test_a_terminal_gets_a_bar() -> None:
    text = io.StringIO()
    train(small(), console=Console(file=text, force_terminal=True, width=120))
    assert "step 480 of 480" in text.getvalue()


def rows_of(*regrets: float) -> dict[str, np.ndarray]:
    return {"regret": np.asarray(regrets), "utility": -np.asarray(regrets)}


def test_measures() -> None:
    measures = display.Measures(0, 10_000, 3)
    measures.add(1.0, 100, rows_of())
    measures.add(10.0, 1000, rows_of(1.0))
    assert measures.text == "step 1,000 of 10,000, mean regret of the last 1 episodes 1.0000"
    measures.add(12.0, 2000, rows_of(0.0))
    assert "1,500 steps/s, 16 s left, mean regret of the last 2 episodes 0.5000" in measures.text


def test_without_regret_utility_is_shown() -> None:
    measures = display.Measures(0, 10_000, 1)
    measures.add(1.0, 100, {"regret": np.asarray([np.nan]), "utility": np.asarray([0.25])})
    said = "step 100 of 10,000, compiling the rest, mean utility of the last 1 episodes 0.2500"
    assert measures.text == said
