"""MN's set of policies against a slow and obvious model, and what is copied when weights change."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.policies import Model
from windvane.agents.core import Networks, WeightChange, WeightHistory
from windvane.agents.multi_network import MultiNetwork, admit, best_policy
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError
from windvane.networks import Architecture
from windvane.spec import EnvSpec, FrameSpec

ROOM, MOST = 4, 30


@jax.jit
def step(values: Any, held: Any, value: Any, past: Any, met: Any, kappa: Any, new: Any) -> Any:
    added, place, then = admit(values, held, value, past, met, kappa)
    values = jnp.where(added, values.at[place].set(value), values)
    held = jnp.where(added, then, held)
    return values, held, best_policy(values, held, new)


def sequence(seed: int, changes: int, objectives: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights in eighths and values in quarters: sums are exact, and ties abound."""
    generator = np.random.default_rng(seed)
    weights = generator.multinomial(8, np.ones(objectives) / objectives, changes + 1) / 8
    # Near a curve, so that many are the best for something.
    values = 16 * generator.dirichlet(np.ones(objectives), changes) ** 0.5
    return weights.astype(np.float32), (np.round(values * 4) / 4).astype(np.float32)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    changes=st.integers(1, MOST),
    kappa=st.sampled_from([0.01, 0.25, 1]),
)
def test_the_set_is_the_models(seed: int, changes: int, kappa: float) -> None:
    weights, newcomers = sequence(seed, changes, 3)
    model = Model(ROOM, kappa)
    values, held = jnp.zeros((ROOM, 3)), jnp.zeros(ROOM, bool)
    past = np.zeros((MOST, 3), np.float32)
    for number, value in enumerate(newcomers):
        past[number] = weights[number]
        source = model.change(value, list(past[: number + 1]), weights[number + 1])
        met = np.arange(MOST) <= number
        new = weights[number + 1]
        values, held, place = step(values, held, value, past, met, np.float32(kappa), new)
        assert np.flatnonzero(held).tolist() == model.held()
        for index in model.held():
            assert np.array_equal(values[index], model.places[index])
        assert place == source


def test_values_that_are_no_numbers_are_not_added() -> None:
    nothing = jnp.zeros((ROOM, 2)), jnp.zeros(ROOM, bool)
    past, met = jnp.ones((1, 2)) / 2, jnp.ones(1, bool)
    assert not admit(*nothing, jnp.full(2, jnp.nan), past, met, 0.01).added
    assert admit(*nothing, jnp.full(2, -100.0), past, met, 0.01).added


ENV = DeepSeaTreasure()
LEFT, RIGHT = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])


def constant(network: Any, value: list[float]) -> Any:
    """A network whose values are the same everywhere, and whose other parameters tell it apart."""
    network = jax.tree.map(lambda leaf: jnp.full(leaf.shape, value[0] / 64), network)
    last = eqx.tree_at(
        lambda d: (d.kernel, d.bias), network.head.value, (jnp.zeros((8, 2)), jnp.asarray(value))
    )
    return eqx.tree_at(lambda n: n.head.value, network, last)


def same(one: Any, other: Any) -> bool:
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@eqx.filter_jit
def after(agent: MultiNetwork, networks: Networks, change: WeightChange, key: Any) -> Networks:
    """Two runs side by side."""

    def one(networks: Networks, change: WeightChange, key: Any) -> Networks:
        return agent.on_change(networks, change, ENV.observe, key)

    return jax.vmap(one)(networks, change, key)


def pair(first: Any, second: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.stack([a, b]), first, second)


@pytest.mark.parametrize("reuse", ["full", "partial"])
def test_a_policy_is_kept_and_taken_up_again(reuse: Any) -> None:
    agent = MultiNetwork(reuse=reuse, max_policies=3)
    key = jax.random.key(0)
    shape = eqx.filter_eval_shape(lambda: Architecture(8, 1).build(ENV.spec, 2, False, key))
    rich, quick, other = (constant(shape, v) for v in ([5.0, 1.0], [2.0, 4.0], [7.0, 7.0]))
    start = ENV.reset(key)
    history = WeightHistory.start(LEFT, 8)
    keys = jax.random.split(key)
    empty = Networks(rich, other, agent.init_agent_state(rich))
    yes, no = (
        WeightChange(jnp.asarray(changed), LEFT, RIGHT, history, start) for changed in (True, False)
    )
    then = after(agent, pair(empty, empty), pair(yes, no), keys)
    # The run whose weights did not change is as it was.
    assert same(jax.tree.map(lambda leaf: leaf[1], then), empty)
    online, target, policies = jax.tree.map(lambda leaf: leaf[0], then)
    assert policies.mask.tolist() == [True, False, False]
    assert np.allclose(policies.values[0], [5, 1])
    assert same(jax.tree.map(lambda leaf: leaf[0], policies.networks), rich)
    assert same(online, target)
    # Another policy is trained for the new weights, and back come the old ones.
    history = history.add(RIGHT, jnp.asarray(True), jnp.zeros(()))
    back = WeightChange(jnp.asarray(True), RIGHT, LEFT, history, start)
    networks = Networks(quick, other, policies)
    then = after(agent, pair(networks, networks), pair(back, back), keys)
    assert then.agent_state.mask.tolist() == [[True, True, False]] * 2
    assert np.allclose(then.agent_state.values[0, :2], [[5, 1], [2, 4]])
    assert same(then.online, then.target)
    online = jax.tree.map(lambda leaf: leaf[0], then.online)
    last = lambda network: (network.head.value, network.head.advantage)  # noqa: E731
    if reuse == "full":
        assert same(online, rich)
    else:
        assert same(eqx.tree_at(last, online, last(rich)), rich)
        for layer, old in zip(last(online), last(rich), strict=True):
            assert not np.array_equal(layer.kernel, old.kernel)
            assert 0 < np.abs(layer.kernel).max() < np.sqrt(6 / sum(layer.kernel.shape))
            assert not np.asarray(layer.bias).any()
        assert not np.array_equal(
            then.online.head.value.kernel[0], then.online.head.value.kernel[1]
        )


@pytest.mark.parametrize("wrong", [{"reuse": "half"}, {"max_policies": 0}, {"kappa": -0.1}])
def test_bad_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(
        InputError if "reuse" not in wrong else Exception, match=r"half|max_policies|kappa"
    ):
        MultiNetwork(**wrong)


@pytest.mark.parametrize("dueling", [True, False])
def test_a_saved_set_has_values_of_every_objective(dueling: bool) -> None:
    spec = EnvSpec(4, ("one", "other"), FrameSpec((3,), "float32", (0.0,) * 3, (1.0,) * 3), 1)
    architecture = Architecture(width=4, depth=1, dueling=dueling)
    network = architecture.build(spec, 2, False, jax.random.key(0))
    template = MultiNetwork().policy_template(network, {"policies": 3})
    assert template.values.shape == (3, 2)
