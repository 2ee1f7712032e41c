"""The average of networks that replay agents may have as their policy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.learning.learner import Learner, moving_average, ravel
from windvane.training.build import build
from windvane.training.config import TrainConfig
from windvane.training.fused import FusedDriver

STARTS = 16


def driver(decay: float) -> FusedDriver:
    config = TrainConfig.preset(
        "quick-dst", agent="cn", replay="standard", steps=400, width=8, capacity=64, batch_size=8,
        learning_starts=STARTS, average_decay=decay, oracle=False,
    )  # fmt: skip
    training = build(config)
    assert isinstance(training.learner, Learner)
    return FusedDriver(training.learner, training.world, training.schedule)  # type: ignore[arg-type]


def test_the_average_by_hand() -> None:
    old, new = {"w": jnp.asarray([1.0, 3.0])}, {"w": jnp.asarray([2.0, 1.0])}
    # The first share is 9 / 10; after 8,990 updates it is 9 / 9,000, less than 1 - 0.99.
    first = moving_average(old, new, 0.99, jnp.asarray(0))["w"]
    np.testing.assert_allclose(first, [1.9, 1.2], rtol=1e-6)
    late = moving_average(old, new, 0.99, jnp.asarray(8_990))["w"]
    np.testing.assert_allclose(late, [1.01, 2.98], rtol=1e-6)


def test_the_average_of_all_networks_so_far_is_the_policy() -> None:
    one = driver(0.9)
    runs = eqx.filter_jit(eqx.filter_vmap(one.init))(jnp.arange(2))
    runs = jax.tree.map(jnp.copy, runs)
    interval = one.learner.hyperparameters.update_interval
    runs, _ = one.advance(runs, 0, STARTS, False)
    average = np.asarray(ravel(jax.tree.map(lambda x: x[1], runs.learner.online))[0], float)
    for update in range(100):
        start = STARTS + update * interval
        runs, _ = one.advance(runs, start, start + interval, True)
        online = np.asarray(ravel(jax.tree.map(lambda x: x[1], runs.learner.online))[0], float)
        # The first update is number 1 of the count that begins when learning starts.
        share = max(0.1, 9 / (10 + update + 1))
        average += share * (online - average)
    state = jax.tree.map(lambda leaf: leaf[1], runs.learner)
    found = one.learner.policy_network(state, None)
    np.testing.assert_allclose(ravel(found)[0], average, rtol=1e-3, atol=1e-5)
    assert np.abs(average - online).max() > 1e-4


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_nothing_is_kept_where_no_average_is_wanted(decay: float) -> None:
    one = driver(decay)
    state = one.init(jnp.asarray(0)).learner
    assert (state.average is None) == (decay == 0)
    network = one.learner.policy_network(state, None)
    np.testing.assert_array_equal(ravel(network)[0], ravel(state.online)[0])
