"""Envelope Q-learning: its targets and loss against numbers worked out by hand, a problem whose
values are known, and training by both drivers.

By hand there are two states with two actions, as in `test_losses`: the step from state 0 by action
1 leads to state 1 and is rewarded with (1, -1); the discount is a half.
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
from windvane import Policy, TrainConfig, resume, train
from windvane.agents.core import TransitionBatch, WeightHistory
from windvane.agents.envelope import Envelope
from windvane.errors import InputError
from windvane.runs.stopping import TrainingStopped
from windvane.schedules import RandomWeights
from windvane.training.build import build
from windvane.training.presets import preset_for

LEFT, RIGHT = [0.9, 0.1], [0.25, 0.75]

# In state 1, Q(0) = (4, 1) for all weights, and Q(1) = (9, 6) for LEFT and (2.5, 6) for RIGHT.
ONLINE = TableNetwork([[[1, 2], [3, 0]], [[4, 1], [0, 6]]], [[[0, 0], [0, 0]], [[0, 0], [10, 0]]])
# In state 1, Q-(0) = (100, 200), and Q-(1) = (48, 40) for LEFT and (35, 40) for RIGHT.
TARGET = TableNetwork(
    [[[-9, -9], [-9, -9]], [[100, 200], [30, 40]]], [[[0, 0], [0, 0]], [[0, 0], [20, 0]]]
)

SMALL: dict[str, Any] = {
    "steps": 240, "learning_starts": 80, "chunk": 80, "width": 8, "depth": 2, "capacity": 200,
    "batch_size": 8, "target_interval": 40, "agent_args": {"homotopy_steps": 200},
    "oracle": False, "progress": False,
}  # fmt: skip


def loss(step: int, terminated: bool = False) -> Any:
    """Loss and errors of the step above, for both weights."""
    batch = TransitionBatch(
        jnp.asarray([[0], [1]]),
        jnp.asarray([1]),
        jnp.asarray([[1.0, -1.0]]),
        jnp.asarray([terminated]),
        step,
    )
    return Envelope().loss(ONLINE, TARGET, batch, jnp.asarray([[LEFT, RIGHT]]), jnp.asarray(0.5))


def test_targets_take_the_best_of_all_weights_of_the_batch() -> None:
    weights = jnp.asarray([LEFT, RIGHT])
    states = jnp.ones((1, 1, 1), int)
    online, target = (n.q_values(states, weights[None])[0] for n in (ONLINE, TARGET))
    reward, discount = jnp.asarray([1.0, -1.0]), jnp.asarray(0.5)
    targets = Envelope().targets(online, target, reward, discount, weights)
    # LEFT likes its own action 1 best, 8.7. So does RIGHT like that of LEFT: 6.75, against 5.125
    # for its own. Both get (1, -1) + (48, 40) / 2, whatever the target network likes best.
    assert np.allclose(targets, [[25, 19], [25, 19]])
    # Alone, RIGHT gets (1, -1) + (35, 40) / 2.
    own = Envelope().targets(online[1:], target[1:], reward, discount, weights[1:])
    assert np.allclose(own, [[18.5, 19]])


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        # (25, 19) against (3, 0): (22^2 + 19^2) / 2 for both.
        (0, 422.5),
        # 21.7^2 for LEFT and 19.75^2 for RIGHT.
        (10_000, 430.47625),
        (20_000, 430.47625),
        (5_000, 426.488125),
    ],
)
def test_the_loss_moves_from_vectors_to_scalarised_values(step: int, expected: float) -> None:
    value, info = loss(step)
    assert value == pytest.approx(expected)
    assert info.loss == pytest.approx(expected)
    assert np.allclose(info.td_errors, [(21.7 + 19.75) / 2])


def test_a_terminal_step_has_no_future() -> None:
    # (1, -1) against (3, 0).
    value, info = loss(0, terminated=True)
    assert value == pytest.approx((2**2 + 1) / 2)
    assert np.allclose(info.td_errors, [(1.9 + 1.25) / 2])


def test_all_transitions_of_a_batch_have_the_same_random_weights() -> None:
    active = jnp.asarray([[0.2, 0.3, 0.5]])
    history = WeightHistory.start(active[0], 4)
    draw = lambda seed: np.asarray(  # noqa: E731
        Envelope(num_weights=500).training_weights(active, history, jax.random.key(seed), 3)
    )
    drawn = draw(0)
    assert drawn.shape == (3, 500, 3)
    assert (drawn == drawn[:1]).all()
    assert np.allclose(drawn.sum(-1), 1)
    # Uniform on the simplex: each has the mean 1/3 and is below 1/2 with the probability 3/4.
    assert np.abs(drawn[0].mean(0) - 1 / 3).max() < 0.04
    assert np.abs((drawn[0] < 0.5).mean(0) - 0.75).max() < 0.06
    assert not np.isin(draw(1), drawn).any()


def test_weights_may_be_drawn_from_normal_numbers() -> None:
    active = jnp.asarray([[0.2, 0.3, 0.5]])
    history = WeightHistory.start(active[0], 4)
    agent, key = Envelope(num_weights=5, distribution="normal"), jax.random.key(0)
    drawn = agent.training_weights(active, history, key, 3)
    sizes = jax.vmap(lambda k: jnp.abs(jax.random.normal(k, (3,))))(jax.random.split(key, 5))
    assert np.allclose(drawn, sizes / sizes.sum(1, keepdims=True))
    with pytest.raises(InputError, match="unknown distribution of weights 'flat'"):
        Envelope(distribution="flat")


def test_what_depends_on_the_weights_is_learned() -> None:
    q = trained(Envelope(homotopy_steps=8_000), probes.TRADE_OFF, RandomWeights(2))
    assert_values(q[:, 0], TRADE_OFF["left"])
    assert_values(q[:, 1], TRADE_OFF["right"])


@pytest.mark.parametrize("name", ["num_weights", "homotopy_steps"])
def test_bad_arguments(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be a whole number from 1 to .*, not 0"):
        train("dst", "envelope", agent_args={name: 0})


def test_the_preset() -> None:
    assert preset_for("mo:minecart-v0", "envelope") == "envelope"
    config = TrainConfig.for_env("mo:minecart-v0", agent="envelope")
    assert config.env == "mo:minecart-v0"
    assert config == TrainConfig.preset("envelope", env="mo:minecart-v0")
    assert (config.learning_rate, config.update_interval, config.dueling) == (3e-4, 1, False)


def test_the_presets_network_sees_minecart_as_it_is() -> None:
    """MO-Gymnasium says that all entries are between -1 and 1, and most are never negative."""
    learner = build(TrainConfig.for_env("mo:minecart-v0", agent="envelope")).learner
    network = learner.agent.build(learner.spec, learner.architecture, jax.random.key(0))
    seen = jnp.asarray([0.0, 0.5, 0.03, -0.7, 0.7, 0.25, 1.0])
    assert np.array_equal(network.encode(seen[None, None])[0, 0], seen)


def test_the_fused_driver_trains_it_and_resumes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train("dst", "envelope", out=tmp_path / "whole", **SMALL)
    assert not whole.failed
    assert whole.config.learning_rate == TrainConfig.preset("envelope").learning_rate
    stop_after(monkeypatch, [160])
    with pytest.raises(TrainingStopped):
        train("dst", "envelope", out=tmp_path / "stopped", **SMALL)
    resumed = resume(tmp_path / "stopped", progress=False)
    assert same_records(resumed.records, whole.records)
    loaded = Policy.load(tmp_path / "stopped" / "policies" / "seed-0.safetensors")
    seen = np.zeros(loaded.spec.observation_shape, loaded.spec.frame.dtype)
    for weights in (LEFT, RIGHT):
        expected = whole.policies[0].q_values(seen, weights)
        assert np.array_equal(loaded.q_values(seen, weights), expected)


def test_the_host_driver_trains_it() -> None:
    result = train("mo:deep-sea-treasure-v0", Envelope(num_weights=2), num_envs=2, **SMALL)
    assert not result.failed
    assert result.config.learning_rate == TrainConfig.preset("envelope").learning_rate
    assert result.records["loss"][-1] > 0
    policy = result.policies[0]
    seen = np.zeros(policy.spec.observation_shape, policy.spec.frame.dtype)
    assert 0 <= policy.act(seen, LEFT) < policy.spec.num_actions
