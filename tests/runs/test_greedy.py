"""Greedy evaluations during training: their table, and the best policies."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.runs.crashes import Crash, crash_at_files, stop_after
from tests.runs.small import same_records, small
from tests.runs.test_runner import same_outcome
from windvane import Policy, resume, train
from windvane.errors import InputError
from windvane.evaluation import default_weights, evaluate
from windvane.runs.result import Result, load_policies, policy_path
from windvane.runs.stopping import TrainingStopped
from windvane.runs.tables import read_table

EVERY = 160
CONFIG = small(evaluate_every=EVERY)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return train(CONFIG, out=tmp_path_factory.mktemp("evaluated") / "run", progress=False)


def same_networks(one: Policy, other: Policy) -> bool:
    pairs = zip(jax.tree.leaves(one.network), jax.tree.leaves(other.network), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def same_evaluations(result: Result, expected: Result) -> bool:
    assert result.evaluations is not None
    assert expected.evaluations is not None
    assert result.best is not None
    assert expected.best is not None
    return same_records(result.evaluations, expected.evaluations) and all(
        same_networks(one, other) and one.step == other.step
        for one, other in zip(result.best, expected.best, strict=True)
    )


def test_the_table_of_evaluations(evaluated: Result, finished: Result) -> None:
    table = evaluated.evaluations
    assert table is not None
    assert table["step"].tolist() == [160, 160, 320, 320, 480, 480]
    assert table["run"].tolist() == [0, 1] * 3
    assert table["seed"].tolist() == [3, 5] * 3
    assert (table["worst_utility"] <= table["utility"]).all()
    assert (table["worst_regret"] >= table["regret"]).all()
    assert (table["regret"] > -1e-6).all()
    assert ((table["never_ending"] >= 0) & (table["never_ending"] <= 1)).all()
    # The last ones are of the policies that training ends with.
    for run, policy in enumerate(evaluated.policies):
        found = evaluate(policy)
        assert len(found.weights) == len(default_weights(2)) == 101
        assert table["utility"][4 + run] == pytest.approx(found.utility.mean())
        assert table["worst_utility"][4 + run] == pytest.approx(found.utility.min())
        assert table["regret"][4 + run] == pytest.approx(found.regret.mean())
        assert table["worst_regret"][4 + run] == pytest.approx(found.regret.max())
        assert table["never_ending"][4 + run] == pytest.approx(found.never_ending.mean())
    # Looking at runs does not change them.
    assert same_records(evaluated.records, finished.records)


def test_the_best_policies_are_kept(evaluated: Result) -> None:
    table, folder = evaluated.evaluations, evaluated.folder
    assert table is not None
    assert folder is not None
    assert evaluated.best is not None
    assert same_records(read_table(folder / "evaluations.parquet"), table)
    for run, (name, policy) in enumerate(zip(("seed-3", "seed-5"), evaluated.best, strict=True)):
        mine = table["run"] == run
        first = np.argmax(table["utility"][mine])
        assert policy.step == table["step"][mine][first]
        assert evaluate(policy).utility.mean() == pytest.approx(table["utility"][mine].max())
        back = Policy.load(folder / "policies" / "best" / f"{name}.safetensors")
        assert same_networks(back, policy)
        assert back.step == policy.step
    for best in (True, None):
        loaded = load_policies(folder, best=best)
        assert all(same_networks(*pair) for pair in zip(loaded, evaluated.best, strict=True))
    last = load_policies(folder)
    assert all(same_networks(*pair) for pair in zip(last, evaluated.policies, strict=True))
    assert same_evaluations(resume(folder), evaluated)


@pytest.mark.parametrize("stops", [[80], [160], [240, 320, 400]])
def test_a_stopped_training_has_the_same_evaluations(
    stops: list[int], folder: Path, evaluated: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    todo = list(stops)
    stop_after(monkeypatch, todo)
    config = small(evaluate_every=EVERY, checkpoint_seconds=1e6)
    with pytest.raises(TrainingStopped):
        train(config, out=folder, progress=False)
    for _ in stops[1:]:
        with pytest.raises(TrainingStopped):
            resume(folder, progress=False)
    result = resume(folder, progress=False)
    assert not todo
    assert same_outcome(result, evaluated)
    assert same_evaluations(result, evaluated)
    assert same_evaluations(resume(folder), evaluated)


def test_a_best_policy_of_another_run_is_refused_and_imports_nothing(
    folder: Path, evaluated: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            train(CONFIG, out=folder, progress=False)
    path = policy_path(folder, "seed-3", best=True)
    good = Policy.load(path)
    other = replace(good.config, agent="never_there:Agent")
    Policy(good.spec, good.agent, good.network, other, good.seed, step=good.step).save(path)
    with pytest.raises(InputError, match="this run's agent is 'never_there:Agent', not 'cn'"):
        resume(folder, progress=False)
    other = replace(good.config, gamma=0.5)
    Policy(good.spec, good.agent, good.network, other, good.seed, step=good.step).save(path)
    with pytest.raises(InputError, match=r"seed-3\.safetensors is of another training run than"):
        resume(folder, progress=False)
    good.save(path)
    # Which may be edited.
    config = folder / "config.json"
    text = config.read_text().replace('"checkpoint_seconds": 0.0', '"checkpoint_seconds": 9.0')
    config.write_text(text)
    assert same_evaluations(resume(folder, progress=False), evaluated)


def test_a_crash_at_a_file_has_the_same_evaluations(
    tmp_path: Path, evaluated: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = crash_at_files(monkeypatch)
    crashes = 0
    for number in range(2, 100, 3):
        folder, left[0] = tmp_path / str(number), number
        try:
            train(CONFIG, out=folder, progress=False)
        except Crash:
            crashes += 1
            result = resume(folder, progress=False)
            assert same_outcome(result, evaluated), number
            assert same_evaluations(result, evaluated), number
            assert same_evaluations(resume(folder), evaluated), number
        else:
            break
    assert crashes > 6


def test_without_evaluations_there_are_none(finished: Result) -> None:
    assert finished.evaluations is None
    assert finished.best is None
    assert finished.folder is not None
    assert load_policies(finished.folder, best=None)[0].step == 480


def test_evaluations_need_no_folder(evaluated: Result) -> None:
    assert same_evaluations(train(CONFIG, progress=False), evaluated)
