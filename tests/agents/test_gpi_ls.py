"""GPI-LS: targets, loss, acting and the choice of weights against numbers worked out by hand, a
problem whose values are known, and training by both drivers.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents import probes
from tests.agents.tables import TableNetwork
from tests.agents.test_probes import TRADE_OFF, assert_values, trained
from tests.runs.crashes import stop_after
from tests.runs.small import same_records
from tests.strangers.parts import Shop
from windvane import Policy, TrainConfig, resume, train
from windvane.agents import gpi_ls
from windvane.agents.core import Networks, TransitionBatch, WeightHistory
from windvane.agents.gpi_ls import GPILS, ImprovedNetwork, TwinNetwork, next_weights
from windvane.errors import InputError
from windvane.runs.stopping import TrainingStopped
from windvane.schedules import RandomWeights

LEFT, RIGHT = [0.9, 0.1], [0.25, 0.75]
EXTREMES = {(1.0, 0.0), (0.0, 1.0)}

SMALL: dict[str, Any] = {
    "steps": 240, "learning_starts": 80, "chunk": 80, "width": 16, "depth": 1, "capacity": 200,
    "batch_size": 16, "learning_rate": 0.01, "target_interval": 20, "oracle": False,
    "progress": False,
    "agent_args": {"iteration_steps": 80, "evaluation_episodes": 1, "max_weights": 6},
}  # fmt: skip


def support(*rows: list[float], capacity: int = 4) -> WeightHistory:
    vectors = jnp.zeros((capacity, 2)).at[: len(rows)].set(jnp.asarray(rows).reshape(-1, 2))
    return WeightHistory(vectors, jnp.asarray(len(rows)))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # Worse for LEFT are (10, 20), 11 against 11.2, and (5, 50), 9.5 against 30. Of these the
        # first action is better: (1, -1) + (10, 20) / 2.
        (LEFT, [6, 9]),
        # Worse for RIGHT are (10, 20), 17.5 against 32, and (30, 30), 30 against 38.75. Of these
        # the second is better: (1, -1) + (30, 30) / 2.
        (RIGHT, [16, 14]),
    ],
)
def test_the_target_is_the_worse_of_two(weights: list[float], expected: list[float]) -> None:
    target = jnp.asarray([[10.0, 20, 8, 40], [30, 30, 5, 50]])
    reward, discount = jnp.asarray([1.0, -1.0]), jnp.asarray(0.5)
    y = GPILS().target(jnp.zeros((2, 4)), target, reward, discount, jnp.asarray(weights))
    assert np.allclose(y, expected * 2)


def test_hubers_loss_and_the_priority() -> None:
    difference = jnp.asarray([[[0.25, -2.0, 1.0, 0.0]]])
    loss, error = GPILS(huber_threshold=0.5).distance(difference, jnp.asarray([[LEFT]]), 0)
    # 0.25^2 / (2 x 0.5), then 2 - 0.25, 1 - 0.25 and 0.
    assert np.allclose(loss, [[(0.0625 + 1.75 + 0.75) / 4]])
    # The larger errors are 1 and 2.
    assert np.allclose(error, [[0.9 + 0.2]])


def test_both_networks_are_trained() -> None:
    twins = TwinNetwork(TableNetwork([[[1, 2], [3, 0]]]), TableNetwork([[[0, 0], [5, 4]]]))
    batch = TransitionBatch(
        jnp.asarray([[0], [0]]), jnp.asarray([1]), jnp.asarray([[4.0, 1.0]]), jnp.asarray([True])
    )
    arguments = (batch, jnp.asarray([[LEFT]]), jnp.asarray(0.5))
    grad = jax.grad(lambda n: GPILS().loss(n, twins, *arguments)[0])(twins)
    # (4, 1) against (3, 0) is too high for one, and against (5, 4) too low for the other.
    assert np.allclose(grad.first.table, [[[0, 0], [-0.25, -0.25]]])
    assert np.allclose(grad.second.table, [[[0, 0], [0.25, 0.25]]])


def test_an_action_is_worth_what_the_best_policy_makes_of_it() -> None:
    # Q(0) = (4, 1) for all weights, and Q(1) = (9, 6) for LEFT and (2.5, 6) for RIGHT.
    network = TableNetwork([[[4, 1], [0, 6]]], [[[0, 0], [10, 0]]])
    state, weights = jnp.asarray(0), jnp.asarray(RIGHT)
    improved = ImprovedNetwork(network, support(LEFT))(state, weights)
    assert np.allclose(improved, [[4, 1], [9, 6]])
    alone = ImprovedNetwork(network, support())(state, weights)
    assert np.allclose(alone, [[4, 1], [2.5, 6]])


def table_of(values: dict[tuple[float, float], tuple[float, float]]) -> Any:
    """What a policy earns, by rounded weights."""
    return lambda rows: np.asarray([values[tuple(row.round(3).tolist())] for row in rows], float)


def test_the_next_weights_are_where_the_policy_gains_most() -> None:
    known = {(1.0, 0.0): (10, 0), (0.0, 1.0): (0, 10), (0.5, 0.5): (7, 7)}
    held = np.eye(2)
    assert np.allclose(next_weights(held, table_of(known)), [0.5, 0.5])
    # Corners are now where 10 w = 7 and its mirror image. At the second the policy earns
    # 0.3 x 4 + 0.7 x 9.5 = 7.85 rather than 7.
    known |= {(0.7, 0.3): (10, 0), (0.3, 0.7): (4, 9.5)}
    held = np.asarray([[1, 0], [0, 1], [0.5, 0.5]])
    assert np.allclose(next_weights(held, table_of(known)), [0.3, 0.7])


def test_without_gains_the_farthest_corner_is_next() -> None:
    # (10, 0) and (9, 3) meet at (0.75, 0.25), and (9, 3) and (0, 10) at (0.438, 0.562).
    known = {(1.0, 0.0): (10, 0), (0.0, 1.0): (0, 10), (0.7, 0.3): (9, 3)}
    known |= {(0.75, 0.25): (9, 3), (0.438, 0.562): (9, 3)}
    chosen = next_weights(np.asarray([[1, 0], [0, 1], [0.7, 0.3]]), table_of(known))
    assert np.allclose(chosen, [7 / 16, 9 / 16])


def test_of_many_corners_the_farthest_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpi_ls, "MAX_CORNERS", 1)
    # As above, but what the policy would gain at the nearer corner is never seen.
    known = {(1.0, 0.0): (10, 0), (0.0, 1.0): (0, 10), (0.7, 0.3): (9, 3), (0.438, 0.562): (9, 3)}
    chosen = next_weights(np.asarray([[1, 0], [0, 1], [0.7, 0.3]]), table_of(known))
    assert np.allclose(chosen, [7 / 16, 9 / 16])


def test_there_may_be_nothing_to_choose() -> None:
    assert next_weights(np.eye(2), lambda rows: np.full((len(rows), 2), 5.0)) is None


def test_an_iteration_adds_to_the_support_until_it_is_full() -> None:
    agent = GPILS(max_weights=3, evaluation_episodes=2)
    network = TwinNetwork(TableNetwork([[[0, 0]]]), TableNetwork([[[0, 0]]]))

    def earned(acting: Any, rows: Any, episodes: int) -> Any:
        assert isinstance(acting, ImprovedNetwork)
        assert episodes == 2
        return rows * 10

    state = support([1.0, 0.0], [0.0, 1.0], capacity=3)
    state, weights = agent.iterate(Networks(network, network, state), earned)
    assert np.allclose(weights, [[1, 0], [0, 1], [0.5, 0.5]])
    assert int(state.size) == 3
    assert np.allclose(state.vectors, weights)
    again, weights = agent.iterate(Networks(network, network, state), earned)
    assert again is state
    assert len(weights) == 3


def test_batches_are_trained_on_active_weights_and_on_the_support() -> None:
    agent, history = GPILS(), WeightHistory.start(jnp.asarray([0.5, 0.5]), 4)
    past = agent.past_weights(Networks(None, None, support(LEFT, RIGHT)), history)
    drawn = agent.training_weights(jnp.asarray([[0.5, 0.5]]), past, jax.random.key(0), 50)
    assert (drawn[:, 0] == 0.5).all()
    assert np.array_equal(np.unique(drawn[:, 1], axis=0), np.float32([RIGHT, LEFT]))


def test_what_depends_on_the_weights_is_learned() -> None:
    q = trained(GPILS(), probes.TRADE_OFF, RandomWeights(2))
    for values in np.split(q, 2, axis=-1):
        assert_values(values[:, 0], TRADE_OFF["left"])
        assert_values(values[:, 1], TRADE_OFF["right"])


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("iteration_steps", 0, "a whole number from 1 to"),
        ("evaluation_episodes", 0, "a whole number from 1 to"),
        ("max_weights", 0, "a whole number from 1 to"),
        ("max_weights", 1, "a whole number from 2 to 4096"),
        ("huber_threshold", 0.0, "a number above 0"),
    ],
)
def test_bad_arguments(name: str, value: Any, allowed: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be {allowed}.*, not {value}"):
        train("dst", "gpi-ls", agent_args={name: value}, oracle=False, progress=False)


def test_the_preset() -> None:
    config = TrainConfig.for_env("mo:minecart-v0", agent="gpi-ls")
    assert config == TrainConfig.preset("gpi-ls", env="mo:minecart-v0")
    assert (config.schedule, config.layer_norm, config.batch_size) == ("chosen", True, 128)


def met(result: Any) -> set[tuple[float, ...]]:
    """The weights that episodes had."""
    columns = [result.records[name] for name in ("weights_0", "weights_1")]
    return set(zip(*(column.tolist() for column in columns), strict=True))


def chosen(policy: Policy) -> set[tuple[float, ...]]:
    """The support."""
    held = policy.network.support
    return {tuple(row) for row in np.asarray(held.vectors)[: int(held.size)].tolist()}


def test_the_fused_driver_trains_it_and_resumes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = probes.TRADE_OFF
    whole = train(env, "gpi-ls", out=tmp_path / "whole", seeds=2, **SMALL)
    assert not whole.failed
    for policy in whole.policies:
        assert chosen(policy) > EXTREMES
    assert EXTREMES < met(whole) <= chosen(whole.policies[0]) | chosen(whole.policies[1])
    stop_after(monkeypatch, [160])
    with pytest.raises(TrainingStopped):
        train(env, "gpi-ls", out=tmp_path / "stopped", seeds=2, **SMALL)
    resumed = resume(tmp_path / "stopped", env=env, progress=False)
    assert same_records(resumed.records, whole.records)
    loaded = Policy.load(tmp_path / "stopped" / "policies" / "seed-1.safetensors", env=env)
    seen = np.zeros(loaded.spec.observation_shape, loaded.spec.frame.dtype)
    for weights in (LEFT, RIGHT):
        expected = whole.policies[1].q_values(seen, weights)
        assert np.array_equal(loaded.q_values(seen, weights), expected)


def test_the_host_driver_trains_it() -> None:
    result = train(Shop(), "gpi-ls", num_envs=2, **SMALL)
    assert not result.failed
    policy = result.policies[0]
    assert EXTREMES < met(result) <= chosen(policy)
    seen = np.zeros(policy.spec.observation_shape, policy.spec.frame.dtype)
    assert [policy.act(seen, weights) for weights in (LEFT, RIGHT)] == [0, 1]
