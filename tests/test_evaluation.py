"""Evaluation: one unit everywhere, and always the environment that a policy was trained in."""

import re
from pathlib import Path

import numpy as np
import pytest

import windvane
from tests.cli.small import finished, gymnasium_run
from windvane import DeepSeaTreasure, Policy, evaluate
from windvane.cli import main
from windvane.envs.deep_sea_treasure import MAPS
from windvane.evaluation import default_weights, evaluate_episode, known_values
from windvane.rendering import film_policy

WEIGHTS = [0.85, 0.15]
GAMMA, SCALE = 0.95, 0.01


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy.load(finished() / "policies" / "seed-3.safetensors")


def printed(text: str, what: str) -> float:
    found = re.search(rf"{what} (-?\d+\.\d+)", text)
    assert found, text
    return float(found[1])


def test_a_policy_knows_the_map_that_it_was_trained_on(policy: Policy) -> None:
    assert np.array_equal(np.asarray(policy.env.sea_map), MAPS["concave"])
    best = windvane.optimal_value(DeepSeaTreasure("concave"), GAMMA, WEIGHTS)
    other = windvane.optimal_value(DeepSeaTreasure("dcrac"), GAMMA, WEIGHTS)
    found = evaluate(policy, WEIGHTS)
    assert found.optimal[0] == pytest.approx(SCALE * best, rel=1e-5)
    assert abs(best - other) > 1  # the test could tell the maps apart


def test_evaluate_watch_oracle_and_regret_agree(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "200")
    found = evaluate(policy, WEIGHTS, seed=4)
    env = DeepSeaTreasure("concave")
    regret = windvane.regret(env, GAMMA, WEIGHTS, found.returns[0, 0] / SCALE)
    assert found.regret[0] == pytest.approx(SCALE * regret, abs=1e-6)

    episode = film_policy(policy, WEIGHTS, seed=4, steps=3, size=12)
    judged = evaluate_episode(policy, WEIGHTS, episode.rewards, episode.terminated)
    np.testing.assert_allclose(judged.returns, found.returns, atol=1e-6)
    assert judged.lengths.tolist() == found.lengths.tolist()
    assert judged.terminated.tolist() == found.terminated.tolist()
    assert judged.regret[0] == pytest.approx(found.regret[0], abs=1e-6)

    folder, weights = str(finished()), "0.85,0.15"
    line = ["watch", folder, "--policy", "last", "--weights", weights, "--seed", "4"]
    assert main([*line, "--size", "12", "--out", str(tmp_path / "film.png")]) == 0
    said = capsys.readouterr().out
    assert printed(said, "regret") == pytest.approx(found.regret[0], abs=6e-5)
    assert printed(said, "utility") == pytest.approx(found.utility[0], abs=6e-5)

    line = ["evaluate", folder, "--policy", "last", "--weights", weights, "--seed", "4"]
    assert main([*line, "--episodes", "1"]) == 0
    row = next(row for row in capsys.readouterr().out.splitlines() if "seed-3" in row)
    assert f"{found.regret[0]:.4f}" in row
    assert f"{found.utility[0]:.4f}" in row

    assert main(["oracle", "dst", "--map", "concave", "--out", str(tmp_path)]) == 0
    lines = (tmp_path / "dst-coverage-set.csv").read_text().splitlines()[1:]
    values = np.asarray([[float(cell) for cell in line.split(",")[:2]] for line in lines])
    assert found.optimal[0] == pytest.approx(SCALE * (values @ WEIGHTS).max(), abs=1e-6)


def test_gymnasium_episodes_agree_too() -> None:
    policy = Policy.load(gymnasium_run() / "policies" / "seed-0.safetensors", trust=True)
    found = evaluate(policy, [0.3, 0.7], episodes=2, seed=1)
    episode = film_policy(policy, [0.3, 0.7], seed=1, steps=2, size=8)
    judged = evaluate_episode(policy, [0.3, 0.7], episode.rewards, episode.terminated)
    np.testing.assert_allclose(judged.returns[0, 0], found.returns[0, 0], atol=1e-6)
    assert episode.frames.shape == (3, 8, 12, 3)
    assert len(episode.rewards) == 4
    assert np.isnan(judged.regret).all()


def test_evaluation_of_the_command_uses_the_map(
    policy: Policy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["evaluate", str(finished()), "--policy", "last", "--episodes", "1"]) == 0
    found = evaluate(policy)
    row = next(row for row in capsys.readouterr().out.splitlines() if "seed-3" in row)
    optimal = np.asarray(known_values(DeepSeaTreasure("concave"), GAMMA))
    best = SCALE * (default_weights(2) @ optimal.T).max(1)
    np.testing.assert_allclose(found.optimal, best, atol=1e-6)
    assert f"{(best - found.utility).mean():.4f}" in row
    assert f"{(best - found.utility).max():.4f}" in row


def test_without_an_oracle_none_is_asked(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the search was switched off")

    monkeypatch.setattr("windvane.evaluation.coverage_set", refuse)
    assert np.isnan(evaluate(policy, WEIGHTS, oracle=False).regret).all()
    judged = evaluate(policy, WEIGHTS, optimal=[[10.0, 0.0]])
    assert judged.optimal[0] == pytest.approx(SCALE * 8.5)
