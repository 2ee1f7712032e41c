"""The simplex helpers: checking, reading and sampling weights, and grids of them."""

import jax
import numpy as np
import pytest
from scipy import stats

from windvane.errors import InputError
from windvane.weights import check_weights, parse_weights, sample_weights, simplex_grid

# --- points of the simplex


@pytest.mark.parametrize("weights", [[0.2, 0.8], (1.0,), np.array([0.5, 0.5]), [0, 0, 1]])
def test_good_weights_come_back_unchanged(weights):
    checked = check_weights(weights, len(weights))
    assert checked.dtype == float
    np.testing.assert_array_equal(checked, weights)


def test_rounded_weights_are_not_renormalised():
    np.testing.assert_array_equal(check_weights([0.33333] * 3), [0.33333] * 3)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([0.5, 0.5], "must be 3 numbers, one per objective, and [0.5, 0.5] has 2"),
        ([[0.2, 0.3, 0.5]], "must be one list of numbers, not an array of shape (1, 3)"),
        ([], "must be one list of numbers, not an array of shape (0,)"),
        (0.5, "must be one list of numbers, not an array of shape ()"),
        ([[1.0], [0.5, 0.5]], "must be a list of numbers"),
        (["a", "b", "c"], "must be a list of numbers"),
        (None, "must be a list of numbers"),
        ("0.2,0.3,0.5", "must be a list of numbers, not '0.2,0.3,0.5'"),
        (["0.2", "0.3", "0.5"], "must be a list of numbers"),
        ([0.5, "0.5", 0.0], "must be a list of numbers"),
        ([True, False, False], "must be a list of numbers, not [True, False, False]"),
        ([True, 0.0, 0.0], "must be a list of numbers"),
        (np.asarray([True, False, False]), "must be a list of numbers"),
        ([0.2 + 0j, 0.3, 0.5], "must be a list of numbers"),
        (np.asarray([0.2, 0.3, 0.5], complex), "must be a list of numbers"),
        ([object(), 0.5, 0.5], "must be a list of numbers"),
        ({"ore": 1.0}, "must be a list of numbers"),
        ([10**400, 0, 0], "must be a list of numbers"),
        ([np.nan, 0.5, 0.5], "must be finite numbers, and [nan, 0.5, 0.5] has one that is not"),
        ([np.inf, 0.5, 0.5], "must be finite numbers"),
        ([-0.5, 0.5, 1.0], "must be 0 or more, and [-0.5, 0.5, 1.0] has -0.5"),
        ([0.2, 0.2, 0.5], "must sum to 1, and [0.2, 0.2, 0.5] sums to 0.9"),
        ([0.2, 0.3, 0.5002], "must sum to 1"),
    ],
)
def test_bad_weights_are_refused_in_one_sentence(weights, sentence):
    with pytest.raises(InputError) as caught:
        check_weights(weights, 3)
    message = str(caught.value)
    assert message.startswith("the weights ")
    assert sentence in message
    assert "\n" not in message


def test_weights_are_parsed():
    np.testing.assert_array_equal(parse_weights("0.2, 0.3,0.5", 3), [0.2, 0.3, 0.5])


@pytest.mark.parametrize("text", ["", "0.2,,0.8", "a,b", "0.2 0.8"])
def test_text_that_is_no_list_of_numbers_is_refused(text):
    with pytest.raises(InputError, match=r"numbers separated by commas, such as 0\.2,0\.3,0\.5"):
        parse_weights(text, 2)


@pytest.mark.parametrize("text", ["0.2,0.3", "nan,1", "-1,2", "1,0,0"])
def test_parsed_weights_are_checked(text):
    with pytest.raises(InputError, match="the weights must"):
        parse_weights(text, 2)


@pytest.mark.parametrize(("objectives", "resolution"), [(1, 4), (2, 10), (3, 7), (5, 3)])
def test_grid_holds_every_point_once(objectives, resolution):
    grid = simplex_grid(objectives, resolution)
    every = np.indices((resolution + 1,) * objectives).reshape(objectives, -1).T
    np.testing.assert_array_equal(grid, every[every.sum(1) == resolution] / resolution)


@pytest.mark.parametrize(("objectives", "resolution"), [(0, 3), (2, 0), (2, -1)])
def test_bad_grids_are_refused(objectives, resolution):
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        simplex_grid(objectives, resolution)


# --- Dirichlet(1)


@pytest.mark.parametrize("objectives", [2, 3, 6])
def test_sampled_weights_are_uniform_on_the_simplex(objectives):
    count = 100_000
    keys = jax.random.split(jax.random.key(7), count)
    drawn = np.asarray(jax.jit(jax.vmap(lambda k: sample_weights(k, objectives)))(keys), float)
    assert (drawn > 0).all()
    np.testing.assert_allclose(drawn.sum(1), 1, atol=1e-6)
    n = objectives
    variance = (n - 1) / (n * n * (n + 1))
    np.testing.assert_allclose(drawn.mean(0), 1 / n, atol=4 * np.sqrt(variance / count))
    covariance = np.cov(drawn.T)
    expected = np.where(np.eye(n, dtype=bool), variance, -1 / (n * n * (n + 1)))
    np.testing.assert_allclose(covariance, expected, atol=0.02 * variance)
    # Uniform on the simplex: each coordinate is Beta(1, n-1), and what the
    # others share is independent of it and uniform again.
    for coordinate in drawn.T:
        assert stats.kstest(coordinate, stats.beta(1, n - 1).cdf).pvalue > 1e-4
    if n > 2:
        rest = drawn[:, 1] / (1 - drawn[:, 0])
        assert stats.kstest(rest, stats.beta(1, n - 2).cdf).pvalue > 1e-4
        assert abs(stats.spearmanr(drawn[:, 0], rest).statistic) < 4 / np.sqrt(count)


def test_one_objective_has_weight_one():
    assert sample_weights(jax.random.key(0), 1) == 1.0


@pytest.mark.parametrize("objectives", [2, 3, 6])
def test_absolute_normal_numbers_are_shared_out(objectives):
    count = 20_000
    keys = jax.random.split(jax.random.key(8), count)
    drawn = np.asarray(jax.vmap(lambda k: sample_weights(k, objectives, "normal"))(keys), float)
    np.testing.assert_allclose(drawn.sum(1), 1, atol=1e-6)
    # The ratio of two absolute normal numbers is an absolute Cauchy number.
    ratio = drawn[:, 0] / drawn[:, 1]
    assert stats.kstest(ratio, lambda x: 2 / np.pi * np.arctan(x)).pvalue > 1e-4
