"""What is optimal: from the oracle, from the user or not known; and what a run prints."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.agents import probes
from tests.runs.crashes import stop_after
from tests.runs.small import same_records, small
from windvane import evaluation, optimal_value, resume, train
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError
from windvane.evaluation import evaluate
from windvane.oracle import coverage_set
from windvane.runs import display
from windvane.runs.result import Result
from windvane.runs.stopping import TrainingStopped

ENV, GAMMA = DeepSeaTreasure(), 0.95
KNOWN = ("optimal", "regret")


def nearly_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """All but what is known of the optimum is the same; that may be rounded in another way."""
    rest = [{name: t[name] for name in t if name not in KNOWN} for t in (a, b)]
    return same_records(*rest) and all(np.allclose(a[k], b[k], rtol=1e-6) for k in KNOWN)


@pytest.fixture
def no_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    def solve(*given: Any) -> Any:
        raise AssertionError("nobody asked for the optimum")

    monkeypatch.setattr(evaluation, "coverage_set", solve)


@pytest.mark.usefixtures("no_oracle")
def test_a_coverage_set_of_the_users_own(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = coverage_set(ENV, GAMMA).values
    stop_after(monkeypatch, [240])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder, optimal=values, progress=False)
    assert json.loads((folder / "optimal-values.json").read_text()) == values.tolist()
    result = resume(folder, progress=False)
    assert nearly_same(result.records, finished.records)
    # Another set, and so another regret.
    less = train(small(), optimal=values[:1], progress=False).records
    assert (less["optimal"] <= finished.records["optimal"] + 1e-9).all()
    weights = np.stack([less["weights_0"], less["weights_1"]], 1)
    np.testing.assert_allclose(less["optimal"], weights @ values[0] * 0.01, rtol=1e-5)


@pytest.mark.usefixtures("no_oracle")
def test_a_function_of_the_users_own(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    def optimal(weights: np.ndarray) -> float:
        return float(optimal_value(ENV, GAMMA, weights))

    stop_after(monkeypatch, [240])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder, optimal=optimal, progress=False)
    with pytest.raises(InputError, match="were a function: give it again, as optimal="):
        resume(folder, progress=False)
    result = resume(folder, optimal=optimal, progress=False)
    assert nearly_same(result.records, finished.records)
    assert same_records(resume(folder).records, result.records)


@pytest.mark.parametrize("optimal", [[[1.0, 2.0, 3.0]], [[1.0]]])
def test_optimal_values_are_of_the_environments_objectives(optimal: Any, folder: Path) -> None:
    with pytest.raises(InputError, match="optimal values must be of 2 objectives, and these are"):
        train(small(), out=folder, optimal=optimal)
    assert not folder.exists()


@pytest.mark.usefixtures("no_oracle")
def test_without_the_oracle_nothing_is_searched_for(folder: Path, finished: Result) -> None:
    config = small(oracle=False, evaluate_every=480)
    result = train(config, out=folder, progress=False)
    for name, column in finished.records.items():
        if name in KNOWN:
            assert np.isnan(result.records[name]).all()
        else:
            assert np.array_equal(result.records[name], column)
    assert np.isnan(result.regret.overall).all()
    assert np.array_equal(result.utility.overall, finished.utility.overall)
    assert result.evaluations is not None
    assert np.isnan(result.evaluations["regret"]).all()
    assert np.isfinite(result.evaluations["utility"]).all()
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["regret"] == summary["regret_last_quarter"] == [None, None]
    assert None not in summary["utility"]


def test_a_native_environment_without_an_oracle(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Warnings are errors in these tests: there are none."""
    monkeypatch.setattr(display, "LOG_EVERY", 0.0)
    settings = {k: v for k, v in small().to_json().items() if k not in ("format", "env")}
    settings |= {"evaluate_every": 240, "reward_scale": 1.0, "replay": "standard"}
    stop_after(monkeypatch, [240])
    with pytest.raises(TrainingStopped):
        train(probes.TRADE_OFF, out=folder, **settings)
    result = resume(folder, env=probes.TRADE_OFF)
    records = result.records
    assert np.isnan(records["optimal"]).all()
    assert np.isnan(records["regret"]).all()
    weights, returns = (
        np.stack([records[f"{name}_{i}"] for i in range(2)], 1).astype(float)
        for name in ("weights", "return")
    )
    np.testing.assert_allclose(records["utility"], (weights * returns).sum(1))
    assert np.isnan(result.regret.overall).all()
    assert np.isfinite(result.utility.overall).all()
    assert "mean utility of the last" in capsys.readouterr().err
    assert result.evaluations is not None
    assert np.isnan(result.evaluations["regret"]).all()
    assert np.isfinite(result.evaluations["utility"]).all()
    assert result.best is not None
    for policy in (*result.policies, *result.best):
        assert policy.env is probes.TRADE_OFF
        assert np.isfinite(evaluate(policy, [[0.5, 0.5]]).utility).all()
    assert json.loads((folder / "summary.json").read_text())["regret"] == [None, None]


def test_a_quiet_training_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    train(small(), progress=False)
    assert capsys.readouterr() == ("", "")


def test_progress_is_shown_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(display, "LOG_EVERY", 0.0)
    train(small())
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "compiling, about 20 s on an idle machine"
    assert lines[-1].startswith("step 480 of 480, ")
