"""The commands that train: what they write and print, and how they refuse."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest

from tests.cli.small import CONCAVE, SMALL
from windvane import TrainConfig, read_records
from windvane.cli import main
from windvane.cli.training import Train
from windvane.registry import Arguments
from windvane.runs import runner
from windvane.training.config import TrainConfig as Config


def test_a_run_folder_holds_all_that_rebuilds_it(run: Path) -> None:
    config = TrainConfig.load(run / "config.json")
    assert config.env == "dst"
    assert config.env_args == Arguments({"map": "concave"})
    assert config.schedule_args == Arguments({"every": 50})
    assert (run / "policies" / "best" / "seed-5.safetensors").exists()


def test_train_stop_and_resume(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, real = tmp_path / "run", runner.episode_rows

    def rows(infos: Any, start: int, *rest: Any) -> Any:
        if start + len(infos.ended) == 120:
            signal.raise_signal(signal.SIGINT)
        return real(infos, start, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "episode_rows", rows)
        assert main([*CONCAVE, *SMALL, "--out", str(folder)]) == 130
    stopped = capsys.readouterr().err.splitlines()[-1]
    assert stopped == f"windvane: stopped at step 120; resume with: windvane resume {folder}"
    assert main(["resume", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "Mean regret of training episodes (discounted by 0.95, rewards times 0.01)" in said
    assert "last quarter" in said
    assert f"written: {folder}" in said
    mended, whole = read_records(folder), read_records(run)
    for name, column in whole.items():
        assert np.array_equal(mended[name], column, equal_nan=True), name


@pytest.mark.parametrize(
    ("line", "preset"),
    [
        ("train", "paper-minecart"),
        ("train --env dst", "paper-dst"),
        ("train --env=dst", "paper-dst"),
        ("train --env dst --preset quick-dst", "quick-dst"),
        ("train --preset=paper-minecart", "paper-minecart"),
        ("train --preset nonsense --env", "paper-minecart"),
        ("train --env mo:four-room-v0", "default"),
    ],
)
def test_the_preset_that_settings_start_from(line: str, preset: str) -> None:
    assert Train.defaults(line.split()).config == Config.preset(preset)


def test_settings_reach_the_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []

    def stop(config: Any, **_: Any) -> None:
        seen.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train", stop)
    line = (
        "train --env mo:four-room-v0 --env-args maze=[[0,1]] --agent mn --agent-args kappa=0.02 "
        "reuse=none --replay standard --schedule sparse regular --num-envs 4 --no-oracle "
        "--evaluate-every 5000 --seeds 4 7"
    )
    assert main([*line.split(), "--out", str(tmp_path)]) == 130
    assert seen == [
        Config.for_env(
            "mo:four-room-v0", env_args={"maze": [[0, 1]]}, agent="mn",
            agent_args={"kappa": 0.02, "reuse": "none"}, replay="standard",
            schedule=("sparse", "regular"), num_envs=4, oracle=False, evaluate_every=5000,
            seeds=(4, 7),
        )
    ]  # fmt: skip


def test_without_an_oracle_utility_is_printed(
    corridor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["resume", str(corridor), "--trust"]) == 0
    said = capsys.readouterr().out
    assert "Mean utility of training episodes (discounted by 0.98, rewards times 1)" in said
    assert "nan" not in said


def test_what_only_a_folder_names_is_not_imported(
    corridor: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(corridor, folder)
    (folder / "summary.json").unlink()
    assert main(["resume", str(folder)]) == 2
    assert "--trust" in capsys.readouterr().err
    assert main(["resume", str(folder), "--env", "tests.cli.strangers:Invisible"]) == 2
    assert "this run's env is 'tests.cli.strangers:Corridor'" in capsys.readouterr().err
    assert main(["resume", str(folder), "--env", "tests.cli.strangers:Corridor"]) == 0


BAD = {
    "train --gamma 2": "gamma must be a number above 0 and at most 1, not 2.0",
    "train --preset nonsense": "unknown preset 'nonsense'; choose one of: paper-minecart",
    "train --env nonsense": "unknown env 'nonsense'; choose one of: minecart, dst",
    "train --agent nonsense": "unknown agent 'nonsense'",
    "train --schedule nonsense": "fixed weights such as 0.3,0.7, or live:FILE",
    "train --schedule 0.3,0.8": "must sum to 1",
    "train --schedule live:{missing}": "cannot read weights",
    "train --env-args map": "env_args must be of the form name=value, not 'map'",
    "train --env dst --env-args mapp=concave": "has no argument 'mapp'",
    "train --env dst --num-envs 2": "num_envs is for Gymnasium environments",
    "train --env dst --schedule 0.2,0.3,0.5": "is for 3 objectives, and the environment has 2",
    "train --steps 7": "steps must be a multiple of update_interval, 4, not 7",
    "train --seeds 4 4": "seeds must differ from one another",
    "train --width 0": "width must be a whole number",
    "train --out {run}": "a training run in",
    "train --out {file}": "cannot write",
    "resume {missing}": "there is no training run in",
    "resume {garbled}": "is not valid JSON",
    "resume {newer}": "written by a newer Windvane",
    "resume {custom}": "was an object made in Python",
}


@pytest.fixture(scope="module")
def places(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("places")
    found = {"run": run, "file": root / "file", "missing": root / "missing"}
    found["file"].touch()
    for name in ("garbled", "newer", "custom"):
        found[name] = root / name
        shutil.copytree(run, found[name])
    (found["garbled"] / "config.json").write_text("{")
    (found["newer"] / "config.json").write_text('{"format": 99}')
    config = json.loads((run / "config.json").read_text())
    known = {"env": {"type": "mine.Harbour", "fingerprint": "0"}}
    config |= {"env": "custom:Harbour", "env_args": {}, "custom": known}
    (found["custom"] / "config.json").write_text(json.dumps(config))
    (found["custom"] / "summary.json").unlink()
    return found


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence_and_code_2(
    line: str,
    places: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.chdir(tmp_path)
    assert main(line.format(**places).split()) == 2
    message = capsys.readouterr().err
    assert BAD[line] in message
    assert message.count("\n") == 1
    assert message.startswith("windvane: ")
