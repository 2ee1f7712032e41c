"""The fused loop: chunks and neighbours change nothing, seeds differ, and runs fail alone."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from tests.agents.policies import Model
from tests.training.runs import initial, pick
from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.multi_network import MultiNetwork
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.networks import Architecture
from windvane.replay.standard import StandardReplay
from windvane.training.loop import RunState, Step, Trainer, run_chunk
from windvane.training.settings import Hyperparameters
from windvane.weights import SparseChanges

SEEDS = 10
CYCLES = 75
"""Of four steps each."""

TRAINER = Trainer(
    DeepSeaTreasure(time_limit=20),
    ConditionedNetwork(),
    StandardReplay(128),
    SparseChanges(2, every=25),
    Architecture(width=16, depth=1),
    Hyperparameters(
        batch_size=8, epsilon_steps=200, target_interval=12, reward_scale=0.01, encountered=8
    ),
)


def played(trainer: Trainer, runs: RunState, cycles: int, times: int = 1) -> tuple[RunState, Step]:
    """The runs after some chunks, and what was told of all their steps."""
    told, steps = [], cycles * trainer.settings.update_interval
    for number in range(times):
        runs, part = run_chunk((trainer, jnp.asarray(number * steps), cycles, True), runs)
        told.append(jax.tree.map(np.asarray, part))
    return runs, jax.tree.map(lambda *parts: np.concatenate(parts), *told)


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
def ten() -> tuple[RunState, Step]:
    return played(TRAINER, initial(TRAINER, jnp.arange(SEEDS)), CYCLES)


def test_where_chunks_begin_and_end_changes_nothing(ten: tuple[RunState, Step]) -> None:
    assert same(played(TRAINER, initial(TRAINER, jnp.arange(SEEDS)), CYCLES // 3, 3), ten)


def test_something_was_learned_and_told(ten: tuple[RunState, Step]) -> None:
    runs, told = ten
    assert not runs.failed.any()
    assert told.ended.shape == (300, SEEDS)
    assert 0 < told.ended.mean() < 0.5
    assert (told.length[told.ended] <= 20).all()
    assert np.array_equal(runs.episodes, told.ended.sum(0))
    # Losses are those of the latest gradient step.
    assert not told.loss[:4].any()
    assert (told.loss[4:] > 0).all()
    assert np.allclose(
        told.epsilon[:, 0], 1 - 0.95 * np.minimum(np.arange(300) / 200, 1), atol=1e-6
    )


def test_returns_are_discounted_and_scaled(ten: tuple[RunState, Step]) -> None:
    """Time costs -1 a step, so an episode's length says what its second return must be."""
    _, told = ten
    lengths, returns = told.length[told.ended], told.returns[told.ended]
    assert np.allclose(returns[:, 1], -0.01 * (1 - 0.98**lengths) / (1 - 0.98), rtol=1e-4)


def test_weights_change_only_between_episodes_and_are_encountered(
    ten: tuple[RunState, Step],
) -> None:
    runs, told = ten
    changed = (told.weights[1:] != told.weights[:-1]).any(-1)
    assert not (changed & ~told.ended[:-1]).any()
    final = (told.weights[-1] != np.asarray(runs.active)).any(-1)
    met = changed.sum(0) + final + 1
    assert np.array_equal(runs.encountered.number, met)
    assert (met > 5).all()


def test_ten_seeds_are_ten_runs(ten: tuple[RunState, Step]) -> None:
    runs, told = ten
    # Biases begin alike; everything that is drawn differs from the start.
    start = initial(TRAINER, jnp.arange(SEEDS))
    for parameters in (start.online.head.features, runs.online.head.features):
        assert len(np.unique(np.asarray(parameters).reshape(SEEDS, -1), axis=0)) == SEEDS
    assert len(np.unique(np.asarray(runs.online.head.bias), axis=0)) == SEEDS
    assert len(np.unique(told.weights[0], axis=0)) == SEEDS
    assert len(np.unique(told.ended, axis=1).T) == SEEDS


def test_every_step_draws_anew(ten: tuple[RunState, Step]) -> None:
    """Many steps from one state: actions, batches and the weights to train on all vary."""
    run = pick(ten[0], 0)

    @eqx.filter_jit
    def at(steps: Any) -> Any:
        stepped, _ = jax.vmap(lambda step: TRAINER.step(run, step, TRAINER.draw(run, step)))(steps)
        learned = jax.vmap(lambda step: TRAINER.learn(run, step))(steps)
        return stepped.episode.state.position, learned.loss

    # Early steps are for exploring.
    positions, losses = at(jnp.arange(20))
    assert len(np.unique(positions, axis=0)) > 1
    assert len(np.unique(losses)) == 20


def test_exploring_does_anything_else_the_best(ten: tuple[RunState, Step]) -> None:
    run = pick(ten[0], 0)
    middle = jnp.asarray([5, 9], jnp.int32)
    run = eqx.tree_at(lambda r: r.episode.state.position, run, middle)
    best = TRAINER.agent.act(run.online, TRAINER.env.observe(run.episode.state), run.active)
    step = jnp.asarray(100)
    chance, epsilon = TRAINER.draw(run, step), TRAINER.epsilon(step)

    @jax.jit
    def moved(exploring: Any, anything: Any) -> Any:
        drawn = eqx.tree_at(lambda c: (c.exploring, c.anything), chance, (exploring, anything))
        return TRAINER.step(run, step, drawn)[0].episode.state.position

    def expected(action: Any) -> Any:
        return TRAINER.env.step(run.episode.state, action, run.key)[0].position

    for action in range(4):
        done = jnp.asarray(action)
        assert np.array_equal(moved(epsilon - 0.01, done), expected(done))
        assert np.array_equal(moved(epsilon + 0.01, done), expected(best))


def test_what_is_drawn_is_uniform(ten: tuple[RunState, Step]) -> None:
    run = pick(ten[0], 0)
    drawn = jax.jit(jax.vmap(lambda step: TRAINER.draw(run, step)))(jnp.arange(4000))
    # Four actions, and quarters of the two numbers: all 64 combinations are as likely.
    quarters = [np.asarray(x * 4).astype(int) for x in (drawn.exploring, drawn.encounter)]
    cells = np.asarray(drawn.anything) + 4 * quarters[0] + 16 * quarters[1]
    assert chisquare(np.bincount(cells, minlength=64)).pvalue > 1e-3


def test_the_target_is_copied_every_so_many_gradient_steps() -> None:
    runs = initial(TRAINER, jnp.arange(SEEDS))
    held, copies = jax.tree.map(np.asarray, runs.target), []
    for chunk in range(4):
        runs, _ = run_chunk((TRAINER, jnp.asarray(24 * chunk), 6, True), runs)
        copies.append(not same(runs.target, held))
        assert same(runs.target, runs.online if copies[-1] else held)
        held = jax.tree.map(np.asarray, runs.target)
    # Every 12 gradient steps.
    assert copies == [False, True, False, True]


def test_neighbours_change_nothing(ten: tuple[RunState, Step]) -> None:
    """Alone, sums may be rounded in another order: draws are the same, numbers nearly."""
    runs, told = ten
    first = jax.tree.map(lambda leaf: leaf[7:8], initial(TRAINER, jnp.arange(SEEDS)))
    alone, told_alone = played(TRAINER, first, CYCLES)
    beside = jax.tree.map(lambda leaf: leaf[:, 7:8], told)
    assert np.array_equal(told_alone.weights, beside.weights)
    assert np.array_equal(told_alone.ended, beside.ended)
    for one, other in zip(arrays(alone.online), arrays(runs.online), strict=True):
        assert np.allclose(one[0], other[7], atol=1e-3)
    assert np.allclose(told_alone.loss, beside.loss, atol=1e-3)


def test_a_run_that_comes_to_nonsense_fails_alone() -> None:
    runs = initial(TRAINER, jnp.arange(SEEDS))
    bias = runs.online.head.value.bias.at[3].set(jnp.nan)
    poisoned = eqx.tree_at(lambda r: r.online.head.value.bias, runs, bias)
    before = pick(jax.tree.map(np.asarray, eqx.filter(poisoned.online, eqx.is_array)), 3)
    ended, told = played(TRAINER, poisoned, CYCLES // 3)
    healthy, told_healthy = played(TRAINER, initial(TRAINER, jnp.arange(SEEDS)), CYCLES // 3)
    assert np.flatnonzero(ended.failed).tolist() == [3]
    assert same(pick(ended.online, 3), before)
    assert np.isnan(told.loss[4:, 3]).all()
    rest = np.arange(SEEDS) != 3
    for leaf, unharmed in zip(arrays(ended), arrays(healthy), strict=True):
        assert np.array_equal(leaf[rest], unharmed[rest])
    assert np.array_equal(told.loss[:, rest], told_healthy.loss[:, rest])


def test_an_update_without_bounds_is_not_made() -> None:
    """The loss is still a number, and yet the gradient's norm is none."""
    runs = initial(TRAINER, jnp.arange(SEEDS))
    kernel = runs.online.head.value.kernel.at[1].multiply(1e25)
    runs = eqx.tree_at(lambda r: r.online.head.value.kernel, runs, kernel)
    before = jax.tree.map(np.asarray, pick((runs.online, runs.optimiser), 1))
    ended, _ = played(TRAINER, runs, 6)
    assert np.flatnonzero(ended.failed).tolist() == [1]
    assert np.isfinite(ended.loss).all()
    assert ended.loss[1] > 1e20
    assert same(pick((ended.online, ended.optimiser), 1), before)


def noisy(network: Any, generator: np.random.Generator) -> Any:
    """As if something had been learned."""

    def add(leaf: Any) -> Any:
        return leaf + generator.normal(scale=0.1, size=leaf.shape).astype(np.float32)

    return jax.tree.map(add, network)


def test_multi_network_in_the_loop() -> None:
    """Step by step, whenever weights change, the set and the network to go on with are right."""
    trainer = eqx.tree_at(lambda t: t.agent, TRAINER, MultiNetwork(room=3))
    generator = np.random.default_rng(0)
    origin = trainer.env.observe(trainer.env.reset(jax.random.key(0)))

    @jax.jit
    def step(runs: RunState, number: jax.Array) -> RunState:
        draw_and_step = lambda run: trainer.step(run, number, trainer.draw(run, number))  # noqa: E731
        return jax.vmap(draw_and_step)(runs)[0]

    judge = jax.jit(jax.vmap(lambda network: network(origin, jnp.ones(2) / 2)))
    runs, changes = initial(trainer, jnp.arange(2)), 0
    models = [Model(3, 0.01), Model(3, 0.01)]
    for number in range(200):
        before = eqx.tree_at(lambda r: r.online, runs, noisy(runs.online, generator))
        runs = step(before, jnp.asarray(number))
        changed = np.asarray((before.active != runs.active).any(-1))
        was, now = ((r.online, r.target, r.memory) for r in (before, runs))
        for one, other in zip(arrays(was), arrays(now), strict=True):
            assert np.array_equal(one[~changed], other[~changed])
        q = np.asarray(judge(before.online)) if changed.any() else np.zeros(0)
        for index in np.flatnonzero(changed):
            old, new, model = pick(before, index), pick(runs, index), models[index]
            changes += 1
            value = q[index, np.argmax(q[index] @ np.asarray(old.active))]
            past = np.asarray(old.encountered.vectors)[: int(old.encountered.number)]
            source = model.change(value, list(past), np.asarray(new.active))
            assert np.flatnonzero(new.memory.held).tolist() == model.held()
            for place in model.held():
                assert np.allclose(new.memory.values[place], model.places[place], atol=1e-5)
            assert same(new.online, pick(new.memory.networks, source))
            assert same(new.target, new.online)
    assert changes > 5


def test_a_setting_may_be_an_array() -> None:
    """As for a sweep in one program: twice the rate is twice the step."""

    def moved(rate: jax.Array) -> Any:
        trainer = eqx.tree_at(lambda t: t.settings.learning_rate, TRAINER, rate)
        after, _ = run_chunk((trainer, jnp.asarray(24), 1, True), initial(TRAINER, jnp.arange(1)))
        before = initial(TRAINER, jnp.arange(1))
        return after.online.head.value.kernel - before.online.head.value.kernel

    one, two = moved(jnp.asarray(0.01)), moved(jnp.asarray(0.02))
    assert np.abs(one).max() > 0
    np.testing.assert_allclose(two, 2 * one, rtol=1e-3, atol=1e-7)
