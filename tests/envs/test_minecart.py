"""Minecart: bad instances, files, random instances; pure under jit, vmap and scan."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windvane import oracle
from windvane.envs.minecart import ACCELERATE, BRAKE, MINE, Minecart, MinecartState, Pose
from windvane.envs.minecart_config import PAPER, Mine, MinecartConfig
from windvane.errors import InputError

KEY = jax.random.key(0)
PAIR = ((0.1, 0.05), (0.2, 0.05))
MINE_ENTRY = {"x": 0.5, "y": 0.5, "distributions": [[0.1, 0.05]]}


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: MinecartConfig((Mine(1.2, 0.5, PAIR),)), "outside the map: x is 1.2"),
        (lambda: MinecartConfig((Mine(0.5, -0.1, PAIR),)), "outside the map: y is -0.1"),
        (lambda: MinecartConfig((Mine(0.5, float("nan"), PAIR),)), "outside the map: y is nan"),
        (lambda: MinecartConfig((Mine(0.5, 0.5, PAIR),), capacity=-1), "above 0, not -1"),
        (lambda: MinecartConfig(()), "at least one mine"),
        (
            lambda: MinecartConfig((Mine(0.5, 0.5, PAIR), Mine(0.6, 0.5, PAIR[:1]))),
            "mine 1 has distributions for 1 ores and mine 0 for 2",
        ),
        (lambda: MinecartConfig((Mine(0.5, 0.5, ((0.1, -0.5),)),)), "deviation of -0.5"),
        (lambda: MinecartConfig((Mine(0.5, 0.5, ((float("inf"), 0.5),)),)), "ore mean of inf"),
        (lambda: MinecartConfig.from_dict({"mines": [{"x": 0}]}), "mine 0 .* lacks 'y'"),
        (lambda: MinecartConfig.from_dict([]), 'list of "mines"'),
        (
            lambda: MinecartConfig.from_dict({"mines": [{"x": 0, "y": 1, "distributions": [[1]]}]}),
            "pairs, not",
        ),
        (lambda: MinecartConfig.from_dict({"mines": ["x y distributions"]}), "mine 0 .* an object"),
        (lambda: MinecartConfig.from_dict({"mines": [MINE_ENTRY], "ore_colors": 3}), "not 3"),
        (lambda: MinecartConfig.from_dict({"mines": [MINE_ENTRY], "ore_colors": ["red"]}), "red"),
        (lambda: MinecartConfig(PAPER.mines, ore_colours=()), r"ore colours .* not \(\)"),
        (lambda: MinecartConfig(PAPER.mines, ore_colours=((0, 0, 256),)), "256"),
        (lambda: MinecartConfig(PAPER.mines, capacity=10**400), "capacity must be a number"),
        (lambda: MinecartConfig((1, 2)), r"Mine objects, not \(1, 2\)"),  # type: ignore[arg-type]
        (lambda: MinecartConfig(3), "Mine objects, not 3"),  # type: ignore[arg-type]
        (lambda: Mine(0.5, 0.5, (0.1, 0.2)), "pairs, not"),  # type: ignore[arg-type]
        (lambda: Mine(0.5, 0.5, ()), "pairs, not"),
        (lambda: Mine("a", 0.5, PAIR), "outside the map: x is 'a'"),  # type: ignore[arg-type]
        (lambda: Minecart(time_limit=2**31), "time_limit must be .* from 1 to 2147483647"),
        (lambda: MinecartConfig.random(KEY, num_mines=0), "number of mines must be"),
        (lambda: Minecart(frame_skip=0), "frame_skip must be"),
        (lambda: Minecart(observation="radar"), "unknown observation 'radar'"),
    ],
)
def test_bad_input_is_one_clear_sentence(build, sentence: str, monkeypatch: pytest.MonkeyPatch):
    # Off, as for users: the tests' own check of types would speak before ours.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match=sentence) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path: Path):
    with pytest.raises(InputError, match=r"cannot read .*nowhere.json"):
        MinecartConfig.from_json(tmp_path / "nowhere.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        MinecartConfig.from_json(broken)


@pytest.mark.parametrize("seed", range(3))
def test_json_round_trip(tmp_path: Path, seed: int):
    config = MinecartConfig.random(jax.random.key(seed), num_mines=4, num_ores=3, capacity=2.0)
    path = tmp_path / "mines.json"
    config.to_json(path)
    loaded = MinecartConfig.from_json(path)
    assert loaded.mines == config.mines
    assert loaded.capacity == config.capacity
    assert np.array_equal(loaded.colours(), config.colours())
    assert json.loads(path.read_text())["ore_cnt"] == 3


def test_numbers_of_numpy_are_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    half, ore = np.float32(0.5), ((np.float64(0.25), np.float32(0)),)
    config = MinecartConfig((Mine(half, half, ore),), capacity=np.int64(2))  # type: ignore[arg-type]
    config.to_json(tmp_path / "mines.json")
    assert MinecartConfig.from_json(tmp_path / "mines.json") == MinecartConfig(
        (Mine(0.5, 0.5, ((0.25, 0.0),)),), capacity=2.0, ore_colours=config.ore_colours[:1]
    )


@pytest.mark.parametrize("capacity", [1.5, 3e-9, 123456.7])
def test_an_environments_config_is_the_one_it_was_built_from(capacity: float):
    config = MinecartConfig.random(KEY, capacity=capacity)
    kept = Minecart(config).config
    assert kept.mines == config.mines
    assert kept.capacity == capacity


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_papers_instance_is_known_to_the_oracle(deterministic: bool):
    assert oracle.shipped_path(Minecart(deterministic=deterministic), 0.98).exists()


def test_random_instances_are_reproducible_and_differ():
    configs = [MinecartConfig.random(jax.random.key(seed)) for seed in (3, 3, 4)]
    assert configs[0] == configs[1]
    assert configs[0] != configs[2]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), actions=st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_capacity_is_never_exceeded(seed: int, actions: list[int]):
    padded = jnp.asarray((actions * 64)[:64], jnp.int32)
    contents = _contents(jax.random.key(seed), padded)
    totals = np.asarray(contents).sum(-1)
    assert (totals <= 1.5 * (1 + 1e-6)).all()
    assert (np.asarray(contents) >= 0).all()


@jax.jit
def _contents(key: jax.Array, actions: jax.Array) -> jax.Array:
    """Contents after each of 64 actions from a random mine, mining every other time."""
    env = Minecart()
    mine_key, run_key = jax.random.split(key)
    state = standing(env, jax.random.randint(mine_key, (), 0, 5))

    def one(state: MinecartState, step: tuple[jax.Array, jax.Array, jax.Array]):
        index, action, key = step
        state, _, _ = env.step(state, jnp.where(index % 2 == 0, MINE, action), key)
        return state, state.content

    keys = jax.random.split(run_key, 64)
    return jax.lax.scan(one, state, (jnp.arange(64), actions, keys))[1]


def standing(env: Minecart, mine: jax.Array) -> MinecartState:
    """An empty cart at rest in a mine."""
    x, y = env.mine_positions[mine]
    pose = Pose(x, y, jnp.zeros_like(x), jnp.zeros_like(x))
    content = jnp.zeros(env.num_ores)
    return MinecartState(pose, content, jnp.asarray(True), pose, content)


def test_a_full_haul_keeps_the_ores_proportions():
    env = Minecart(deterministic=True)
    state, step = standing(env, jnp.asarray(1)), eqx.filter_jit(env.step)
    for _ in range(3):
        state, _, _ = step(state, jnp.asarray(MINE), KEY)
    assert np.allclose(state.content, [0.9, 0.6])


def test_fuel_by_hand():
    env = Minecart()
    costs = [env.step(env.reset(KEY), jnp.asarray(a), KEY)[1][-1] for a in range(6)]
    assert np.allclose(costs, [-0.22, -0.02, -0.02, -0.12, -0.02, -0.02])


def test_braking_stops_at_once_and_mining_needs_a_mine():
    env = Minecart()
    state, *_ = env.step(env.reset(KEY), jnp.asarray(ACCELERATE), KEY)
    assert state.pose.speed > 0
    state, *_ = env.step(state, jnp.asarray(BRAKE), KEY)
    assert state.pose.speed == 0
    state, *_ = env.step(state, jnp.asarray(MINE), KEY)
    assert (state.content == 0).all()


def test_instances_vmap_over_their_numbers():
    env = Minecart(deterministic=True)

    def first_haul(means: jax.Array) -> jax.Array:
        instance = eqx.tree_at(lambda e: e.ore_means, env, means)
        return instance.step(standing(instance, jnp.asarray(0)), jnp.asarray(MINE), KEY)[0].content

    scales = jnp.asarray([0.5, 1.0, 2.0])
    contents = jax.vmap(lambda scale: first_haul(env.ore_means * scale))(scales)
    assert np.allclose(contents, [[0.4, 0], [0.8, 0], [1.5, 0]])


def test_scan_equals_a_loop_of_jitted_steps():
    env = Minecart()
    keys = jax.random.split(KEY, 50)
    actions = jax.random.randint(KEY, (50,), 0, 6)

    def one(state: MinecartState, step: tuple[jax.Array, jax.Array]):
        state, reward, terminated = env.step(state, *step)
        return state, (env.observe(state), reward, terminated)

    _, scanned = jax.lax.scan(one, env.reset(KEY), (actions, keys))
    step, state = eqx.filter_jit(env.step), env.reset(KEY)
    for t in range(50):
        state, reward, _ = step(state, actions[t], keys[t])
        assert np.allclose(env.observe(state), scanned[0][t], atol=1e-6)
        assert np.allclose(reward, scanned[1][t])


def test_more_ores_mean_more_objectives():
    env = Minecart(MinecartConfig.random(KEY, num_mines=2, num_ores=4))
    state, reward, _ = env.step(env.reset(KEY), jnp.asarray(MINE), KEY)
    assert reward.shape == (5,)
    assert env.objective_names == ("ore 1", "ore 2", "ore 3", "ore 4", "fuel")
    assert env.observe(state).shape == (9,)


def test_features_stay_within_their_bounds():
    env = Minecart(PAPER)
    low, high = env.feature_bounds
    for mine in range(5):
        state = standing(env, jnp.asarray(mine))
        for t in range(12):
            state, *_ = env.step(state, jnp.asarray(MINE), jax.random.key(t))
        seen = np.asarray(env.observe(state))
        assert ((low <= seen) & (seen <= high)).all()
