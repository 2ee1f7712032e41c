"""PQN: returns and losses worked out by hand, and probes whose values are known."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents import probes
from windvane.agents import AGENTS
from windvane.agents.pqn import PQN, Rollout, RolloutBatch
from windvane.envs.environment import Environment
from windvane.errors import InputError
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.rollout_learner import RolloutLearner
from windvane.networks import Architecture
from windvane.schedules import RandomWeights
from windvane.training.parallel import ParallelDriver

SETTINGS = Hyperparameters(
    gamma=probes.GAMMA,
    learning_rate=5e-3,
    clip_norm=10.0,
    epsilon_start=1.0,
    epsilon_end=0.05,
    epsilon_steps=10_000,
    average_decay=0.999,
)
HALF = jnp.asarray(0.5)


def rollout(
    rewards: Any, next_values: Any, terminated: Any = (0, 0, 0), truncated: Any = (0, 0, 0)
) -> Rollout:
    """Three steps of one environment with two objectives."""
    vectors = {"rewards": rewards, "next_values": next_values}
    flags = {"terminated": terminated, "truncated": truncated}
    return Rollout(
        observations=jnp.zeros((3, 1, 1)),
        actions=jnp.zeros((3, 1), int),
        weights=jnp.full((3, 1, 2), 0.5),
        **{name: jnp.asarray(value, jnp.float32)[:, None] for name, value in vectors.items()},
        **{name: jnp.asarray(value, bool)[:, None] for name, value in flags.items()},
    )


REWARDS = [[1, 0], [0, 2], [4, -4]]
VALUES = [[8, 4], [2, 6], [10, 20]]


@pytest.mark.parametrize(
    ("td_lambda", "flags", "expected"),
    [
        # One step ahead: r + 0.5 V.
        (0.0, {}, [[5, 2], [1, 5], [9, 6]]),
        # All the way: 9 6 | 0.5 (9, 6) + (0, 2) = 4.5 5 | 0.5 (4.5, 5) + (1, 0) = 3.25 2.5.
        (1.0, {}, [[3.25, 2.5], [4.5, 5], [9, 6]]),
        # Half of each: (0, 2) + 0.5 (5.5, 6) = 2.75 5 | (1, 0) + 0.5 (5.375, 4.5).
        (0.5, {}, [[3.6875, 2.25], [2.75, 5], [9, 6]]),
        # Nothing follows the second step; the first sees half its return.
        (0.5, {"terminated": (0, 1, 0)}, [[3, 1.5], [0, 2], [9, 6]]),
        # The second step's own next value stands for all that would follow.
        (0.5, {"truncated": (0, 1, 0)}, [[3.25, 2.25], [1, 5], [9, 6]]),
    ],
)
def test_returns_by_hand(td_lambda: float, flags: Any, expected: Any) -> None:
    found = PQN(td_lambda=td_lambda).returns(rollout(REWARDS, VALUES, **flags), HALF)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6)


def test_loss_by_hand() -> None:
    # Q of both actions; the first environment took the second one, the second the first.
    q = jnp.asarray([[[0.0, 0.0], [1.0, 2.0]], [[3.0, -1.0], [9.0, 9.0]]])
    batch = RolloutBatch(
        observations=jnp.arange(2.0)[:, None],
        actions=jnp.asarray([1, 0]),
        weights=jnp.full((2, 2), 0.5),
        returns=jnp.asarray([[2.0, 2.0], [3.0, 1.0]]),
    )

    class Table:
        def batch(self, observations: Any, weights: Any) -> Any:
            return q[observations[:, 0].astype(int)]

    # Squared errors (1, 0) and (0, 4): their sums halved are 0.5 and 2, on average 1.25.
    network: Any = Table()
    assert PQN.rollout_loss.__wrapped__(PQN(), network, batch) == 1.25


def test_greedy_is_by_each_environments_weights() -> None:
    q = jnp.asarray([[[2.0, 0.0], [0.0, 3.0]]] * 2)

    class Table:
        def batch(self, observations: Any, weights: Any) -> Any:
            return q

    network: Any = Table()
    weights = jnp.asarray([[0.9, 0.1], [0.1, 0.9]])
    best, values = PQN.greedy.__wrapped__(PQN(), network, jnp.zeros((2, 1)), weights)
    assert best.tolist() == [0, 1]
    assert values.tolist() == [[2, 0], [0, 3]]


@pytest.mark.parametrize(
    "arguments",
    [{"td_lambda": 1.5}, {"epochs": 0}, {"minibatches": 0},
     {"learning_rate_end": float("nan")}, {"rollout": 3}],
)  # fmt: skip
def test_arguments_that_cannot_be_meant(arguments: Any) -> None:
    (name,) = arguments
    with pytest.raises(InputError, match=name):
        AGENTS.make("pqn", arguments)


@pytest.fixture(scope="module")
def learned() -> Any:
    """Trains on any probe; all have one shape, so that it is compiled once."""

    def train(env: Environment[Any]) -> Any:
        agent = PQN(minibatches=4, epochs=4)
        learner = RolloutLearner(
            env.spec,
            agent,
            Architecture(width=32, depth=1, dueling=False, layer_norm=True),
            SETTINGS,
            jnp.asarray(16.0 * 150),
        )
        driver = ParallelDriver(learner, env, RandomWeights(2), 32, 8)
        state = jax.vmap(driver.init)(jnp.zeros(1, int))
        state, _ = driver.advance(jax.tree.map(jnp.copy, state), 0, 150 * 32 * 8, True)
        network = jax.tree.map(lambda leaf: leaf[0], state.learner.average)
        return lambda seen, weights: np.asarray(
            network(jax.nn.one_hot(seen, probes.STATES), jnp.asarray(weights))
        )

    return train


@pytest.mark.parametrize(
    ("probe", "state", "weights", "expected"),
    [
        ("ONE_STEP", 0, (0.5, 0.5), [[1, 0.5], [0.5, -0.5]]),
        ("TWO_STEPS", 0, (0.5, 0.5), [[0.5, 0.25]] * 2),
        ("TRADE_OFF", 0, (0.9, 0.1), [[0.5, 0]] * 2),
        ("TRADE_OFF", 0, (0.1, 0.9), [[0, 0.5]] * 2),
        # 0.5 (1 + 0.5 + 0.25 + ...): what a time limit truncates has a future all the same.
        ("CUT", 0, (0.5, 0.5), [[1, 0.5], [0.5, 0.25]]),
        ("NOISE", 0, (0.5, 0.5), [[1, 0.5], [0.5, 0]]),
    ],
)
def test_probes(learned: Any, probe: str, state: int, weights: Any, expected: Any) -> None:
    found = learned(getattr(probes, probe))(state, weights)
    np.testing.assert_allclose(found, expected, atol=0.06)
