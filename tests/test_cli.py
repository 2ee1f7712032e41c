"""The command line: what it writes, what it prints, and how it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from windvane.cli import main
from windvane.version import __version__


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"windvane {__version__}"


@pytest.mark.parametrize("arguments", [["--help"], ["oracle", "--help"], ["render", "--help"]])
def test_help_teaches(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    assert "windvane" in capsys.readouterr().out


def test_oracle_dst_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oracle", "dst", "--out", str(tmp_path)]) == 0
    assert "10 policies" in capsys.readouterr().out
    for name in ("dst-map.png", "dst-coverage-set.png", "dst-weight-space.png"):
        with Image.open(tmp_path / name) as picture:
            assert np.asarray(picture).std() > 0, name
    rows = (tmp_path / "dst-coverage-set.csv").read_text().splitlines()
    assert rows[0] == "treasure,time,behaviour"
    assert len(rows) == 11


def test_oracle_minecart_uses_the_shipped_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["oracle", "minecart", "--out", str(tmp_path)]) == 0
    assert "10 distinct behaviours" in capsys.readouterr().out
    assert (tmp_path / "minecart-weight-space.png").exists()


def test_render_an_optimal_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "trip.gif"
    assert main(["render", "minecart", "--weights", "0.2,0.3,0.5", "--out", str(path)]) == 0
    assert "terminated" in capsys.readouterr().out
    with Image.open(path) as film:
        assert film.n_frames > 10
        assert film.size == (240, 240)


def test_render_random_actions_as_a_strip(tmp_path: Path) -> None:
    path = tmp_path / "strip.png"
    assert main(["render", "dst", "--out", str(path), "--size", "48", "--steps", "10"]) == 0
    with Image.open(path) as strip:
        assert strip.size[0] > 48


def test_a_map_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "map.txt"
    path.write_text("0 0 0\n5 0 0\n-1 9 0\n")
    assert main(["oracle", "dst", "--map", str(path), "--out", str(tmp_path)]) == 0
    assert "2 policies" in capsys.readouterr().out


BAD = {
    "oracle minecart --gamma 1.5": "1.5",
    "oracle dst --map nowhere.txt": "nowhere.txt",
    "oracle dst --map {broken}": "not a table of numbers",
    "oracle dst --time-limit 0": "time_limit",
    "oracle minecart --config {missing}": "cannot read",
    "oracle minecart --config {outside}": "outside the map",
    "oracle minecart --frame-skip 0": "frame_skip",
    "render minecart --weights 0.5,0.5": "3",
    "render minecart --weights 0.5,0.6,-0.1": "-0.1",
    "render minecart --weights a,b,c": "a,b,c",
    "render dst --out film.mp4": "film.mp4",
    "render dst --size -3": "-3",
    "render dst --out {file}/film.gif": "cannot make the folder",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence_and_code_2(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / name for name in ("missing", "outside", "broken", "file")}
    mine = {"x": 3, "y": 0.5, "distributions": [[0.1, 0.1]]}
    files["outside"].write_text(json.dumps({"mines": [mine]}))
    files["broken"].write_text("0 0\nx y\n")
    files["file"].write_text("")
    assert main(line.format(**files).split()) == 2
    message = capsys.readouterr().err
    assert BAD[line] in message
    assert message.count("\n") == 1
    assert message.startswith("windvane: ")


@pytest.mark.parametrize("line", ["oracle chess", "fly", "render dst --steps many"])
def test_what_the_parser_refuses_is_code_2_too(line: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("windvane.oracle.coverage_set", interrupt)
    assert main(["oracle", "dst", "--out", str(tmp_path)]) == 130


def test_the_console_script_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "windvane.cli", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("windvane")
