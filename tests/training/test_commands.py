"""The commands about training: what they write and print, and how they refuse."""

import shutil
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from PIL import Image
from windvane.commands import base_settings
from windvane.training.result import Result

from tests.training.small import same_records, small
from tests.training.test_runner import stop_after
from windvane import TrainConfig, read_records
from windvane.cli import main


def arguments(config: TrainConfig) -> list[str]:
    found = ["train", "--preset", "quick-dst"]
    for name, value in config.to_json().items():
        if name != "format" and value is not None:
            values = value if isinstance(value, tuple) else (value,)
            found += ["--" + name.replace("_", "-"), *map(str, values)]
    return found


def test_train_stop_and_resume(
    folder: Path,
    finished: Result,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stop_after(monkeypatch, [240])
    assert main([*arguments(small()), "--out", str(folder)]) == 130
    stopped = capsys.readouterr().err.splitlines()[-1]
    assert stopped == f"windvane: stopped at step 240; go on with: windvane resume {folder}"
    assert main(["resume", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "last quarter" in said
    assert f"written: {folder}" in said
    assert same_records(read_records(folder), finished.records)


def test_evaluate(finished: Result, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"evaluate {finished.folder} --weights 0.3,0.7 --episodes 4"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert "95% interval" in said
    assert "mean regret of 2 policies" in said


def test_compare(finished: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "regret.png"
    folder = str(finished.folder)
    assert main(["compare", folder, folder, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"{finished.regret.overall.mean():.4f}" in said
    assert said.count("100%") == 2
    assert f"written: {out}" in said
    with Image.open(out) as picture:
        assert picture.size[0] > 400
    assert main(["compare", str(tmp_path / "nothing")]) == 2
    assert "no training run" in capsys.readouterr().err
    assert main(["compare", folder, "--out", str(tmp_path / "regret.doc")]) == 2
    said = capsys.readouterr().err
    assert "unknown format of a picture 'doc'; choose one of: " in said
    assert " png," in said


def test_watch(finished: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "film.gif"
    line = f"watch {finished.folder} --weights 0.3,0.7 --run-seed 5 --size 48 --steps 9"
    assert main([*line.split(), "--out", str(out)]) == 0
    assert f"written: {out}" in capsys.readouterr().out
    with Image.open(out) as film:
        assert film.size == (48, 48)


@pytest.mark.parametrize(
    ("line", "preset"),
    [
        ("train", "paper-minecart"),
        ("train --env dst", "paper-dst"),
        ("train --env=dst", "paper-dst"),
        ("train --env dst --preset quick-dst", "quick-dst"),
        ("train --preset=paper-minecart", "paper-minecart"),
        ("train --preset nonsense --env", "paper-minecart"),
    ],
)
def test_the_preset_that_settings_start_from(line: str, preset: str) -> None:
    assert vars(base_settings(line.split())) == vars(TrainConfig.preset(preset))


@pytest.mark.parametrize("command", ["train", "resume", "evaluate", "watch"])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "older" in capsys.readouterr().out  # the folder, wherever it stands


BAD = {
    "train --gamma 2": "gamma must be a number above 0 and at most 1, not 2.0",
    "train --steps 7": "steps must be a multiple of update_interval, 4, not 7",
    "train --seeds 4 4": "seeds must differ from one another",
    "train --width 0": "width must be a whole number",
    "train --out {run}": "a training run in",
    "train --out {file}": "cannot write",
    "resume {missing}": "there is no training run in",
    "resume {garbled}": "is not JSON",
    "resume {newer}": "written by a newer Windvane",
    "evaluate {missing} --weights 0.5,0.5": "there is no training run in",
    "evaluate {unfinished} --weights 0.5,0.5": "is not finished; go on with: windvane resume",
    "evaluate {run} --weights 0.5,0.6": "must sum to 1",
    "evaluate {run} --weights 0.2,0.3,0.5": "must be 2 numbers",
    "evaluate {run} --weights 0.5,0.5 --episodes 0": "--episodes",
    "evaluate {torn} --weights 0.5,0.5": "is not a policy",
    "watch {run} --weights 0.5,0.5 --run-seed 4": "--run-seed must be one of 3, 5, not 4",
    "watch {run} --weights 0.5,0.5 --out a.mp4": "a.mp4",
    "watch {run} --weights 0.5,0.5 --fps 0": "--fps",
    "watch {run} --weights 0.5,0.5 --out {file}/a.gif": "cannot write",
}


@pytest.fixture(scope="module")
def places(finished: Result, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("places")
    assert finished.folder is not None
    found = {"run": finished.folder, "file": root / "file", "missing": root / "missing"}
    found["file"].touch()
    for name in ("garbled", "newer", "unfinished", "torn"):
        found[name] = root / name
        shutil.copytree(finished.folder, found[name])
    (found["garbled"] / "config.json").write_text("{")
    (found["newer"] / "config.json").write_text('{"format": 99}')
    (found["unfinished"] / "summary.json").unlink()
    policy = found["torn"] / "policies" / "seed-5.safetensors"
    policy.write_bytes(policy.read_bytes()[:200])
    return found


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence_and_code_2(
    line: str,
    places: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert main(line.format(**places).split()) == 2
    message = capsys.readouterr().err
    assert BAD[line] in message
    assert message.count("\n") == 1
    assert message.startswith("windvane: ")
