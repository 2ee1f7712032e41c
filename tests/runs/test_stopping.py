"""Signals: what they end, when, and how."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runs.small import small
from windvane import resume, train
from windvane.runs import runner, stopping
from windvane.runs.stopping import StopRequest, TrainingStopped, stop_request

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in stopping.SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in stopping.SIGNALS} == before


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_each_signal_asks_once_and_ends_when_asked_twice(name: str) -> None:
    number = getattr(signal, name)
    with stop_request() as stop:
        assert not stop.asked
        signal.raise_signal(number)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_what_ignores_a_hangup_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_request() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.asked
    finally:
        signal.signal(signal.SIGHUP, before)


def test_whoever_listened_before_is_told() -> None:
    with stop_request("the same command resumes") as outer:
        with stop_request("resume one") as inner:
            assert inner.hint == outer.hint == "the same command resumes"
            signal.raise_signal(signal.SIGTERM)
        assert inner.asked
        assert outer.asked


def interrupted_in(stop: StopRequest, kind: Any) -> bool:
    """Whether one signal ends a chunk at once."""
    try:
        with stop.chunk(kind, learning=True):
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.parametrize(
    ("before", "saved", "kind", "at_once"),
    [
        ([], False, "a", True),
        ([], False, None, False),
        (["a"], False, "a", False),
        (["a"], True, "a", False),
        (["a"], False, "b", False),
        (["a"], True, "b", True),
    ],
)
def test_a_chunk_is_finished_where_something_would_be_lost(
    before: list[str],
    saved: bool,
    kind: str | None,
    at_once: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with stop_request() as stop:
        assert not interrupted_in(stop, "a"), "a program of the user's own is not ended"
    monkeypatch.setattr(stopping, "_command", True)
    with stop_request() as stop:
        for one in before:
            with stop.chunk(one, learning=True):
                pass
        if saved:
            stop.saved()
        assert interrupted_in(stop, kind) == at_once


def test_a_hangup_writes_a_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = runner.episode_rows

    def rows(infos: Any, start: int, *rest: Any) -> Any:
        if start == 80:
            signal.raise_signal(signal.SIGHUP)
        return real(infos, start, *rest)

    monkeypatch.setattr(runner, "episode_rows", rows)
    with pytest.raises(TrainingStopped, match="stopped at step 160; resume with"):
        train(small(checkpoint_seconds=1e9), out=folder, progress=False)
    monkeypatch.undo()
    assert [path.name for path in (folder / "checkpoints").iterdir()]
    assert len(resume(folder, progress=False).records["step"])


DEAF = """
import hashlib, os, signal, sys, time
from windvane.runs.stopping import end_process, end_process_when_asked, stop_request

def work():
    # As a compilation: one call that lets other threads run, and no signal through.
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 40_000_000)
"""


def run(body: str, *signals: int, **options: Any) -> tuple[int, str, float]:
    """Start a program, send it signals a little apart, and return what became of it: its exit code,
    what it said, and the seconds from the last signal to its end.
    """
    command = [sys.executable, "-c", DEAF + body]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for index, number in enumerate(signals):
            time.sleep(1.5 if index else 0.2)
            process.send_signal(number)
        began = time.monotonic()
        try:
            said = process.communicate(timeout=4)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[1]
        return process.returncode, said, time.monotonic() - began


def test_a_deaf_main_thread_is_not_waited_for() -> None:
    code, said, seconds = run("with end_process_when_asked(): work()", signal.SIGINT)
    assert (code, said) == (130, "windvane: stopped\n")
    assert seconds < 4


def test_one_signal_ends_a_process_that_has_nothing_to_lose() -> None:
    body = """
with end_process_when_asked(), stop_request("resume with: this") as stop:
    with stop.chunk("first", learning=True): work()
"""
    code, said, seconds = run(body, signal.SIGINT)
    assert (code, said) == (130, "windvane: resume with: this\n")
    assert seconds < 4


def test_two_signals_end_any_other() -> None:
    body = """
with end_process_when_asked(), stop_request("resume with: this") as stop:
    work()
"""
    code, said, seconds = run(body, signal.SIGTERM, signal.SIGINT)
    assert code == 130
    assert said == (
        "stopping after this chunk; once more stops at once\nwindvane: resume with: this\n"
    )
    assert seconds < 4


def test_whoever_handles_signals_is_left_alone() -> None:
    body = """
signal.signal(signal.SIGINT, lambda *_: None)
with end_process_when_asked(): work()
"""
    code, _, seconds = run(body, signal.SIGINT, signal.SIGINT)
    assert code == -signal.SIGKILL
    assert seconds > 3


def test_what_is_open_is_closed_where_the_main_thread_hears() -> None:
    body = """
try:
    with end_process_when_asked(), stop_request() as stop:
        try:
            print("ready", flush=True)
            for _ in range(1000): time.sleep(0.02)
        finally:
            print("closed", file=sys.stderr, flush=True)
except KeyboardInterrupt:
    end_process("interrupted")
"""
    code, said, _ = run(body, signal.SIGHUP, signal.SIGHUP)
    assert code == 130
    assert said.splitlines()[1:] == ["closed", "windvane: interrupted"]


def test_an_interruption_that_python_can_only_report_ends_the_process() -> None:
    body = """
class Object:
    def __del__(self):
        print("ready", flush=True)
        for _ in range(500): time.sleep(0.02)

with end_process_when_asked():
    Object()
    work()
"""
    code, said, seconds = run(body, signal.SIGINT)
    assert (code, said) == (130, "windvane: stopped\n")
    assert seconds < 4


def test_a_terminal_that_is_closed_stops_nothing_halfway() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    body = """
out = os.dup(1)
os.dup2(2, 1)
with stop_request() as stop:
    os.write(out, b"ready\\n")
    while not stop.asked: time.sleep(0.02)
    print("a line", flush=True)
    print("another", file=sys.stderr, flush=True)
    os._exit(7)
"""
    command = [sys.executable, "-c", DEAF + body]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(10) == 7


@pytest.mark.slow
def test_ctrl_c_while_jax_compiles(tmp_path: Path) -> None:
    """A crash of JAX's threads at the end of Python was seen in half of such stops."""
    environment = os.environ | {"WINDVANE_COMPILATION_CACHE": "0"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    for number, wait in enumerate((0.0, 1.0, 2.0, 4.0, 6.0, 8.0)):
        out = tmp_path / str(number)
        line = f"train --preset quick-dst --steps 100000 --out {out}"
        with subprocess.Popen(
            [sys.executable, "-m", "windvane.cli", *line.split()],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            while not (out / "config.json").exists():
                time.sleep(0.05)
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:  # past the first chunk, which has something to lose
                process.send_signal(signal.SIGINT)
                process.wait(6)
            said = process.communicate()[1]
        assert process.returncode == 130, (wait, said)
        assert "Traceback" not in said
        assert (out / "config.json").exists()
        if wait > 5:
            assert f"windvane resume {out}" in said


@pytest.mark.slow
def test_what_was_stopped_while_jax_compiled_is_resumed(tmp_path: Path) -> None:
    environment = os.environ | {"WINDVANE_COMPILATION_CACHE": "0"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    out, command = tmp_path / "run", [sys.executable, "-m", "windvane.cli"]
    line = f"train --preset quick-dst --steps 4000 --width 32 --out {out}"
    with subprocess.Popen([*command, *line.split()], env=environment) as process:
        while not (out / "config.json").exists():
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert subprocess.run([*command, "resume", str(out)], env=environment).returncode == 0
    assert (out / "summary.json").exists()
