"""The optimisers that agents ask for, against steps worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from windvane.agents.core import Agent
from windvane.agents.envelope import Envelope
from windvane.agents.multi_objective import MultiObjectiveDQN
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.learner import make_optimiser


def first_step(agent: Agent, gradient: float, **settings: float) -> float:
    """What the first update adds to a parameter."""
    optimiser = make_optimiser(agent, Hyperparameters(clip_norm=1e3, **settings))
    parameters = jnp.zeros(1)
    updates, _ = optimiser.update(jnp.full(1, gradient), optimiser.init(parameters), parameters)
    return float(updates[0])


@pytest.mark.parametrize(("epsilon", "share"), [(1e-8, 1 / 1.01), (1e-5, 1 / 11), (1e-6, 1 / 2)])
def test_adam_moves_less_where_gradients_are_below_its_epsilon(
    epsilon: float, share: float
) -> None:
    # Corrected for their start, both averages are those of one gradient: g / (|g| + epsilon).
    step = first_step(Envelope(), 1e-6, learning_rate=0.1, adam_epsilon=epsilon)
    assert step == pytest.approx(-0.1 * share, rel=1e-4)


def test_nesterov_momentum_looks_ahead() -> None:
    # The first velocity is g, and the step is g + 0.9 g.
    step = first_step(MultiObjectiveDQN(), 2.0, learning_rate=0.5, momentum=0.9)
    assert step == pytest.approx(-0.5 * (2.0 + 0.9 * 2.0))


def test_gradients_are_clipped_to_their_norm() -> None:
    optimiser = make_optimiser(
        MultiObjectiveDQN(), Hyperparameters(learning_rate=1.0, momentum=0.0, clip_norm=1.0)
    )
    parameters = jnp.zeros(2)
    gradient = jnp.asarray([3.0, 4.0])
    updates, _ = optimiser.update(gradient, optimiser.init(parameters), parameters)
    np.testing.assert_allclose(np.asarray(updates), [-0.6, -0.8], rtol=1e-6)
