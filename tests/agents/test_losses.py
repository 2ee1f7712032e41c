"""Targets, losses and errors of every agent against numbers worked out by hand.

There are two states with two actions. The step from state 0 by action 1 leads to state 1 and is
rewarded with (1, -1); the discount is a half.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents.tables import TableNetwork
from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.core import Agent, TransitionBatch, WeightHistory
from windvane.agents.multi_network import MultiNetwork
from windvane.agents.multi_objective import MultiObjectiveDQN
from windvane.agents.naive import Naive
from windvane.agents.uvfa import UVFA
from windvane.envs.minecart import Minecart
from windvane.networks import Architecture

ONLINE = [[[1, 2], [3, 0]], [[4, 1], [0, 6]]]
TARGET = [[[-9, -9], [-9, -9]], [[10, 20], [30, 40]]]

LEFT, RIGHT = [0.9, 0.1], [0.25, 0.75]
"""In state 1, action 0 is best for the first (3.7 against 0.6), action 1 for the other (1.75
against 4.5).
"""

ALL = [
    ConditionedNetwork(),
    ConditionedNetwork(train_on="active"),
    ConditionedNetwork(train_on="history"),
    MultiObjectiveDQN(),
    MultiNetwork(),
    Naive(),
    UVFA(),
]


def loss(
    agent: Agent,
    online: Any,
    target: Any,
    weights: Any,
    terminated: bool = False,
    limit: float | None = None,
) -> tuple[Any, Any]:
    """Loss and errors of the step above, trained on some weight vectors."""
    return agent.loss(
        online,
        target,
        TransitionBatch(
            jnp.asarray([[0], [1]]),
            jnp.asarray([1]),
            jnp.asarray([[1.0, -1.0]]),
            jnp.asarray([terminated]),
            target_limit=None if limit is None else jnp.asarray(limit),
        ),
        jnp.asarray([weights]),
        jnp.asarray(0.5),
    )


@pytest.mark.parametrize(
    ("agent", "weights", "error"),
    [
        # y = (1, -1) + (10, 20) / 2 = (6, 9) against (3, 0): errors 3 and 9.
        (MultiObjectiveDQN(), [LEFT], 6),
        (ConditionedNetwork(train_on="active"), [LEFT], 6),
        # y = (1, -1) + (30, 40) / 2 = (16, 19) against (3, 0): errors 13 and 19.
        (MultiObjectiveDQN(), [RIGHT], 16),
        (MultiNetwork(), [RIGHT], 16),
        (ConditionedNetwork(train_on="history"), [RIGHT], 16),
        # Half of each.
        (ConditionedNetwork(), [LEFT, RIGHT], 11),
        # The first objective likes action 0 (4 > 0), the second action 1 (6 > 1), whatever the
        # weights: y = (1 + 10 / 2, -1 + 40 / 2) = (6, 19), errors 3 and 19.
        (Naive(), [LEFT], 11),
        (Naive(), [RIGHT], 11),
    ],
)
def test_errors_of_a_step(agent: Agent, weights: Any, error: float) -> None:
    value, info = loss(agent, TableNetwork(ONLINE), TableNetwork(TARGET), weights)
    assert value == pytest.approx(error)
    assert info.loss == pytest.approx(error)
    assert np.allclose(info.td_errors, [error])


@pytest.mark.parametrize(
    ("agent", "weights", "limit", "error"),
    [
        # y = (6, 9) is clipped to (6, 7), against (3, 0): errors 3 and 7.
        (MultiObjectiveDQN(), [LEFT], 7.0, 5),
        # y = (16, 19) is clipped to (10, 10): errors 7 and 10.
        (MultiNetwork(), [RIGHT], 10.0, 8.5),
        # (6, 9) stays and (16, 19) becomes (10, 10): half of 6 and of 8.5.
        (ConditionedNetwork(), [LEFT, RIGHT], 10.0, 7.25),
        # y = (6, 19) is clipped to (2, 2): errors 1 and 2.
        (Naive(), [LEFT], 2.0, 1.5),
        (MultiObjectiveDQN(), [LEFT], 100.0, 6),
    ],
)
def test_targets_may_be_clipped(agent: Agent, weights: Any, limit: float, error: float) -> None:
    online, target = TableNetwork(ONLINE), TableNetwork(TARGET)
    value, info = loss(agent, online, target, weights, limit=limit)
    assert value == pytest.approx(error)
    assert np.allclose(info.td_errors, [error])


def test_targets_are_clipped_below_zero_too() -> None:
    # y = (1 - 9 / 2, -1 - 9 / 2) = (-3.5, -5.5) is clipped to (-3.5, -4): errors 6.5 and 4.
    low = TableNetwork([[[-9, -9], [-9, -9]], [[-9, -9], [-9, -9]]])
    value, _ = loss(MultiObjectiveDQN(), TableNetwork(ONLINE), low, [LEFT], limit=4.0)
    assert value == pytest.approx(5.25)
    # UVFA's target is one scalar: 4 becomes 2, against 3.
    online, target = (
        TableNetwork([[[1], [3]], [[2], [5]]]),
        TableNetwork([[[-9], [-9]], [[7], [9]]]),
    )
    assert loss(UVFA(), online, target, [RIGHT], limit=2.0)[0] == pytest.approx(1)


@pytest.mark.parametrize("agent", ALL[:-1])
def test_a_terminal_step_has_no_future(agent: Agent) -> None:
    # y = (1, -1) against (3, 0): errors 2 and 1.
    value, _ = loss(agent, TableNetwork(ONLINE), TableNetwork(TARGET), [LEFT, RIGHT], True)
    assert value == pytest.approx(1.5)


def test_uvfa_learns_one_scalar() -> None:
    online = TableNetwork([[[1], [3]], [[2], [5]]])
    target = TableNetwork([[[-9], [-9]], [[7], [9]]])
    # y = (1, -1).(0.25, 0.75) + 9 / 2 = 4 against 3.
    assert loss(UVFA(), online, target, [RIGHT])[0] == pytest.approx(1)
    # y = -0.5 against 3.
    assert loss(UVFA(), online, target, [RIGHT], True)[0] == pytest.approx(3.5)


def test_uvfa_chooses_by_the_value_alone() -> None:
    q = jnp.asarray([[2.0], [5.0]])
    assert UVFA().scalarise(q, jnp.asarray(LEFT)).tolist() == [2, 5]


def test_each_weight_vector_is_judged_by_its_own_values() -> None:
    # Q(0, 1; w) = (3 + 10 w1, 0): (12, 0) for the first weights and (5.5, 0) for the others.
    online = TableNetwork(ONLINE, [[[0, 0], [10, 0]], [[0, 0], [0, 0]]])
    # Q-(1, 0; LEFT) = (10, 20) + 0.9 (20, 0) = (28, 20), so y = (15, 9): errors 3 and 9.
    # Q-(1, 1; RIGHT) = (30, 40): y = (16, 19) as above: errors 10.5 and 19.
    target = TableNetwork(TARGET, [[[0, 0], [0, 0]], [[20, 0], [0, 0]]])
    _, info = loss(ConditionedNetwork(), online, target, [LEFT, RIGHT])
    assert info.td_errors[0] == pytest.approx((6 + 14.75) / 2)


def test_a_batchs_loss_is_the_mean_and_its_errors_are_each_transitions() -> None:
    _, info = ConditionedNetwork().loss(
        TableNetwork(ONLINE),
        TableNetwork(TARGET),
        TransitionBatch(
            jnp.asarray([[0, 1], [1, 0]]),
            jnp.asarray([1, 0]),
            jnp.asarray([[1.0, -1.0], [2.0, 2.0]]),
            jnp.asarray([False, True]),
        ),
        jnp.asarray([[LEFT, RIGHT], [LEFT, RIGHT]]),
        jnp.asarray(0.5),
    )
    # The second: (2, 2) against (4, 1).
    assert np.allclose(info.td_errors, [11, 1.5])
    assert info.loss == pytest.approx(6.25)


@pytest.mark.parametrize("agent", ALL[:-1])
def test_only_the_value_of_the_action_taken_is_moved(agent: Agent) -> None:
    online, target = TableNetwork(ONLINE), TableNetwork(TARGET)
    moved = eqx.filter_grad(lambda n: loss(agent, n, target, [LEFT])[0])(online)
    # Both objectives are too low; each has half of the loss.
    assert np.array_equal(moved.table, [[[0, 0], [-0.5, -0.5]], [[0, 0], [0, 0]]])
    still = eqx.filter_grad(lambda n: loss(agent, online, n, [LEFT])[0])(target)
    assert not np.asarray(still.table).any()


def test_frames_that_observations_share_get_no_gradient_through_the_targets() -> None:
    """On three frames, the middle one of which is encoded once, against two plain observations."""
    env, agent = Minecart(observation="pixels"), ConditionedNetwork()
    generator = np.random.default_rng(0)

    def network() -> Any:
        shapes = eqx.filter_eval_shape(
            lambda: Architecture(8, 2).build(env.spec, 3, True, jax.random.key(0))
        )
        fill = lambda leaf: jnp.asarray(generator.normal(scale=0.1, size=leaf.shape), jnp.float32)  # noqa: E731
        return jax.tree.map(fill, shapes)

    online, target = network(), network()
    frames = jnp.asarray(generator.integers(0, 256, (3, 4, 48, 48, 3)).astype(np.uint8))
    actions = jnp.asarray([0, 3, 5, 2])
    rewards = jnp.asarray(generator.normal(size=(4, 3)), jnp.float32)
    terminated = jnp.asarray([False, True, False, False])
    weights = jnp.asarray(generator.dirichlet(np.ones(3), (4, 2)), jnp.float32)

    def plain(network: Any, goals: Any) -> Any:
        q = jax.vmap(jax.vmap(network, (None, 0)))(frames[:2].swapaxes(0, 1), weights)
        taken = jnp.stack([q[n, :, actions[n]] for n in range(4)])
        return jnp.abs(goals - taken).mean()

    @eqx.filter_jit
    def both(online: Any, target: Any) -> Any:
        grad = eqx.filter_grad(agent.loss, has_aux=True)
        batch = TransitionBatch(frames, actions, rewards, terminated)
        fused, info = grad(online, target, batch, weights, jnp.asarray(0.9))
        judged = [
            jax.vmap(jax.vmap(network, (None, 0)))(frames[1:].swapaxes(0, 1), weights)
            for network in (online, target)
        ]
        best = jnp.argmax((judged[0] * weights[:, :, None]).sum(-1), -1)
        future = jnp.take_along_axis(judged[1], best[:, :, None, None], axis=2)[:, :, 0]
        discounts = jnp.where(terminated, 0.0, 0.9)[:, None, None]
        goals = rewards[:, None] + discounts * future
        value, gradient = eqx.filter_value_and_grad(plain)(online, goals)
        return info.loss, fused, value, gradient

    value, fused, plain_value, plain_gradient = both(online, target)
    assert np.allclose(value, plain_value, rtol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(fused), jax.tree.leaves(plain_gradient), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def test_what_each_agent_trains_on() -> None:
    active, key = jnp.asarray([[0.5, 0.5]]), jax.random.key(0)
    history = WeightHistory.start(jnp.asarray(LEFT), 4)
    history = history.add(jnp.asarray(RIGHT), jnp.asarray(True), jnp.zeros(()))
    names = ["cn", "cn-active", "cn-uvfa", "mo", "mn", "naive", "uvfa"]
    drawn = {
        name: np.asarray(agent.training_weights(active, history, key, 50))
        for name, agent in zip(names, ALL, strict=True)
    }
    now = np.full((50, 1, 2), 0.5, np.float32)
    for name in ("cn-active", "mo", "mn", "naive"):
        assert np.array_equal(drawn[name], now)
    assert drawn["cn"].shape == (50, 2, 2)
    assert np.array_equal(drawn["cn"][:, :1], now)
    for past in (drawn["cn"][:, 1:], drawn["cn-uvfa"], drawn["uvfa"]):
        assert past.shape == (50, 1, 2)
        assert np.array_equal(np.unique(past[:, 0], axis=0), np.float32([RIGHT, LEFT]))


def test_acting_is_greedy_for_the_weights() -> None:
    act, network = MultiObjectiveDQN().act, TableNetwork(ONLINE)
    assert act(network, jnp.asarray(1), jnp.asarray(LEFT)) == 0
    assert act(network, jnp.asarray(1), jnp.asarray(RIGHT)) == 1
