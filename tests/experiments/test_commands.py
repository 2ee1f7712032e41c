"""The commands about experiments: what they write and print, and how they refuse."""

import csv
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.synthetic import make_run
from windvane.cli import main
from windvane.experiments.paper.grids import Grid
from windvane.experiments.report.summary_files import (
    LINES,
    SUMMARIES,
    read_summaries,
    write_summaries,
)
from windvane.experiments.runs import processes
from windvane.experiments.runs.processes import environment_of, visible_gpus
from windvane.experiments.runs.store import Store
from windvane.runs.stopping import TrainingStopped


def run(line: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "windvane.cli", *line.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("reproduce atari", "unknown grid 'atari'; choose one of: dst, minecart, selection, naive"),
        ("reproduce dst --cells dqn-*", "no cell of dst matches 'dqn-*'"),
        (
            "reproduce dst --cells",
            "--cells needs at least one name, such as cn-der-sparse or 'mo-*'",
        ),
        ("reproduce dst --list --cells --seeds 1", "--cells needs at least one name"),
        ("reproduce dst --seeds 0", "--seeds must be a whole number of at least 1, not 0"),
        (
            "reproduce dst --max-parallel-runs 0",
            "--max-parallel-runs must be a whole number of at least 1, not 0",
        ),
        ("reproduce dst --processes 0", "--processes must be a whole number of at least 1, not 0"),
        ("reproduce dst --cluster auto --processes 2", "--processes must be 1 with --cluster"),
        ("reproduce dst --steps -4 --out {out}", "steps must be a whole number from 1"),
        ("reproduce dst --steps 7 --out {out}", "steps must be a multiple of update_interval, 4"),
        ("reproduce dst --out {file}/out", "cannot write {file}/out"),
        ("reproduce dst --skip-completed {out} --out {out}", "there is no folder {out}"),
        (
            "reproduce dst --skip-completed {empty} --out {out}",
            "there are no finished runs in {empty}",
        ),
        ("reproduce dst --skip-completed {empty} --list", "there are no finished runs in {empty}"),
        ("reproduce dst --skip-completed {out} --processes 2", "there is no folder {out}"),
        ("reproduce dst --steps -4 --processes 2", "steps must be a whole number from 1"),
        (f"reproduce dst --skip-completed {'long' * 99}", "long" * 99),
        ("report {out}", "there is no folder {out}"),
        ("report {empty}", "there are no finished runs in {empty}"),
        ("report {whole} --out {file}", "cannot write {file}"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    line: str,
    sentence: str,
    whole: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"out": tmp_path / "out", "empty": tmp_path / "empty", "file": tmp_path / "file"}
    places["empty"].mkdir()
    places["file"].write_text("")
    named = {name: str(path) for name, path in (places | {"whole": whole}).items()}
    assert main(line.format(**named).split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("windvane: ")
    assert sentence.format(**named) in said
    assert said.count("\n") == 1
    assert not places["out"].exists()


def test_what_is_there_can_be_listed(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"reproduce dst --cells cn-der-* --seeds 3 --list --out {whole}"
    assert main(line.split()) == 0
    assert [row.split() for row in capsys.readouterr().out.splitlines()] == [
        ["cn-der-sparse", "0", "of", "3", "runs"],
        ["cn-der-regular", "0", "of", "3", "runs"],
    ]


def test_where_all_is_completed_nothing_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    completed, out = tmp_path / "completed", tmp_path / "out"
    write_summaries([make_run(0.1, seed=seed, steps=8) for seed in (0, 1)], completed)
    line = f"reproduce dst --cells cn-der-sparse --steps 8 --skip-completed {completed} --out {out}"
    assert main(f"{line} --list".split()) == 0
    assert capsys.readouterr().out.split() == ["cn-der-sparse", "2", "of", "10", "runs"]
    assert main(f"{line} --seeds 2".split()) == 0
    said = capsys.readouterr().out
    assert "0 runs were trained, 2 were skipped" in said
    assert f"nothing is in {out}: all of them are in {completed}" in said


def test_a_report_and_its_summary_say_the_same(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"report {whole} --out {tmp_path / 'report'} --summary {tmp_path / 'summary'}"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert "Deep Sea Treasure" in said
    for name in ("report.md", "report.tex", "report.csv", "report.html", "dst-regret.png"):
        assert f"written: {tmp_path / 'report' / name}" in said
        assert (tmp_path / "report" / name).stat().st_size > 500
    rows = list(csv.DictReader((tmp_path / "report" / "report.csv").read_text().splitlines()))
    ours = [row for row in rows if row["mean"]]
    assert {(row["agent"], row["replay"], row["seeds"]) for row in ours} == {
        ("cn", "standard", "2"), ("mo", "standard", "2"),
    }  # fmt: skip
    assert main(["report", str(tmp_path / "summary"), "--out", str(tmp_path / "again")]) == 0
    for name in ("report.md", "report.csv"):
        first, second = (tmp_path / where / name for where in ("report", "again"))
        assert first.read_text() == second.read_text()


def test_a_summary_takes_in_the_runs_of_several_stores(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, summary = (tmp_path / name for name in ("first", "second", "summary"))
    for path in Store(whole).paths():
        for store in [first, second] if "seed-0" in path.name else [second]:
            Store(store).put(str(path.relative_to(whole)), path.read_bytes())
    for store, runs in ((first, 4), (second, 8), (first, 8)):
        assert main(f"report {store} --summary {summary}".split()) == 0
        assert len(read_summaries(summary)) == runs
    at_once = tmp_path / "at-once"
    assert main(f"report {whole} --summary {at_once}".split()) == 0
    for name in (SUMMARIES, LINES):
        assert (summary / name).read_bytes() == (at_once / name).read_bytes()
    # Of a run that is there already the new one counts.
    old = [dataclasses.replace(one, overall=one.overall + 1) for one in read_summaries(summary)]
    write_summaries(old, summary)
    assert main(f"report {first} --summary {summary}".split()) == 0
    new = [
        now.overall == was.overall for now, was in zip(read_summaries(summary), old, strict=True)
    ]
    assert new == [one.seed != 0 for one in old]
    (summary / SUMMARIES).write_text("torn")
    capsys.readouterr()
    assert main(f"report {whole} --summary {summary}".split()) == 2
    assert f"{summary / SUMMARIES} is not a summary of runs" in capsys.readouterr().err


def test_earlier_spellings_of_options_are_accepted(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = []
    monkeypatch.setattr(processes, "spawn_processes", lambda *given: lines.append(given[0]))
    line = f"reproduce dst --together 5 --known {whole} --processes 2"
    assert main(line.split()) == 0
    assert lines[0][4:6] == ["--max-parallel-runs", "5"]
    assert lines[0][-2:] == ["--skip-completed", str(whole)]
    out = tmp_path / "report"
    assert main(f"report {whole} --out {out} --digest {tmp_path / 'summary'}".split()) == 0
    assert len(read_summaries(tmp_path / "summary")) == 8


def test_processes_are_told_all_that_was_said(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr(processes, "spawn_processes", lambda *of: told.append(of))
    said = (
        "reproduce dst --seeds 3 --max-parallel-runs 5 --out a --cells cn-* "
        f"--skip-completed {whole} --steps 8"
    )
    assert main(f"{said} --processes 2".split()) == 0
    assert told == [(said.split(), 2)]


def test_processes_on_one_gpu_leave_memory_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)

    def given(processes: int, name: str) -> list[str | None]:
        return [environment_of(number, processes).get(name) for number in range(processes)]

    assert given(3, "CUDA_VISIBLE_DEVICES") == ["2", "5", "2"]
    assert given(3, "XLA_PYTHON_CLIENT_PREALLOCATE") == ["false"] * 3
    assert given(2, "XLA_PYTHON_CLIENT_PREALLOCATE") == [None, None]
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    assert given(3, "XLA_PYTHON_CLIENT_PREALLOCATE") == ["true"] * 3


def test_two_processes_share_a_grid(tmp_path: Path) -> None:
    cells = "--cells mo-standard-* cn-standard-* --seeds 1 --steps 8 --observation features"
    done = run(f"reproduce dst {cells} --out {tmp_path} --processes 2")
    assert done.returncode == 0, done.stderr
    assert "[1] " in done.stdout
    assert "[2] " in done.stdout
    grid = Grid.paper("dst").select(["mo-standard-*", "cn-standard-*"])
    assert all(map(Store(tmp_path).has, grid.runs(1, steps=8, observation="features")))
    # A few steps end no episode: such runs are kept and reported, too.
    report = run(f"report {tmp_path}")
    assert report.returncode == 0, report.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there are no terminals to close")
@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_signals_are_passed_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process writes down which signal it got."""
    number = getattr(signal, name)
    child = (
        "import pathlib, signal, sys, time\n"
        "path = pathlib.Path(sys.argv[1])\n"
        f"def stop(*of): path.write_text('{name}'); sys.exit(0)\n"
        f"signal.signal({int(number)}, stop)\n"
        "path.touch()\n"
        "time.sleep(60)\n"
    )
    places = [tmp_path / "first", tmp_path / "second"]
    left = iter(places)

    def start(*given: Any) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", child, str(next(left))]
        return subprocess.Popen(
            command, start_new_session=True, text=True, stdout=subprocess.PIPE
        )  # fmt: skip

    def send() -> None:
        while not all(place.exists() for place in places):
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(processes, "_start", start)
    before = signal.getsignal(number)
    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(TrainingStopped, match="the same command resumes"):
        processes.spawn_processes([], 2)
    sender.join()
    assert [place.read_text() for place in places] == [name, name]
    assert signal.getsignal(number) == before


def test_signals_that_are_missing_or_ignored_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP"):
        assert processes._stop_signals() == [*usual, signal.SIGHUP]
        monkeypatch.setattr(processes.signal, "getsignal", lambda number: signal.SIG_IGN)
        assert processes._stop_signals() == usual
        monkeypatch.delattr(processes.signal, "SIGHUP")
    assert processes._stop_signals() == usual


def test_gpus_are_counted_without_waking_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert visible_gpus() == ["2", "5"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(processes, "_NVIDIA", Path("/nowhere"))
    assert visible_gpus() == []


@pytest.mark.slow
def test_all_cells_of_deep_sea_treasure_end_to_end(tmp_path: Path) -> None:
    line = f"reproduce dst --seeds 2 --steps 2000 --observation features --out {tmp_path}"
    done = run(line)
    assert done.returncode == 0, done.stderr
    assert "56 runs were trained, 0 were skipped" in done.stdout
    assert "0 runs were trained, 56 were skipped" in run(line).stdout
    report = run(f"report {tmp_path}")
    assert report.returncode == 0, report.stderr
    assert "Not run" not in report.stdout
    assert (tmp_path / "report" / "dst-replay-content.png").exists()
