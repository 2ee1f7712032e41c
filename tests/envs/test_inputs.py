"""Numbers from outside: the shared checks, and what the oracle's functions accept and refuse."""

from typing import Any

import jax
import numpy as np
import pytest

from windvane import oracle
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError, is_number, require_int, require_positive_int

SEA = DeepSeaTreasure()
HALVES = [0.5, 0.5]


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.asarray(3)])
def test_whole_numbers(value: Any) -> None:
    number = require_positive_int("it", value)
    assert number == 3
    assert type(number) is int


@pytest.mark.parametrize("value", [0, np.int64(-1), True, np.True_, 3.0, np.float32(3), "3", None])
def test_what_is_no_positive_whole_number(value: Any) -> None:
    with pytest.raises(InputError, match="it must be a whole number of at least 1, not"):
        require_positive_int("it", value)


def test_a_range_names_both_ends() -> None:
    assert require_int("it", 5, 0, 5) == 5
    with pytest.raises(InputError, match="it must be a whole number from 0 to 5, not 6"):
        require_int("it", 6, 0, 5)


def test_what_is_a_number() -> None:
    assert all(map(is_number, (1, 0.5, np.float32(0.5), np.int16(2))))
    bad = (True, np.True_, 10**400, float("nan"), np.float32("inf"), 1j, "1", None)
    assert not any(map(is_number, bad))


@pytest.mark.parametrize("gamma", [0.98, np.float64(0.98), np.float32(0.98)])
def test_a_discount_keeps_its_digits(gamma: Any) -> None:
    assert oracle.check_gamma(gamma) == 0.98


@pytest.mark.parametrize("gamma", [True, np.float32(1.5), 10**400, 1j, "0.9", None])
def test_what_is_no_discount(gamma: Any) -> None:
    with pytest.raises(InputError, match="the discount factor must lie above 0"):
        oracle.check_gamma(gamma)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("a", "real numbers of one length, not 'a'"),
        ([], r"2 objectives, not shape \(0,\)"),
        ([[]], r"2 objectives, not shape \(1, 0\)"),
        (0.5, r"2 objectives, not shape \(\)"),
        ([[0.5, 0.5], [1.0]], "real numbers of one length"),
        ([0.5, 0.5j], "real numbers of one length"),
        (np.full((9, 2), 0.5 + 0j), "real numbers of one length"),
        ([float("nan"), 1.0], "finite numbers, and one is nan"),
    ],
)
def test_bad_weights_and_returns_are_one_sentence(bad: Any, sentence: str) -> None:
    for refuses in (
        lambda: oracle.optimal_value(SEA, 0.95, bad),
        lambda: oracle.regret(SEA, 0.95, bad, HALVES),
        lambda: oracle.regret(SEA, 0.95, HALVES, bad),
    ):
        with pytest.raises(InputError, match=sentence) as caught:
            refuses()
        assert "\n" not in str(caught.value)


def test_batches_of_weights_and_returns_must_broadcast() -> None:
    weights = np.full((3, 2), 0.5)
    assert oracle.regret(SEA, 0.95, weights, np.zeros(2)).shape == (3,)
    with pytest.raises(InputError, match=r"\(3, 2\) do not broadcast with returns of \(4, 2\)"):
        oracle.regret(SEA, 0.95, weights, np.zeros((4, 2)))


def test_deep_sea_treasure_is_solved_once_a_map_limit_and_discount() -> None:
    first = oracle.coverage_set(SEA, 0.95)
    assert oracle.coverage_set(DeepSeaTreasure("dcrac", observation="pixels"), 0.95) is first
    others = [
        oracle.coverage_set(DeepSeaTreasure("convex"), 0.95),
        oracle.coverage_set(DeepSeaTreasure(time_limit=5), 0.95),
        oracle.coverage_set(SEA, 0.9),
        oracle.pareto_front(SEA, 0.95),
    ]
    assert len({id(coverage) for coverage in [first, *others]}) == 5
    with pytest.raises(ValueError, match="read-only"):
        first.values[0, 0] = 1.0


def test_a_set_first_asked_for_while_compiling_can_be_used_afterwards() -> None:
    env = DeepSeaTreasure([[0, 0, 7], [3, 0, 0]])
    weights = np.asarray([1.0, 0.0])
    assert jax.jit(lambda: oracle.coverage_set(env, 0.9).optimal_value(weights))() > 0
    coverage = oracle.coverage_set(env, 0.9)
    returns = oracle.rollout_episode(env, coverage.plan(0), 0.9, jax.random.key(0)).returns
    assert np.allclose(returns, coverage.values[0])
