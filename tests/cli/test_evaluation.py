"""The commands about trained policies: what they print, write and draw, and how they refuse."""

import csv
import shutil
import warnings
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from PIL import Image

import windvane
from tests.cli.strangers import Corridor
from tests.runs.small import without_sums
from windvane import read_records, rendering
from windvane.cli import main
from windvane.runs.result import load_policies
from windvane.runs.tables import write_table

UNIT = "discounted by 0.95, rewards times 0.01"


def rows_of(table: str) -> dict[str, list[str]]:
    """Cells of a printed table by the first of their row."""
    rows = [line.strip("│ ").split("│") for line in table.splitlines() if line.startswith("│")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_evaluate_judges_all_runs_over_a_grid(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0
    said = capsys.readouterr().out
    assert f"1 for each of 101 weight vectors ({UNIT})" in said
    assert "expected utility of 2 policies" in said
    found = rows_of(said)
    assert set(found) == {"seed-3", "seed-5"}
    for name, row in found.items():
        ends = float(row[-1])
        assert (f"{name}: no episode ends by itself for" in said) == (ends > 0)


def test_evaluate_takes_the_best_policy_where_there_is_one(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def steps(folder: Path, *options: str) -> list[str]:
        assert main(["evaluate", str(folder), "--episodes", "1", *options]) == 0
        return [row[0] for row in rows_of(capsys.readouterr().out).values()]

    best = [str(policy.step) for policy in load_policies(run, best=True)]
    assert steps(run) == steps(run, "--policy", "best") == best
    assert steps(run, "--policy", "last") == ["200", "200"]
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    shutil.rmtree(folder / "policies" / "best")
    assert steps(folder) == ["200", "200"]
    assert main(["evaluate", str(folder), "--policy", "best"]) == 2
    assert "without --evaluate-every" in capsys.readouterr().err


def test_evaluate_some_weights(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"evaluate {run} --weights 0.3,0.7 --episodes 4"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert f"for the weights 0.3,0.7 ({UNIT})" in said
    assert "95% interval" in said
    assert "mean regret of 2 policies" in said


def test_evaluate_with_the_oracle_off(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--episodes", "1", "--oracle", "off"]) == 0
    assert rows_of(capsys.readouterr().out)["seed-3"][3:5] == ["-", "-"]


def test_evaluate_without_an_oracle(corridor: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(corridor)]) == 2
    assert "give it again (--env tests.cli.strangers:Corridor)" in capsys.readouterr().err
    line = f"evaluate {corridor} --env tests.cli.strangers:Corridor --episodes 1"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert "nan" not in said
    assert rows_of(said)["seed-0"][3:] == ["-", "-", "0.0"]


def test_front(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "front"
    assert main(["front", str(run), "--episodes", "1", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert UNIT in said
    assert "reference point of the hypervolume: " in said
    found = rows_of(said)
    assert set(found) == {"seed-3", "seed-5", "known front"}
    assert found["known front"][4:] == ["0", "0", "0"]
    with Image.open(out / "front.png") as picture:
        assert np.asarray(picture).std() > 0
    rows = list(csv.DictReader((out / "points.csv").read_text().splitlines()))
    assert len(rows) == 2 * 101
    assert set(rows[0]) >= {"run", "weight of treasure", "return in time", "undominated"}
    for name in ("seed-3", "seed-5"):
        best = [row for row in rows if row["run"] == name and row["undominated"] == "yes"]
        assert len(best) == int(found[name][0])
    line = ["front", str(run), "--episodes", "1", "--out", str(out), "--reference=-1,-1"]
    assert main(line) == 0
    assert "reference point of the hypervolume: -1, -1" in capsys.readouterr().out


def test_front_without_a_known_one(
    corridor: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "front")
    assert main(["front", str(corridor), "--trust", "--episodes", "1", "--out", out]) == 0
    assert rows_of(capsys.readouterr().out)["seed-0"][-3:] == ["-", "-", "-"]


def test_watch(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "film.gif"
    line = f"watch {run} --weights 0.3,0.7 --run-seed 5 --size 48 --steps 9"
    assert main([*line.split(), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"written: {out}" in said
    assert "undiscounted return: treasure" in said
    assert f"({UNIT})" in said
    assert "regret" in said
    with Image.open(out) as film:
        assert film.size[0] == 200  # wide enough for the text below
        assert film.size[1] > 48
        assert film.n_frames <= 10


def test_watch_a_gymnasium_environment(
    corridor: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "film.png"
    line = f"watch {corridor} --trust --weights 0.3,0.7 --size 10 --out {out}"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert "terminated after 4 steps" in said
    assert "regret" not in said
    with Image.open(out) as strip:
        # Five frames, 15 wide in the middle of captions of 200, and gaps of 4.
        assert strip.size[0] == 5 * 204 - 4
        columns = np.asarray(strip)[5, 99::204]
        assert columns.tolist() == [[value] * 3 for value in (0, 20, 40, 60, 80)]
        captions = np.asarray(strip)[10:]
        bars = [(captions[:, 204 * k : 204 * k + 200] == rendering._BAR).all(-1) for k in range(5)]
        assert all(bar.any() for bar in bars)  # of the weights, in every frame


def test_watch_what_cannot_be_drawn(
    corridor: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from windvane.policy import Policy
    from windvane.rendering import film_policy

    policy = Policy.load(corridor / "policies" / "seed-0.safetensors", trust=True)
    hidden = policy.config.to_json() | {"env": "tests.cli.strangers:Invisible"}
    other = Policy(
        policy.spec, policy.agent, policy.network, type(policy.config).from_json(hidden), 0,
        trusted=True,
    )  # fmt: skip
    with pytest.raises(ValueError, match="Invisible cannot be drawn: it cannot be made with"):
        film_policy(other, [0.3, 0.7], 0, 5, 10)
    del tmp_path, capsys


def test_objects_made_in_python_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    windvane.train(
        Corridor(4), out=folder, progress=False, steps=40, learning_starts=20, chunk=20, width=8,
        depth=2, capacity=100, batch_size=8, schedule="regular",
    )  # fmt: skip
    for line in (f"evaluate {folder}", f"front {folder}", f"watch {folder} --weights 0.3,0.7"):
        assert main(line.split()) == 2
        message = capsys.readouterr().err
        assert "was an object made in Python" in message
        assert message.count("\n") == 1


def test_compare(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "regret.png"
    assert main(["compare", str(run), str(run), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    records = read_records(run)
    means = [records["regret"][records["run"] == one].mean() for one in (0, 1)]
    assert f"{np.mean(means):.4f}" in said
    assert said.count(" 100 │") == 2
    assert "relative to first (%)" in said
    assert f"written: {out}" in said
    with Image.open(out) as picture:
        assert picture.size[0] > 400
    assert main(["compare", str(tmp_path / "nothing")]) == 2
    assert "no training run" in capsys.readouterr().err
    assert main(["compare", str(run), "--out", str(tmp_path / "regret.doc")]) == 2
    said = capsys.readouterr().err
    assert "unknown format of a picture 'doc'; choose one of: " in said
    assert " png," in said


def test_compare_unfinished_trainings_and_those_without_an_oracle(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    early, blind = tmp_path / "early", tmp_path / "blind"
    for folder in (early, blind):
        shutil.copytree(run, folder)
        without_sums(folder)
    records = read_records(run)
    write_table(
        early / "episodes.parquet", {k: v[records["step"] < 60] for k, v in records.items()}
    )
    unknown = np.full(len(records["step"]), np.nan)
    write_table(blind / "episodes.parquet", records | {"regret": unknown, "optimal": unknown})
    out = str(tmp_path / "compare.png")
    with warnings.catch_warnings(action="error"):
        assert main(["compare", str(early), str(run), "--out", out]) == 0
        said = capsys.readouterr().out
        assert "Mean regret" in said
        assert rows_of(said)["cn, der (early)"][2:] == ["-", "-"]
        assert main(["compare", str(run), str(blind), "--out", out]) == 0
        assert "Mean utility" in capsys.readouterr().out
    write_table(early / "episodes.parquet", {k: v[:0] for k, v in records.items()})
    assert main(["compare", str(early), "--out", out]) == 2
    assert "no episode of the training in" in capsys.readouterr().err


def test_compare_does_not_mix_problems(
    run: Path, corridor: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(run), str(corridor), "--out", str(tmp_path / "a.png")]) == 2
    assert "different problems and cannot be compared: env is 'dst'" in capsys.readouterr().err


BAD = {
    "evaluate {missing} --weights 0.5,0.5": "there is no training run in",
    "evaluate {unfinished} --weights 0.5,0.5": "is not finished; resume it with: windvane resume",
    "evaluate {run} --weights 0.5,0.6": "must sum to 1",
    "evaluate {run} --weights 0.2,0.3,0.5": "must be 2 numbers",
    "evaluate {run} --weights 0.5,0.5 --episodes 0": "--episodes",
    "evaluate {run} --seed -1": "--seed must be a whole number",
    "evaluate {run} --env minecart": "this run's env is 'dst', not 'minecart'",
    "evaluate {torn} --policy last": "is not a policy",
    "front {missing}": "there is no training run in",
    "front {run} --reference=1": "--reference must be 2 numbers",
    "front {run} --reference=a,b": "--reference must be 2 numbers",
    "front {run} --out {file}": "cannot write",
    "watch {run} --weights 0.5,0.5 --run-seed 4": "--run-seed must be one of 3, 5, not 4",
    "watch {run} --weights 0.5,0.5 --out a.avi": "a.avi",
    "watch {run} --weights 0.5,0.5 --fps 0": "--fps",
    "watch {run} --weights 0.5,0.5 --out {file}/a.gif": "cannot write",
}


@pytest.fixture(scope="module")
def places(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("places")
    found = {"run": run, "file": root / "file", "missing": root / "missing"}
    found["file"].touch()
    for name in ("unfinished", "torn"):
        found[name] = root / name
        shutil.copytree(run, found[name])
    (found["unfinished"] / "summary.json").unlink()
    without_sums(found["torn"])
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
