"""The stopping rule against dynamic programming on a mine whose draws can be listed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.envs.minecart import MINE, Minecart
from windvane.envs.minecart_config import PAPER, Mine, MinecartConfig
from windvane.oracle.minecart import rectified_means
from windvane.oracle.minecart_mining import (
    StoppingRule,
    WaysHome,
    expected_gain,
    mining_paths,
    trip_result,
)

GAMMA = 0.9


def rule_for(env: Minecart, weights: list[float], steps: list[int], fuel: list[float]):
    return StoppingRule(
        weights=jnp.asarray(weights),
        ways=WaysHome(jnp.asarray(steps), jnp.asarray(fuel)),
        expected_gain=expected_gain(env, jnp.asarray(0), jax.random.key(1), 4096),
        capacity=env.capacity,
        mining_fuel=jnp.asarray(env.fuel_costs[MINE], jnp.float32),
        gamma=jnp.asarray(GAMMA),
        most=jnp.asarray(50),
    )


def test_certain_hauls_by_hand() -> None:
    # A frame yields 0.1, a step 0.4, the cart holds 1: 0.4, 0.8, 1. A way home takes one step.
    env = Minecart(MinecartConfig((Mine(0.5, 0.5, ((0.1, 0.0),)),), capacity=1.0))
    rule = rule_for(env, [0.9, 0.1], [1], [-0.02])
    # Empty: 0 now against 0.9 * 0.9 * 0.4 next.      Mine.
    # 0.4: 0.36 now against 0.9 * 0.9 * 0.8 = 0.648.  Mine.
    # 0.8: 0.72 now against 0.9 * 0.9 * 1 = 0.81.     Mine, the fuel of 0.022 is less than 0.09.
    # 1.0: no gain.                                   Home.
    decisions = [
        bool(rule.decide(jnp.asarray([c]), jnp.asarray(0))[0]) for c in (0.0, 0.4, 0.8, 1.0)
    ]
    assert decisions == [True, True, True, False]
    # With ten times the weight on fuel the last 0.2 are not worth mining for.
    rule = rule_for(env, [0.3, 0.7], [1], [-0.02])
    decisions = [bool(rule.decide(jnp.asarray([c]), jnp.asarray(0))[0]) for c in (0.4, 0.8)]
    assert decisions == [False, False]
    result = trip_result(
        rule_for(env, [0.9, 0.1], [1], [-0.02]),
        jnp.asarray(2),
        jnp.asarray(-0.14),
        mining_paths(env, jnp.asarray(0), jax.random.key(0), 4, 5),
    )
    # Two steps out, three of mining, one home: sold at step 5.
    assert float(result.mined) == 3
    mining = -0.22 * (GAMMA**2 + GAMMA**3 + GAMMA**4)
    assert np.allclose(result.returns, [GAMMA**5, -0.14 + mining - 0.02 * GAMMA**5], atol=1e-5)


def optimal_stopping(env: Minecart, rule: StoppingRule, draws: int = 4000) -> float:
    """Optimal value from an empty cart by dynamic programming over content (one ore)."""
    capacity = float(env.capacity)
    grid = np.linspace(0, capacity, 401)
    noise = np.random.default_rng(0).normal(size=(draws, env.frame_skip))
    mean, deviation = float(env.ore_means[0, 0]), float(env.ore_deviations[0, 0])
    haul = np.maximum(mean + deviation * noise, 0).sum(1)
    worth, fuel = np.asarray(rule.weights)
    steps, burnt = np.asarray(rule.ways.steps), np.asarray(rule.ways.fuel)
    options = zip(steps, burnt, strict=True)
    home = np.max([worth * GAMMA ** (s - 1) * grid + fuel * f for s, f in options], 0)
    value = home.copy()
    for _ in range(60):
        later = np.interp(np.minimum(grid[:, None] + haul, capacity), grid, value).mean(1)
        value = np.maximum(home, fuel * float(rule.mining_fuel) + GAMMA * later)
    return float(value[0])


@pytest.mark.parametrize("fuel_weight", [0.05, 0.2, 0.4, 0.6])
def test_the_rule_is_as_good_as_dynamic_programming(fuel_weight: float) -> None:
    env = Minecart(MinecartConfig((Mine(0.5, 0.5, ((0.05, 0.05),)),), capacity=1.0))
    # Two ways home: slow and cheap, fast and dear.
    rule = rule_for(env, [1 - fuel_weight, fuel_weight], [6, 3], [-0.15, -0.35])
    paths = mining_paths(env, jnp.asarray(0), jax.random.key(3), 20_000, 20)
    result = trip_result(rule, jnp.asarray(0), jnp.asarray(0.0), paths)
    earned = float(result.returns @ rule.weights)
    assert earned == pytest.approx(optimal_stopping(env, rule), abs=2.5e-3)


def test_expected_gain_of_an_empty_cart_is_the_rectified_mean() -> None:
    env = Minecart(PAPER)
    means = rectified_means(env) * env.frame_skip
    gain = np.asarray(expected_gain(env, jnp.asarray(0), jax.random.key(0), 20_000))
    assert np.allclose(gain[0], means[0], atol=3e-3)
    assert np.allclose(gain[-1], 0, atol=1e-6)
    assert (np.diff(gain, axis=0) <= 1e-6).all(), "less room never means more ore"


def test_mining_elsewhere_first_fills_the_cart() -> None:
    env = Minecart(PAPER)
    before = (jnp.asarray(4), 1)
    paths = mining_paths(env, jnp.asarray(0), jax.random.key(0), 256, 3, before)
    assert (np.asarray(paths[:, 0, 1]) > 0.4).all(), "mine (g) yields ore 2"
    assert (np.asarray(paths.sum(-1)) <= 1.5 + 1e-5).all()
