"""The search as a whole, on tiny networks: the command, what it writes, and going on."""

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from windvane.cli import main, parse
from windvane.cli.training import Train
from windvane.errors import InputError
from windvane.search.cluster import work
from windvane.search.confirm import read_confirmation
from windvane.search.study import open_study
from windvane.search.tune import make_plan, tune
from windvane.training.config import TrainConfig

optuna = pytest.importorskip("optuna")

SMALL = shlex.split(
    "--steps 480 --learning-starts 80 --chunk 80 --width 8 --depth 1 --capacity 200 "
    "--batch-size 8 --schedule-args every=100"
)
SPACE = shlex.split("--space learning_rate=log:0.001..0.1 clip_norm=0.5..5")
LINE = ["tune", "--preset", "quick-dst", *SMALL, *SPACE, "--parallel-trials", "2"]
REST = ["--best", "1", "--confirm-seeds", "2"]
TRIALS = 4


def search(folder: Path, *more: str) -> int:
    """The command."""
    return main([*LINE, *REST, "--out", str(folder), *more])


def small_search(folder: Path, trials: int = TRIALS, **more: Any) -> None:
    """The same from Python: without chance, and every trial to the end. As many runs are trained
    together in the search as in the confirmation, so that little is compiled.
    """
    settings: dict[str, Any] = {
        "steps": 480, "learning_starts": 80, "chunk": 80, "width": 8, "depth": 1, "capacity": 200,
        "batch_size": 8, "schedule_args": {"every": 100}, "parallel_trials": 2, "best": 1,
        "confirm_seeds": 2,
    }  # fmt: skip
    tune(
        "dst", {"learning_rate": (0.001, 0.1, "log"), "clip_norm": (0.5, 5.0)}, preset="quick-dst",
        trials=trials, out=folder, progress=False, sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=optuna.pruners.NopPruner(), **(settings | more),
    )  # fmt: skip


def states(folder: Path) -> list[str]:
    study = open_study(folder, None, None)
    return [trial.state.name for trial in study.trials.get_trials(deepcopy=False)]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search."""
    folder = tmp_path_factory.mktemp("tune") / "study"
    small_search(folder)
    return folder


def test_a_search_from_end_to_end(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = open_study(done, None, None)
    assert len(study.finished) == len(study.best) + 1 == TRIALS
    assert study.running == 0
    assert study.baseline.number == 0
    assert study.best
    # Evaluated where a chunk ends next to a ninth and a third of the steps, and in the end.
    assert {tuple(t.intermediate_values) for t in study.finished} == {(80, 160, 480)}
    found = read_confirmation(done)
    assert {len(runs) for runs in found.values()} == {2}
    assert "preset" in found
    assert search(done, "--report") == 0
    said = capsys.readouterr().out
    assert "Mean greedy regret of 2 seeds, less is better" in said
    assert "the paired difference is" in said
    for name in ("report.md", "trials.csv", "best.json", "history.png", "slices.png"):
        assert (done / name).stat().st_size > 0
        assert name in said
    assert len((done / "trials.csv").read_text().splitlines()) == 1 + TRIALS


def test_the_best_settings_are_a_command_as_it_is(done: Path) -> None:
    best = json.loads((done / "best.json").read_text())
    arguments = shlex.split(best["command"])[1:]
    command = parse(arguments)
    assert isinstance(command, Train)
    study = open_study(done, None, None)
    (winner,) = (t for t in study.best if t.params["learning_rate"] == command.config.learning_rate)
    wanted = study.config_of(winner)
    assert replace(command.config, seeds=wanted.seeds) == wanted
    assert TrainConfig.preset(best["preset"], **best["settings"]) == command.config


def test_the_same_command_goes_on_and_another_is_refused(
    done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = states(done)
    assert search(done, "--trials", str(TRIALS)) == 0  # nothing is left to do
    assert states(done) == before
    capsys.readouterr()
    assert search(done, "--batch-size", "4") == 2
    assert "batch_size is 8 there and 4 here" in capsys.readouterr().err


def test_an_interrupted_search_gives_its_trials_back(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at the second look: the batch waits, the preset first, and is trained when resumed."""
    from windvane.search import tune as module

    folder, looks = tmp_path / "study", []
    real: Callable[[Any], None] = module.SearchPace.check

    def check(self: Any) -> None:
        looks.append(1)
        if len(looks) == 2:
            raise KeyboardInterrupt
        real(self)

    monkeypatch.setattr(module.SearchPace, "check", check)
    with pytest.raises(KeyboardInterrupt):
        small_search(folder, trials=2, confirm_seeds=0)
    assert states(folder) == ["FAIL", "FAIL", "WAITING", "WAITING"]
    first = open_study(folder, None, None).trials.get_trials()
    small_search(folder, trials=2, confirm_seeds=0)
    study = open_study(folder, None, None)
    assert len(study.finished) == 2
    assert study.baseline.number == 2
    assert [t.params for t in study.finished] == [t.params for t in first[:2]]
    # As the preset's in a search that ran through: the same seeds, the same value.
    assert study.baseline.value == open_study(done, None, None).baseline.value


def test_when_the_time_is_up_trials_wait(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    small_search(folder, trials=9, minutes=0.000001, confirm_seeds=0)
    assert states(folder) == ["FAIL", "FAIL", "WAITING", "WAITING"]
    assert (folder / "report.md").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"trials": 0}, "trials must be a whole number from 1"),
        ({"minutes": -1}, "minutes must be a number above 0, not -1"),
        ({"parallel_trials": 0}, "parallel_trials must be a whole number from 1"),
        ({"best": 0}, "best must be a whole number from 1"),
        ({"confirm_seeds": -1}, "confirm_seeds must be a whole number from 0"),
        ({"episodes": 0}, "episodes must be a whole number from 1"),
        ({"preset": "fast-dts"}, "unknown preset 'fast-dts'"),
        ({"evaluate_every": 100}, "evaluate_every is for windvane train"),
        ({"start_from": "x.safetensors"}, "start_from is for windvane train"),
        ({"env": object()}, "env must be a name or a configuration here"),
        ({"space": ["width=1..x"]}, "width must be a range"),
    ],
)
def test_one_sentence_about_bad_input(
    arguments: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        tune(**({"env": "dst", "out": tmp_path / "study", "progress": False} | arguments))
    assert not (tmp_path / "study").exists()


def test_python_and_the_command_mean_the_same() -> None:
    arguments = [*LINE, "--out", "x"]
    command = parse(arguments)
    ours = make_plan(
        "dst",
        {"learning_rate": (0.001, 0.1, "log"), "clip_norm": (0.5, 5.0)},
        "quick-dst",
        1,
        {"steps": 480, "learning_starts": 80, "chunk": 80, "width": 8, "depth": 1,
         "capacity": 200, "batch_size": 8, "schedule_args": {"every": 100}},
    )  # fmt: skip
    theirs = make_plan(command.config, command.space, "quick-dst", 1, {})
    assert ours == theirs


def test_a_task_of_a_cluster_works_on_the_same_study(done: Path, tmp_path: Path) -> None:
    assert work(str(done), None, TRIALS, None, 2) == TRIALS
    with pytest.raises(InputError, match="a study's folder must be shared"):
        work(str(tmp_path / "elsewhere"), None, TRIALS, None, 2)


def test_a_finished_study_needs_no_cluster(done: Path) -> None:
    assert search(done, "--trials", str(TRIALS), "--cluster", "nowhere:1") == 0


def test_without_ray_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert search(tmp_path / "study", "--cluster", "auto") == 2
    assert "a cluster needs Ray: install windvane[cluster]" in capsys.readouterr().err
    assert search(tmp_path / "study", "--tasks", "2") == 2
    assert "--tasks is for --cluster" in capsys.readouterr().err
