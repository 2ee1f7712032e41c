"""The fused driver: chunks and neighbours change nothing, seeds differ, and runs fail alone."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from tests.agents.policies import Model
from tests.training.initial import initial, pick
from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.multi_network import MultiNetwork
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.learner import Learner
from windvane.learning.state_codec import StateCodec
from windvane.networks import Architecture
from windvane.replay.standard import StandardReplay
from windvane.schedules import SparseChanges
from windvane.training.fused import ChunkSpec, FusedDriver, RunState, StepInfo, run_chunk

SEEDS = 10
CYCLES = 75
"""Of four steps each."""

ENV = DeepSeaTreasure(time_limit=20)
LEARNER = Learner(
    ENV.spec,
    ConditionedNetwork(),
    StandardReplay(128),
    StateCodec(ENV),
    Architecture(width=16, depth=1),
    Hyperparameters(
        batch_size=8,
        epsilon_steps=200,
        target_interval=12,
        reward_scale=0.01,
        weight_history_size=8,
    ),
)
DRIVER = FusedDriver(LEARNER, ENV, SparseChanges(2, every=25))


def chunk(driver: FusedDriver, start: int, cycles: int, runs: RunState) -> tuple[Any, Any]:
    return run_chunk((driver, ChunkSpec(jnp.asarray(start), cycles, True)), runs)


def played(
    driver: FusedDriver, runs: RunState, cycles: int, times: int = 1
) -> tuple[RunState, StepInfo]:
    """The runs after some chunks, and the infos of all their steps."""
    infos, steps = [], cycles * driver.learner.hyperparameters.update_interval
    for number in range(times):
        runs, part = chunk(driver, number * steps, cycles, runs)
        infos.append(jax.tree.map(np.asarray, part))
    return runs, jax.tree.map(lambda *parts: np.concatenate(parts), *infos)


def arrays(tree: Any) -> list[np.ndarray]:
    """All numbers of a tree; keys as theirs."""
    return [
        np.asarray(
            jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        )
        for leaf in jax.tree.leaves(tree)
    ]


def same(one: Any, other: Any) -> bool:
    pairs = zip(arrays(one), arrays(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@pytest.fixture(scope="module")
def ten() -> tuple[RunState, StepInfo]:
    return played(DRIVER, initial(DRIVER, jnp.arange(SEEDS)), CYCLES)


def test_where_chunks_begin_and_end_changes_nothing(ten: tuple[RunState, StepInfo]) -> None:
    assert same(played(DRIVER, initial(DRIVER, jnp.arange(SEEDS)), CYCLES // 3, 3), ten)


def test_something_was_learned_and_reported(ten: tuple[RunState, StepInfo]) -> None:
    runs, infos = ten
    assert not runs.learner.failed.any()
    assert infos.ended.shape == (300, SEEDS)
    assert 0 < infos.ended.mean() < 0.5
    assert (infos.length[infos.ended] <= 20).all()
    assert np.array_equal(runs.episodes, infos.ended.sum(0))
    # Losses are those of the latest gradient step.
    assert not infos.loss[:4].any()
    assert (infos.loss[4:] > 0).all()
    assert np.allclose(
        infos.epsilon[:, 0], 1 - 0.95 * np.minimum(np.arange(300) / 200, 1), atol=1e-6
    )


def test_returns_are_discounted_and_scaled(ten: tuple[RunState, StepInfo]) -> None:
    """Time costs -1 a step, so an episode's length says what its second return must be."""
    _, infos = ten
    lengths, returns = infos.length[infos.ended], infos.returns[infos.ended]
    assert np.allclose(returns[:, 1], -0.01 * (1 - 0.98**lengths) / (1 - 0.98), rtol=1e-4)


def test_weights_change_only_between_episodes_and_enter_the_history(
    ten: tuple[RunState, StepInfo],
) -> None:
    runs, infos = ten
    changed = (infos.weights[1:] != infos.weights[:-1]).any(-1)
    assert not (changed & ~infos.ended[:-1]).any()
    final = (infos.weights[-1] != np.asarray(runs.learner.active_weights[:, 0])).any(-1)
    met = changed.sum(0) + final + 1
    assert np.array_equal(runs.learner.history.size, met)
    assert (met > 5).all()


def test_ten_seeds_are_ten_runs(ten: tuple[RunState, StepInfo]) -> None:
    runs, infos = ten
    # Biases begin alike; everything that is drawn differs from the start.
    start = initial(DRIVER, jnp.arange(SEEDS))
    for parameters in (
        start.learner.online.head.features,
        runs.learner.online.head.features,
    ):
        assert len(np.unique(np.asarray(parameters).reshape(SEEDS, -1), axis=0)) == SEEDS
    assert len(np.unique(np.asarray(runs.learner.online.head.bias), axis=0)) == SEEDS
    assert len(np.unique(infos.weights[0], axis=0)) == SEEDS
    assert len(np.unique(infos.ended, axis=1).T) == SEEDS


def test_every_step_draws_anew(ten: tuple[RunState, StepInfo]) -> None:
    """Many steps from one state: actions, batches and the weights to train on all vary."""
    run = pick(ten[0], 0)

    @eqx.filter_jit
    def at(steps: Any) -> Any:
        draws = jax.vmap(lambda step: LEARNER.sample_draws(run.learner.key, step))(steps)
        stepped, _ = jax.vmap(lambda step, draw: DRIVER.step(run, step, draw))(steps, draws)
        learned = jax.vmap(lambda step: LEARNER.learn(run.learner, step))(steps)
        return stepped.episode.state.position, learned.loss

    # Early steps are for exploring.
    positions, losses = at(jnp.arange(20))
    assert len(np.unique(positions, axis=0)) > 1
    assert len(np.unique(losses)) == 20


def test_exploring_does_anything_else_the_best(ten: tuple[RunState, StepInfo]) -> None:
    run = pick(ten[0], 0)
    middle = jnp.asarray([5, 9], jnp.int32)
    run = eqx.tree_at(lambda r: r.episode.state.position, run, middle)
    state = run.learner
    best = LEARNER.agent.act(state.online, ENV.observe(run.episode.state), state.active_weights[0])
    step = jnp.asarray(100)
    draws, epsilon = LEARNER.sample_draws(state.key, step), LEARNER.epsilon(step)

    @jax.jit
    def moved(exploring: Any, anything: Any) -> Any:
        drawn = eqx.tree_at(
            lambda d: (d.epsilon_draw, d.random_action), draws, (exploring, anything)
        )
        return DRIVER.step(run, step, drawn)[0].episode.state.position

    def expected(action: Any) -> Any:
        return ENV.step(run.episode.state, action, state.key)[0].position

    for action in range(4):
        done = jnp.asarray(action)
        assert np.array_equal(moved(epsilon - 0.01, done), expected(done))
        assert np.array_equal(moved(epsilon + 0.01, done), expected(best))


def test_what_is_drawn_is_uniform(ten: tuple[RunState, StepInfo]) -> None:
    run = pick(ten[0], 0)
    drawn = jax.jit(jax.vmap(lambda step: LEARNER.sample_draws(run.learner.key, step)))(
        jnp.arange(4000)
    )
    # Four actions, and quarters of the two numbers: all 64 combinations are as likely.
    quarters = [np.asarray(x * 4).astype(int) for x in (drawn.epsilon_draw, drawn.reservoir_draw)]
    cells = np.asarray(drawn.random_action) + 4 * quarters[0] + 16 * quarters[1]
    assert chisquare(np.bincount(cells, minlength=64)).pvalue > 1e-3


def test_the_target_is_copied_every_so_many_gradient_steps() -> None:
    runs = initial(DRIVER, jnp.arange(SEEDS))
    held, copies = jax.tree.map(np.asarray, runs.learner.target), []
    for number in range(4):
        runs, _ = chunk(DRIVER, 24 * number, 6, runs)
        state = runs.learner
        copies.append(not same(state.target, held))
        assert same(state.target, state.online if copies[-1] else held)
        held = jax.tree.map(np.asarray, state.target)
    # Every 12 gradient steps.
    assert copies == [False, True, False, True]


def test_neighbours_change_nothing(ten: tuple[RunState, StepInfo]) -> None:
    """Alone, sums may be rounded in another order: draws are the same, numbers nearly."""
    runs, infos = ten
    first = jax.tree.map(lambda leaf: leaf[7:8], initial(DRIVER, jnp.arange(SEEDS)))
    alone, infos_alone = played(DRIVER, first, CYCLES)
    beside = jax.tree.map(lambda leaf: leaf[:, 7:8], infos)
    assert np.array_equal(infos_alone.weights, beside.weights)
    assert np.array_equal(infos_alone.ended, beside.ended)
    for one, other in zip(arrays(alone.learner.online), arrays(runs.learner.online), strict=True):
        assert np.allclose(one[0], other[7], atol=1e-3)
    assert np.allclose(infos_alone.loss, beside.loss, atol=1e-3)


def test_a_run_that_comes_to_nonsense_fails_alone() -> None:
    runs = initial(DRIVER, jnp.arange(SEEDS))
    bias = runs.learner.online.head.value.bias.at[3].set(jnp.nan)
    poisoned = eqx.tree_at(lambda r: r.learner.online.head.value.bias, runs, bias)
    before = pick(jax.tree.map(np.asarray, eqx.filter(poisoned.learner.online, eqx.is_array)), 3)
    ended, infos = played(DRIVER, poisoned, CYCLES // 3)
    healthy, infos_healthy = played(DRIVER, initial(DRIVER, jnp.arange(SEEDS)), CYCLES // 3)
    assert np.flatnonzero(ended.learner.failed).tolist() == [3]
    assert same(pick(ended.learner.online, 3), before)
    assert np.isnan(infos.loss[4:, 3]).all()
    rest = np.arange(SEEDS) != 3
    for leaf, unharmed in zip(arrays(ended), arrays(healthy), strict=True):
        assert np.array_equal(leaf[rest], unharmed[rest])
    assert np.array_equal(infos.loss[:, rest], infos_healthy.loss[:, rest])


def test_an_update_without_bounds_is_not_made() -> None:
    """The loss is still a number, and yet the gradient's norm is none."""
    runs = initial(DRIVER, jnp.arange(SEEDS))
    kernel = runs.learner.online.head.value.kernel.at[1].multiply(1e25)
    runs = eqx.tree_at(lambda r: r.learner.online.head.value.kernel, runs, kernel)
    before = jax.tree.map(np.asarray, pick((runs.learner.online, runs.learner.optimiser), 1))
    ended, _ = played(DRIVER, runs, 6)
    assert np.flatnonzero(ended.learner.failed).tolist() == [1]
    assert np.isfinite(ended.learner.loss).all()
    assert ended.learner.loss[1] > 1e20
    assert same(pick((ended.learner.online, ended.learner.optimiser), 1), before)


def noisy(network: Any, generator: np.random.Generator) -> Any:
    """As if something had been learned."""

    def add(leaf: Any) -> Any:
        return leaf + generator.normal(scale=0.1, size=leaf.shape).astype(np.float32)

    return jax.tree.map(add, network)


def test_multi_network_in_the_driver() -> None:
    """Step by step, whenever weights change, the set and the network to go on with are right."""
    driver = eqx.tree_at(lambda d: d.learner.agent, DRIVER, MultiNetwork(max_policies=3))
    generator = np.random.default_rng(0)
    origin = ENV.observe(ENV.reset(jax.random.key(0)))

    @jax.jit
    def step(runs: RunState, number: jax.Array) -> RunState:
        def one(run: RunState) -> RunState:
            draws = driver.learner.sample_draws(run.learner.key, number)
            return driver.step(run, number, draws)[0]

        return jax.vmap(one)(runs)

    q_values = jax.jit(jax.vmap(lambda network: network(origin, jnp.ones(2) / 2)))
    runs, changes = initial(driver, jnp.arange(2)), 0
    models = [Model(3, 0.01), Model(3, 0.01)]
    for number in range(200):
        online = noisy(runs.learner.online, generator)
        earlier = eqx.tree_at(lambda r: r.learner.online, runs, online)
        runs = step(earlier, jnp.asarray(number))
        before, after = earlier.learner, runs.learner
        changed = np.asarray((before.active_weights != after.active_weights).any((1, 2)))
        for one, other in zip(arrays(before.networks), arrays(after.networks), strict=True):
            assert np.array_equal(one[~changed], other[~changed])
        q = np.asarray(q_values(before.online)) if changed.any() else np.zeros(0)
        for index in np.flatnonzero(changed):
            old, new, model = pick(before, index), pick(after, index), models[index]
            changes += 1
            value = q[index, np.argmax(q[index] @ np.asarray(old.active_weights[0]))]
            past = np.asarray(old.history.vectors)[: int(old.history.size)]
            source = model.change(value, list(past), np.asarray(new.active_weights[0]))
            policies = new.agent_state
            assert np.flatnonzero(policies.mask).tolist() == model.held()
            for place in model.held():
                assert np.allclose(policies.values[place], model.places[place], atol=1e-5)
            assert same(new.online, pick(policies.networks, source))
            assert same(new.target, new.online)
    assert changes > 5


def test_a_hyperparameter_may_be_an_array() -> None:
    """As for a sweep in one program: twice the rate is twice the step."""

    def moved(rate: jax.Array) -> Any:
        driver = eqx.tree_at(lambda d: d.learner.hyperparameters.learning_rate, DRIVER, rate)
        after, _ = chunk(driver, 24, 1, initial(DRIVER, jnp.arange(1)))
        before = initial(DRIVER, jnp.arange(1))
        return after.learner.online.head.value.kernel - before.learner.online.head.value.kernel

    one, two = moved(jnp.asarray(0.01)), moved(jnp.asarray(0.02))
    assert np.abs(one).max() > 0
    np.testing.assert_allclose(two, 2 * one, rtol=1e-3, atol=1e-7)
