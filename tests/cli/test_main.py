"""The command line as a whole: versions, exit codes, terminals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import windvane
from tests.cli.small import SMALL
from windvane import cli
from windvane.cli import main, problems
from windvane.version import __version__


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"windvane {__version__}"


@pytest.mark.parametrize(
    ("command", "resumable"),
    [("oracle dst --out", True), ("render dst --weights 0.5,0.5 --out", False)],
)
def test_ctrl_c_is_no_traceback(
    command: str,
    resumable: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("windvane.oracle.coverage_set", interrupt)
    assert main([*command.split(), str(tmp_path / "new.gif")]) == 130
    assert ("the same command resumes the search" in capsys.readouterr().err) == resumable


def test_the_console_script_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "windvane.cli", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("windvane")


def test_an_ascii_terminal_is_enough(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    path = tmp_path / "tr\u00e9sor.txt"
    path.write_text("0 0\n5 0\n-1 9\n")
    for line in (["oracle", "dst", "--map", str(path), "--out", str(tmp_path)], ["train", "-h"]):
        command = [sys.executable, "-m", "windvane.cli", *line]
        done = subprocess.run(command, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""


LONG = "name" * 100


@pytest.mark.parametrize(
    "line",
    [
        f"evaluate {LONG}",
        f"front {LONG}",
        f"watch {LONG} --weights 0.5,0.5",
        f"compare {LONG}",
        f"resume {LONG}",
        f"report {LONG}",
        f"oracle dst --map {LONG}",
        f"oracle dst --out {LONG}",
        f"oracle minecart --config {LONG}",
        f"render dst --out {LONG}/film.gif",
        f"train --preset quick-dst --out {LONG}",
        f"train --preset quick-dst --out out --env-args map={LONG}",
        f"train --preset quick-dst --out out --schedule live:{LONG}",
        f"train --preset quick-dst --out out --start-from {LONG}",
    ],
)
def test_a_name_that_is_too_long_is_one_sentence(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("windvane: ")
    assert said.count("\n") == 1
    assert not list(tmp_path.glob("out/*"))


EVERYTHING = """
import sys
from windvane.cli import main, problems

folder, small = sys.argv[1], sys.argv[2:]
for line in (
    ["--help"],
    ["train", "--preset", "quick-dst", *small, "--out", folder],
    ["resume", folder],
    ["evaluate", folder, "--episodes", "1"],
    ["front", folder, "--episodes", "1"],
    ["compare", folder, "--out", folder + "/compare.png"],
    ["oracle", "dst", "--out", folder + "/oracle"],
    ["watch", folder, "--weights", "0.5,0.5", "--steps", "2", "--out", folder + "/watch.gif"],
):
    assert not main(line), line
assert main(["evaluate", folder + "/none"]) == 2
assert main(["train", "--agent", folder]) == 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [
        {"PYTHONIOENCODING": "ascii"},
        # Names of files that are not ASCII are no text there.
        {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
    ],
    ids=["terminal", "system"],
)
def test_names_that_a_terminal_lacks_stop_no_command(
    system: dict[str, str], tmp_path: Path
) -> None:
    small = [*SMALL, "--schedule-args", "every=50"]
    command = [sys.executable, "-c", EVERYTHING, str(tmp_path / "l\u00e4ufe"), *small]
    done = subprocess.run(command, capture_output=True, env=os.environ | system)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout.isascii()


def test_the_current_folder_may_be_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    program = (
        "import os, sys; os.rmdir(os.getcwd()); from windvane.cli import main; sys.exit(main())"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(windvane.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        cwd=tmp_path / "gone", capture_output=True, env=environment, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_error_to_tell_of() -> None:
    command = [sys.executable, "-m", "windvane.cli", "train", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_own_warnings_are_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a line of source; those of other packages are shown as Python does."""
    shown: list[object] = []
    show = cli._in_one_line(lambda *rest: shown.append(rest))
    show(UserWarning("records are\n gone"), UserWarning, f"{cli.PACKAGE}/runs/records.py", 3)
    assert capsys.readouterr().err == "windvane: records are gone\n"
    for category, file in (
        (UserWarning, "/elsewhere/a.py"),
        (FutureWarning, f"{cli.PACKAGE}/a.py"),
    ):
        show(category("old"), category, file, 3)
    assert len(shown) == 2
    assert capsys.readouterr().err == ""


def test_a_command_may_return_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems.Oracle, "run", lambda *_: 1)
    assert main(["oracle", "dst"]) == 1
    monkeypatch.setattr(problems.Oracle, "run", lambda *_: None)
    assert main(["oracle", "dst"]) == 0
