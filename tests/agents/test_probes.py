"""Agents, trained by the real loop, learn the values of problems known by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents import probes
from tests.training.initial import initial, pick
from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.core import Agent
from windvane.agents.multi_objective import MultiObjectiveDQN
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.learner import Learner
from windvane.learning.state_codec import StateCodec
from windvane.networks import Architecture
from windvane.replay.standard import StandardReplay
from windvane.schedules import FixedWeights, SparseChanges, WeightSchedule
from windvane.training.fused import ChunkSpec, FusedDriver, run_chunk

SETTINGS = Hyperparameters(
    gamma=probes.GAMMA,
    learning_rate=0.005,
    batch_size=32,
    update_interval=2,
    target_interval=25,
    epsilon_end=0.5,
    epsilon_steps=1000,
    weight_history_size=256,
)
CYCLES = 2000

LEFT, RIGHT = [0.8, 0.2], [0.2, 0.8]

VALUES = {
    "ONE_STEP": {0: [[1, 0.5], [0.5, -0.5]]},
    "TWO_STEPS": {0: [[0.5, 0.25], [0.5, 0.25]], 1: [[1, 0.5], [0.5, -0.5]]},
    # 0.5 + 0.5 / 2 + ... = 1, though every third step is cut.
    "CUT": {0: [[1, 0.5], [0.5, 0.25]]},
    # Absolute errors find the median, which for this noise is the mean.
    "NOISE": {0: [[1, 0.5], [0.5, 0]]},
}
"""Q-values of both actions in the states that are met, whatever the weights."""

TRADE_OFF = {
    "left": {0: [[0.5, 0], [0.5, 0]], 1: [[1, 0], [0, 1]]},
    "right": {0: [[0, 0.5], [0, 0.5]], 1: [[1, 0], [0, 1]]},
}


def trained(agent: Agent, env: probes.Probe, schedule: WeightSchedule) -> np.ndarray:
    """Q-values in both states, for both weights, after training."""
    architecture = Architecture(width=32, depth=2)
    learner = Learner(env.spec, agent, StandardReplay(512), StateCodec(env), architecture, SETTINGS)
    driver = FusedDriver(learner, env, schedule)
    runs = initial(driver, jnp.zeros(1, int))
    runs, _ = run_chunk((driver, ChunkSpec(jnp.asarray(0), CYCLES, True)), runs)
    assert not runs.learner.failed.any()
    network = pick(runs.learner.online, 0)
    weights = jnp.broadcast_to(jnp.asarray([LEFT, RIGHT]), (probes.STATES, 2, 2))
    features = network.encode(jnp.eye(probes.STATES)[None])
    return np.asarray(network.q_values(features, weights))


def assert_values(q: np.ndarray, known: dict[int, list[list[float]]]) -> None:
    for state, values in known.items():
        assert np.abs(q[state] - values).max() < 0.05


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_conditioned_network_learns_the_values(name: str) -> None:
    q = trained(ConditionedNetwork(), getattr(probes, name), SparseChanges(2, every=10))
    for number, weights in enumerate((LEFT, RIGHT)):
        assert_values(q[:, number], VALUES[name])
        last = max(VALUES[name])
        assert np.argmax(q[last, number] @ np.asarray(weights)) == 0


def test_a_conditioned_network_learns_what_depends_on_the_weights() -> None:
    q = trained(ConditionedNetwork(), probes.TRADE_OFF, SparseChanges(2, every=10))
    assert_values(q[:, 0], TRADE_OFF["left"])
    assert_values(q[:, 1], TRADE_OFF["right"])
    assert np.argmax(q[1, 0] @ np.asarray(LEFT)) == 0
    assert np.argmax(q[1, 1] @ np.asarray(RIGHT)) == 1


@pytest.mark.parametrize("name", sorted(VALUES))
def test_the_baseline_learns_the_values_for_fixed_weights(name: str) -> None:
    q = trained(MultiObjectiveDQN(), getattr(probes, name), FixedWeights(LEFT))
    assert_values(q[:, 0], VALUES[name])
    assert np.argmax(q[max(VALUES[name]), 0] @ np.asarray(LEFT)) == 0


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_baseline_learns_the_best_for_its_weights(side: str) -> None:
    weights = {"left": LEFT, "right": RIGHT}[side]
    q = trained(MultiObjectiveDQN(), probes.TRADE_OFF, FixedWeights(weights))
    assert_values(q[:, 0], TRADE_OFF[side])
    assert np.argmax(q[1, 0] @ np.asarray(weights)) == ["left", "right"].index(side)
