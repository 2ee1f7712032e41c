"""Minecart's oracle is honest: its plans earn what it says, and nothing earns more."""

import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.oracle import attack
from windvane import oracle
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import Mine, MinecartConfig
from windvane.errors import InputError
from windvane.oracle import minecart

GAMMA = 0.98
SMALL = MinecartConfig((Mine(0.3, 0.2, ((0.3, 0.05), (0.05, 0.05))),), capacity=1.0)


@pytest.fixture(scope="module")
def paper() -> tuple[Minecart, oracle.CoverageSet]:
    env = Minecart()
    assert oracle.shipped_path(env, GAMMA).exists(), "the paper's instance must ship solved"
    return env, oracle.coverage_set(env, GAMMA)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("WINDVANE_CACHE", str(tmp_path))
    return tmp_path


def check_plans(env: Minecart, coverage: oracle.CoverageSet, episodes: int) -> None:
    """Play every plan and compare the means with the stated values.

    Among some eighty numbers the largest deviation may well be above 3 standard errors: 3.6 is what
    3 is for a single one.
    """
    deviations = attack.plan_deviations(env, coverage, episodes)
    print(f"largest of {deviations.size} deviations: {deviations.max():.2f} standard errors")
    assert deviations.max() < 3.6
    assert (deviations > 3).sum() <= 1


def test_every_plan_earns_its_value(paper) -> None:
    check_plans(*paper, episodes=1000)


def test_deterministic_plans_earn_exactly_their_value() -> None:
    env = Minecart(deterministic=True)
    coverage = oracle.coverage_set(env, GAMMA)
    for index, value in enumerate(coverage.values):
        outcome = oracle.rollout_episode(env, coverage.plan(index), GAMMA, jax.random.key(0))
        assert np.allclose(outcome.returns, value, atol=2e-5)


def attack_with(env: Minecart, coverage: oracle.CoverageSet, rollouts: int) -> None:
    weights = np.random.default_rng(3).dirichlet(np.ones(env.num_objectives), 1000)
    optimal = np.asarray(coverage.optimal_value(weights), float)
    lists = attack.random_shooting(env, GAMMA, rollouts, weights)
    verdict = attack.judge(env, GAMMA, lists, weights, optimal, plays=200, again=2000)
    print(verdict)
    assert not verdict.beaten


def test_random_shooting_does_not_beat_it(paper) -> None:
    attack_with(*paper, rollouts=40_000)


def test_the_peers_policies_do_not_beat_it(paper) -> None:
    env, coverage = paper
    weights = np.random.default_rng(4).dirichlet(np.ones(3), 1000)
    optimal = np.asarray(coverage.optimal_value(weights), float)
    lists = attack.peer_policies(env)
    short = Minecart(time_limit=60)
    means, _ = attack.mean_returns(short, GAMMA, lists, 64, seed=0)
    assert (means[:, :2].sum(1) > 0.3).any(), "some of them must bring ore home"
    verdict = attack.judge(short, GAMMA, lists, weights, optimal, plays=64, again=500)
    print(verdict)
    assert verdict.excess < 0


def test_the_papers_seven_behaviours_are_among_the_regions(paper) -> None:
    """Nothing; and (c), (e), (g), each slowly and quickly (fewer and more accelerations)."""
    _, coverage = paper
    weights = np.random.default_rng(5).dirichlet(np.ones(3), 100_000)
    used = {coverage.behaviours[i] for i in np.unique(np.asarray(coverage.best(weights)))}
    assert any(b.startswith("no mine") for b in used)
    for mine in ("(c)", "(e)", "(g)"):
        speeds = {b.split(", ")[1] for b in used if b.startswith(f"mine {mine}")}
        assert len(speeds) >= 2, mine
    assert not any("(d)" in b or "(f)" in b or "then" in b for b in used)


def test_corners_of_the_weight_simplex(paper) -> None:
    _, coverage = paper
    best = [coverage.behaviours[int(coverage.best(np.eye(3)[i]))] for i in range(3)]
    assert best[0].startswith("mine (c)")
    assert best[1].startswith("mine (g)")
    assert best[2].startswith("no mine")


def test_errors_are_stated_and_small(paper) -> None:
    errors = paper[1].errors
    assert errors["left out at corner weights"] <= minecart.TOLERANCE
    assert errors["sampling (3 standard errors)"] < 5e-4
    assert errors["trips to three mines, bound"] == 0
    assert errors["routes not proven shortest (a count)"] == 0


@pytest.mark.slow
def test_a_small_instance_from_scratch_with_cache_and_resume(cache, monkeypatch) -> None:
    env = Minecart(SMALL)
    told: list[str] = []

    class StopError(Exception):
        pass

    def stop_after_routes(what: str, done: int, total: int) -> None:
        if what == "searching ways home":
            raise StopError

    with pytest.raises(StopError):
        oracle.coverage_set(env, GAMMA, stop_after_routes)
    assert list(cache.glob("*.partial.json")), "the routes found so far are kept"

    def search_again(*_: object) -> None:
        raise AssertionError("a route was searched twice")

    with monkeypatch.context() as patch:
        patch.setattr("windvane.oracle.minecart.RouteFinder.to_mine", search_again)
        coverage = oracle.coverage_set(env, GAMMA, lambda what, *_: told.append(what))
    assert "evaluating trips" in told
    assert not list(cache.glob("*.partial.json"))
    check_plans(env, coverage, 500)
    attack_with(env, coverage, 20_000)

    monkeypatch.setattr("windvane.oracle.minecart.solve", search_again)
    assert np.array_equal(oracle.coverage_set(env, GAMMA).values, coverage.values)


def test_a_corrupt_cache_is_computed_anew(cache, monkeypatch) -> None:
    env = Minecart(SMALL)
    name = oracle.shipped_path(env, GAMMA).name
    (cache / name).write_bytes(b"PK\x03\x04 not really")
    solved = oracle.coverage_set(Minecart(), GAMMA)
    monkeypatch.setattr("windvane.oracle.minecart.solve", lambda *_: solved)
    with pytest.warns(UserWarning, match="computed anew"):
        assert oracle.coverage_set(env, GAMMA) is solved


@pytest.mark.parametrize("damage", ["nan", "gamma", "objectives", "bomb", "shapes"])
def test_a_cached_set_of_another_form_is_computed_anew(cache, monkeypatch, damage: str) -> None:
    env = Minecart(SMALL)
    path = cache / oracle.shipped_path(env, GAMMA).name
    solved = oracle.coverage_set(Minecart(), GAMMA)
    own = replace(solved, values=solved.values[:, -env.num_objectives :].copy())
    if damage == "nan":
        own.values[0, 0] = np.nan
    elif damage == "gamma":
        own = replace(own, gamma=0.5)
    elif damage == "objectives":
        own = replace(own, values=np.hstack([own.values, own.values]))
    elif damage == "shapes":
        own = replace(own, values=own.values[:-1])
    own.save(path)
    if damage == "bomb":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("values.npy", b"\0" * (65 * 2**20))
    monkeypatch.setattr("windvane.oracle.minecart.solve", lambda *_: solved)
    with pytest.warns(UserWarning, match="computed anew"):
        assert oracle.coverage_set(env, GAMMA) is solved


@pytest.mark.slow
def test_a_random_instance_is_not_beaten(cache) -> None:
    env = Minecart(MinecartConfig.random(jax.random.key(1), num_mines=3, num_ores=2))
    coverage = oracle.coverage_set(env, GAMMA)
    print(coverage.errors, *coverage.behaviours, sep="\n")
    check_plans(env, coverage, 5000)
    attack_with(env, coverage, 400_000)


def test_optimal_value_and_regret(paper) -> None:
    env, coverage = paper
    weights = np.asarray([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    best = oracle.optimal_value(env, GAMMA, weights)
    assert np.allclose(best, (weights @ coverage.values.T).max(1))
    returns = coverage.values[[0, 0]]
    assert np.allclose(
        oracle.regret(env, GAMMA, weights, returns), best - (weights * returns).sum(1)
    )
    assert oracle.optimal_value(env, GAMMA, weights[0]).shape == ()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.5], "3"),
        ([0.5, 0.6, -0.1], "-0.1"),
        ([0.5, 0.6, 0.1], "sum"),
        ([0.5, float("nan"), 0.5], "nan"),
    ],
)
def test_bad_weights_are_named(weights: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        oracle.optimal_value(Minecart(), GAMMA, np.asarray(weights))


@pytest.mark.parametrize("gamma", [0.0, -1.0, 1.5, float("nan")])
def test_bad_discounts_are_named(gamma: float) -> None:
    with pytest.raises(InputError, match="discount factor"):
        oracle.coverage_set(Minecart(), gamma)


def test_returns_of_the_wrong_length_are_named() -> None:
    with pytest.raises(InputError, match="3 objectives"):
        oracle.regret(Minecart(), GAMMA, np.asarray([0.2, 0.3, 0.5]), np.zeros(2))


def test_in_64_bit_mode_the_shipped_set_loads_and_earns() -> None:
    program = (
        "import jax, numpy as np; from windvane import oracle; from windvane.envs.minecart import "
        "Minecart; env = Minecart(deterministic=True); c = oracle.coverage_set(env, 0.98);"
        "r = oracle.rollout_episode(env, c.plan(0), 0.98, jax.random.key(0)).returns;"
        "assert np.allclose(r, c.values[0], atol=2e-5), (r, c.values[0])"
    )
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
