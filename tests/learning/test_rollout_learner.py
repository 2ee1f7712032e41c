"""The learner of rollouts: its learning rate falls, its average follows, its actions explore."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.agents.pqn import PQN, Rollout, RolloutStep
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.learner import ravel
from windvane.learning.rollout_learner import RolloutLearner, RolloutLearnerState
from windvane.networks import Architecture
from windvane.spec import EnvSpec, FrameSpec

SPEC = EnvSpec(3, ("one", "other"), FrameSpec((2,), "float32", (0.0, 0.0), (1.0, 1.0)), 1)
STEPS, ENVS = 4, 6


def learner(average_decay: float = 0.999, **agent: float) -> RolloutLearner:
    settings = Hyperparameters(
        gamma=0.9, learning_rate=0.1, clip_norm=1e3, epsilon_start=1.0, epsilon_end=0.0,
        epsilon_steps=100, average_decay=average_decay,
    )  # fmt: skip
    return RolloutLearner(
        SPEC,
        PQN(epochs=1, minibatches=2, **agent),  # type: ignore[arg-type]
        Architecture(width=4, depth=1, dueling=False),
        settings,
        jnp.asarray(4.0),
    )


def rollout(seed: int = 0) -> Rollout:
    keys = iter(jax.random.split(jax.random.key(seed), 8))
    shape = (STEPS, ENVS)
    steps = RolloutStep(
        jax.random.uniform(next(keys), (*shape, 2)),
        jax.random.randint(next(keys), shape, 0, 3),
        jax.random.normal(next(keys), (*shape, 2)),
        jnp.zeros(shape, bool),
        jax.random.bernoulli(next(keys), 0.3, shape),
        jnp.full((*shape, 2), 0.5),
        jax.random.normal(next(keys), (*shape, 2)),
        jax.random.normal(next(keys), (*shape, 2)),
    )
    return Rollout.of(steps, jax.random.normal(next(keys), (ENVS, 2)))


def parameters(network: object) -> np.ndarray:
    return np.asarray(ravel(network)[0])


def learned(one: RolloutLearner, times: int) -> list[RolloutLearnerState]:
    states, learn = [one.init(jax.random.key(0))], eqx.filter_jit(one.learn)
    for number in range(times):
        states.append(learn(states[-1], rollout(number), jnp.asarray(number)))
    return states


def test_values_follow_the_step_or_stand_for_a_truncated_end() -> None:
    keys = jax.random.split(jax.random.key(1), 2)
    values, reached = (jax.random.normal(key, (3, 2, 2)) for key in keys)
    flags = jnp.asarray([[0, 1], [0, 0], [1, 0]], bool)
    last = jnp.full((2, 2), 7.0)
    steps = RolloutStep(
        jnp.zeros((3, 2, 1)), jnp.zeros((3, 2), int), values, ~flags, flags, values, values, reached
    )
    found = Rollout.of(steps, last).next_values
    np.testing.assert_array_equal(found[0], jnp.stack([values[1, 0], reached[0, 1]]))
    np.testing.assert_array_equal(found[1], values[2])
    np.testing.assert_array_equal(found[2], jnp.stack([reached[2, 0], last[1]]))


def test_the_learning_rate_falls_to_its_share() -> None:
    """Adam's first step is as large as the learning rate, and after all updates nearly nothing."""
    first, second, third = learned(learner(learning_rate_end=0.0), 3)[1:]
    moved = np.abs(parameters(second.online) - parameters(first.online)).max()
    assert moved > 0.01
    # Four updates were two rollouts: the rate is 0 from then on.
    np.testing.assert_array_equal(parameters(third.online), parameters(second.online))


def test_the_average_follows_and_is_steadier() -> None:
    states = learned(learner(learning_rate_end=1.0, average_decay=0.999), 12)
    assert int(states[-1].updates) == 24
    newest, average = (
        np.stack([parameters(getattr(state, name)) for state in states[4:]])
        for name in ("online", "average")
    )
    assert np.abs(np.diff(average, axis=0)).mean() < np.abs(np.diff(newest, axis=0)).mean()
    # It has left the random start, though its decay is slow.
    start = parameters(states[0].online)
    assert np.abs(average[-1] - newest[-1]).mean() < np.abs(start - newest[-1]).mean()


def test_without_decay_the_policy_is_the_newest_network() -> None:
    state = learned(learner(average_decay=0.0), 2)[-1]
    np.testing.assert_allclose(parameters(state.average), parameters(state.online), rtol=1e-5)


def test_actions_are_random_and_then_greedy() -> None:
    one = learner()
    state = one.init(jax.random.key(0))
    seen, weights = jnp.full((300, 2), 0.5), jnp.full((300, 2), 0.5)
    first, values = one.act(state, seen, weights, jnp.asarray(0))
    assert set(np.asarray(first).tolist()) == {0, 1, 2}
    last, _ = one.act(state, seen, weights, jnp.asarray(100))
    assert len(set(np.asarray(last).tolist())) == 1
    q = state.online(seen[0], weights[0])
    np.testing.assert_allclose(values[0], q[int(last[0])], rtol=1e-6)


@pytest.mark.parametrize("bad", ["rewards", "next_values"])
def test_what_is_not_finite_fails_the_run_and_changes_nothing(bad: str) -> None:
    one = learner()
    state = one.init(jax.random.key(0))
    spoilt = eqx.tree_at(lambda r: getattr(r, bad), rollout(), jnp.full((STEPS, ENVS, 2), jnp.nan))
    after = one.learn(state, spoilt, jnp.asarray(0))
    assert bool(after.failed)
    np.testing.assert_array_equal(parameters(after.online), parameters(state.online))
    assert np.isfinite(parameters(after.average)).all()
