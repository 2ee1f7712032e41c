"""Studies without training: who gets which trial, what a killed process leaves, and rungs."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runs.small import small
from windvane.errors import InputError
from windvane.search.confirm import CONFIRMATION, confirmed, fresh_seeds, key_of
from windvane.search.report import write_report
from windvane.search.space import make_space
from windvane.search.study import PRESET, Plan, Proposal, Study, open_study
from windvane.search.tune import judge_rung
from windvane.search.workers import Worker, cpu_seconds, is_gone, seconds_at_work
from windvane.training.sweep import program_of

pytest.importorskip("optuna")

CONFIG = small(seeds=2)
SPACE = ("learning_rate=log:0.001..0.1", "width=4,8")


def plan(*space: str, **changes: Any) -> Plan:
    config = replace(CONFIG, **changes)
    return Plan(config, make_space(space or SPACE, config), "quick-dst")


def ask(study: Study, worker: Worker, number: int) -> list[Proposal]:
    """So many trials of one program."""
    with study.locked():
        study.recover()
        first = study.ask(worker, 100)
        assert first is not None
        others = [study.ask(worker, 100, like=first) for _ in range(number - 1)]
    return [first, *(one for one in others if one is not None)]


def states(study: Study) -> list[str]:
    return [trial.state.name for trial in study.trials.get_trials()]


def test_the_preset_comes_first_and_a_batch_shares_a_program(folder: Path) -> None:
    study = open_study(folder, plan(), None)
    with Worker(folder) as worker:
        found = ask(study, worker, 6)
    assert [one.trial.number for one in found] == list(range(6))
    assert [one.is_preset for one in found] == [True, *[False] * 5]
    assert found[0].config == CONFIG
    # Its learning rate lies in the space; the values of the others are new.
    assert found[0].trial.params == {"learning_rate": 0.005, "width": 8}
    assert len({program_of(one.config) for one in found}) == 1
    assert len({one.config.learning_rate for one in found}) == 6


def test_a_preset_outside_of_the_space_is_the_baseline_all_the_same(folder: Path) -> None:
    study = open_study(folder, plan("learning_rate=0.1..0.2", "width=4,16"), None)
    with Worker(folder) as worker:
        (first,) = ask(study, worker, 1)
        assert first.is_preset
        assert first.config == CONFIG
        assert first.trial.params == {}
        (second,) = ask(study, worker, 1)
    assert 0.1 <= second.config.learning_rate <= 0.2


def test_no_more_trials_than_asked_for(folder: Path) -> None:
    study = open_study(folder, plan(), None)
    with Worker(folder) as worker, study.locked():
        study.recover()
        assert study.ask(worker, 1) is not None
        assert study.ask(worker, 1) is None


def test_trials_of_a_killed_process_are_begun_anew_and_those_of_a_live_one_are_not(
    folder: Path,
) -> None:
    program = f"""
import os, signal
from pathlib import Path
from tests.search.test_study import ask, open_study, plan
from windvane.search.workers import Worker

folder = Path({str(folder)!r})
with Worker(folder) as worker:
    ask(open_study(folder, plan(), None), worker, 3)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -9
    study = open_study(folder, plan(), None)
    before = [trial.params for trial in study.trials.get_trials()]
    assert states(study) == ["RUNNING"] * 3
    with Worker(folder) as live, Worker(folder) as other:
        found = ask(study, live, 4)
        assert states(study) == ["FAIL"] * 3 + ["RUNNING"] * 4
        assert [one.trial.params for one in found[:3]] == before
        assert [one.is_preset for one in found] == [True, False, False, False]
        # This process lives: another one leaves its trials alone.
        (new,) = ask(study, other, 1)
        assert new.trial.number == 7
        assert states(study)[3:] == ["RUNNING"] * 5


def test_half_a_line_of_a_killed_process_spoils_nothing(folder: Path) -> None:
    with Worker(folder) as worker:
        ask(open_study(folder, plan(), None), worker, 2)
        with (folder / "journal.log").open("ab") as file:
            file.write(b'{"op_code":5,"worker')
        study = open_study(folder, None, None)
        assert states(study) == ["RUNNING"] * 2
        ask(study, worker, 1)
    assert states(open_study(folder, None, None)) == ["RUNNING"] * 3


def test_trials_given_back_wait_for_the_next(folder: Path) -> None:
    study = open_study(folder, plan(), None)
    with Worker(folder) as worker:
        found = ask(study, worker, 3)
        study.complete(found[1], {0: 0.1, 1: 0.2}, 0.15)
        study.give_back(found)
        assert states(study) == ["FAIL", "COMPLETE", "FAIL", "WAITING", "WAITING"]
        again = ask(study, worker, 2)
    assert again[0].is_preset
    assert again[1].config == found[2].config


def test_combinations_that_cannot_be_trained_are_passed_over(folder: Path) -> None:
    study = open_study(folder, plan("update_interval=1..8"), None)  # 480 steps: not by 7
    with Worker(folder) as worker:
        found = [ask(study, worker, 1)[0] for _ in range(12)]
    assert all(480 % one.config.update_interval == 0 for one in found)
    failed = [t for t in study.trials.get_trials() if t.state.name == "FAIL"]
    assert all("must be a multiple" in trial.user_attrs["why"] for trial in failed)


def test_a_study_with_other_settings_is_refused_by_name(folder: Path) -> None:
    open_study(folder, plan(), None)
    open_study(folder, plan(checkpoint_seconds=3.0), None)
    for other, sentence in (
        (plan(batch_size=4), "batch_size is 8 there and 4 here"),
        (plan("width=4,8"), "learning_rate is log:0.001..0.1 there and not searched here"),
        (plan("learning_rate=log:0.001..0.2", "width=4,8"),
         "learning_rate is log:0.001..0.1 there and log:0.001..0.2 here"),
        (replace(plan(), episodes=3), "episodes is 1 there and 3 here"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            open_study(folder, other, None)
    with pytest.raises(InputError, match="kept in its folder: leave out --storage"):
        open_study(folder, plan(), "sqlite://")


def test_no_study_and_no_database(folder: Path) -> None:
    with pytest.raises(InputError, match="there is no study in"):
        open_study(folder, None, None)
    with pytest.raises(InputError, match="cannot open the database of --storage"):
        open_study(folder, plan(), "nonsense")


def test_a_database_holds_the_trials(folder: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with Worker(folder) as worker:
        ask(open_study(folder, plan(), url), worker, 2)
    assert states(open_study(folder, None, url))[:2] == ["RUNNING"] * 2
    assert not (folder / "journal.log").exists()


def test_without_optuna_one_sentence_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"the search needs Optuna: install windvane\[tune\]"):
        open_study(folder, plan(), None)


def test_poor_trials_stop_at_a_rung_and_the_preset_never_does(folder: Path) -> None:
    study = open_study(folder, plan("learning_rate=log:0.001..0.1"), None)
    with Worker(folder) as worker:
        found = ask(study, worker, 9)
        # The preset is the worst; the others get better from trial to trial, but for the last.
        values = {index: {0: 1.0 - index / 10} for index in range(8)} | {8: {0: 0.9}}
        going = judge_rung(study, found, 80, values)
        assert 0 in going
        assert 7 in going
        assert 8 not in going
        assert states(study)[8] == "PRUNED"
        last = judge_rung(study, found, 480, {index: values[index] for index in going})
    assert last == []
    assert {study.baseline.number} | {t.number for t in study.best} == set(going)
    assert study.best[0].value == pytest.approx(0.3)
    assert study.best[0].user_attrs["values"] == {"0": pytest.approx(0.3)}


def test_a_trial_without_a_finite_value_fails_alone(folder: Path) -> None:
    study = open_study(folder, plan(), None)
    with Worker(folder) as worker:
        found = ask(study, worker, 2)
        assert judge_rung(study, found, 80, {0: {0: 0.1}, 1: {0: float("nan")}}) == [0]
    assert states(study) == ["RUNNING", "FAIL"]


def test_time_counts_once_while_several_are_at_work(folder: Path) -> None:
    workers = folder / "workers"
    workers.mkdir(parents=True)
    for name, span in {"a": (0, 10), "b": (5, 12), "c": (20, 21), "d": (2, 3)}.items():
        text = json.dumps({"start": span[0], "stop": span[1], "cpu": 0.5})
        (workers / f"{name}.json").write_text(text)
    (workers / "e.json").write_text("half a fi")
    assert seconds_at_work(folder) == 13
    assert cpu_seconds(folder) == 2
    assert not is_gone(folder, "nobody that was here")


def finished(folder: Path, fresh: dict[int, list[float]] | None = None) -> Study:
    """A study of a preset and three trials; `fresh` are values on fresh seeds, 0 the preset's."""
    study = open_study(folder, plan("learning_rate=log:0.001..0.1"), None)
    with Worker(folder) as worker:
        found = ask(study, worker, 4)
        for index, one in enumerate(found):
            one.trial.report(0.4 - index / 10, 480)
            study.complete(one, {0: 0.4 - index / 10}, 0.4 - index / 10)
    if fresh is not None:
        trials = {0: study.baseline} | {t.number: t for t in study.best}
        values = {
            key_of(trials[number]): {str(1_000 + n): x for n, x in enumerate(runs)}
            for number, runs in fresh.items()
        }
        (folder / CONFIRMATION).write_text(json.dumps(values))
    return study


def test_without_fresh_seeds_nothing_beats_the_preset(folder: Path) -> None:
    report = write_report(finished(folder))
    assert report.winner.number == 3
    assert "only a confirmation on fresh seeds can say" in report.verdict
    assert report.importances.early is None
    assert "10 are the least" in report.importances.sentence


def test_the_winner_is_that_of_the_fresh_seeds(folder: Path) -> None:
    """Trial 3 was the best of the search by luck; trial 2 is better by 0.1 on every fresh seed."""
    preset = [0.30, 0.34, 0.38, 0.31, 0.33]
    better = [x - 0.1 + e for x, e in zip(preset, [0.01, -0.01, 0.0, 0.01, -0.01], strict=True)]
    study = finished(folder, {0: preset, 3: [0.4, 0.2, 0.5, 0.1, 0.6], 2: better})
    value, found = confirmed(study)
    assert value is not None
    assert value.value == pytest.approx(0.332)
    assert [one.trial.number for one in found] == [3, 2]
    assert [one.beats_preset for one in found] == [False, True]
    change = found[1].change
    assert change is not None
    # By hand: mean -0.1, standard deviation 0.01 / sqrt(5), t(4) = 2.776.
    assert (change.low, change.high) == pytest.approx((-0.1124, -0.0876), abs=1e-4)
    report = write_report(study)
    assert report.winner.number == 2
    assert "it beats the preset" in report.verdict
    best = json.loads((folder / "best.json").read_text())
    assert best["settings"]["learning_rate"] == report.winner.params["learning_rate"]
    assert "In short: trial 2, chosen on fresh seeds among 2" in (folder / "report.md").read_text()


def test_a_winner_that_chance_explains_is_called_so(folder: Path) -> None:
    report = write_report(finished(folder, {0: [0.3, 0.5, 0.4], 3: [0.5, 0.3, 0.3]}))
    assert "it is not shown to beat the preset" in report.verdict


def test_fresh_seeds_are_none_of_the_search() -> None:
    config = replace(CONFIG, seeds=(1_000, 1_002))
    assert fresh_seeds(config, 3) == [1_001, 1_003, 1_004]
    assert key_of(None) == PRESET


def test_a_confirmation_that_was_edited_is_refused(folder: Path) -> None:
    study = finished(folder)
    (folder / CONFIRMATION).write_text('{"preset": {"x": 1}}')
    with pytest.raises(InputError, match="is no confirmation of a study"):
        write_report(study)
