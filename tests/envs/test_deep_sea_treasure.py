"""Deep Sea Treasure: its maps, its dynamics against MO-Gymnasium's, its pictures, bad maps."""

import time
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.deprecation import RenamedWarning
from windvane.envs import ENVS
from windvane.envs.deep_sea_treasure import (
    MAPS,
    SOURCES,
    DeepSeaTreasure,
    DeepSeaTreasureState,
    check_map,
    reachable_distances,
    read_map,
    source,
)
from windvane.envs.factories import describe
from windvane.errors import InputError
from windvane.oracle import coverage_set

mo_dst = pytest.importorskip("mo_gymnasium.envs.deep_sea_treasure.deep_sea_treasure")

KEY = jax.random.key(0)
UP, DOWN, LEFT, RIGHT = range(4)


def play(env: DeepSeaTreasure, actions: list[int]) -> tuple[list[float], bool, list[int]]:
    """Sum of rewards, whether it terminated, and where it stands."""
    state, total, terminated = env.reset(KEY), np.zeros(2), False
    for action in actions:
        state, reward, ended = env.step(state, jnp.asarray(action), KEY)
        total, terminated = total + np.asarray(reward), bool(ended)
    return total.tolist(), terminated, np.asarray(state.position).tolist()


def test_the_map_of_the_dcrac_program():
    treasures = {tuple(cell): MAPS["dcrac"][tuple(cell)] for cell in np.argwhere(MAPS["dcrac"] > 0)}
    assert treasures == {
        (2, 0): 18, (2, 1): 26, (2, 2): 31, (4, 3): 44, (4, 4): 48.2,
        (5, 5): 56, (8, 6): 72, (8, 7): 76.3, (10, 8): 90, (11, 9): 100,
    }  # fmt: skip
    assert MAPS["dcrac"].shape == (12, 12)
    assert (MAPS["dcrac"][:, 10:] == 0).all()
    assert (MAPS["dcrac"][3:, 0] < 0).all()


def test_the_former_name_of_a_map_is_known():
    """Files say "paper", which the map was called before; it may not be the paper's."""
    with pytest.warns(RenamedWarning, match="called 'dcrac' now"):
        assert np.array_equal(DeepSeaTreasure("paper").sea_map, DeepSeaTreasure().sea_map)
    assert read_map("paper") == "dcrac"
    assert "paper" not in MAPS
    made = [ENVS.make("dst", args, "auto") for args in ({"map": "paper"}, {}, {"map": "tenths"})]
    assert [describe(env) for env in made] == [("dst", {}), ("dst", {}), ("dst", {"map": "tenths"})]


def test_every_known_map_says_where_it_is_from():
    assert set(SOURCES) == set(MAPS)
    assert source({}) == source({"map": "paper"}) == source({"map": "dcrac"})
    assert "DCRAC (Nian, Irissappane and Roijers, 2020)" in source({})
    assert source({"map": [[0, 5]]}) == source({"map": "a.txt"}) == "The map is a custom one."


def test_tenths_is_each_treasure_for_a_tenth_of_the_weights():
    values = coverage_set(DeepSeaTreasure("tenths"), 0.95).values
    first = (np.arange(10_000) + 0.5) / 10_000
    best = (np.stack([first, 1 - first], 1) @ values.T).argmax(1)
    assert np.allclose(np.bincount(best) / 10_000, 0.1, atol=0.003)


def test_maps_equal_the_peers():
    assert np.array_equal(MAPS["convex"], mo_dst.DEFAULT_MAP)
    assert np.array_equal(MAPS["concave"], mo_dst.CONCAVE_MAP)


def test_shortest_paths_to_the_convex_treasures_are_the_known_ones():
    distances = reachable_distances(MAPS["convex"])
    steps = [int(distances[tuple(cell)]) for cell in np.argwhere(MAPS["convex"] > 0)]
    assert sorted(steps) == [-int(point[1]) for point in mo_dst.CONVEX_FRONT]


def test_paths_do_not_cross_treasures():
    distances = reachable_distances(np.asarray([[0.0, 5.0, 7.0]]))
    assert distances.tolist() == [[0, 1, -1]]


def test_episode_by_hand():
    env = DeepSeaTreasure()
    assert play(env, [DOWN, DOWN]) == ([18, -2], True, [2, 0])
    assert play(env, [RIGHT, DOWN, DOWN]) == ([26, -3], True, [2, 1])


def test_edges_and_floor_leave_the_submarine_in_place():
    env = DeepSeaTreasure([[0, -1], [0, 3]])
    assert play(env, [UP, LEFT, RIGHT]) == ([0, -3], False, [0, 0])


@pytest.mark.parametrize("name", ["convex", "concave"])
def test_20000_random_steps_equal_the_peers(name: str):
    peer_map = {"convex": mo_dst.DEFAULT_MAP, "concave": mo_dst.CONCAVE_MAP}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = mo_dst.DeepSeaTreasure(dst_map=peer_map)
    # Drifting down and right visits every treasure; drifting back up meets floor and edges.
    generator = np.random.default_rng(7)
    actions = generator.choice(4, 20_000, p=[0.15, 0.3, 0.15, 0.4])
    told = []
    peer.reset()
    for action in actions:
        position, reward, terminated, _, _ = peer.step(action)
        told.append((position, reward, terminated))
        if terminated:
            peer.reset()
    env = DeepSeaTreasure(name)

    def one(state: DeepSeaTreasureState, action: jax.Array):
        state, reward, terminated = env.step(state, action, KEY)
        seen = env.features(state)
        start = env.reset(KEY)
        state = jax.tree.map(lambda a, b: jnp.where(terminated, a, b), start, state)
        return state, (seen, reward, terminated)

    _, ours = jax.lax.scan(one, env.reset(KEY), jnp.asarray(actions))
    for mine, theirs in zip(ours, zip(*told, strict=True), strict=True):
        theirs = np.asarray(theirs)
        assert np.asarray(mine).dtype == theirs.dtype
        assert np.array_equal(mine, theirs)
    values = np.asarray(ours[1])[np.asarray(ours[2])][:, 0]
    assert len(np.unique(values)) == 10


def test_instances_of_one_shape_vmap():
    envs = [DeepSeaTreasure(name, observation="pixels") for name in ("convex", "concave")]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *envs)

    def dive(env: DeepSeaTreasure):
        state, reward, _ = env.step(env.reset(KEY), jnp.asarray(DOWN), KEY)
        return reward, env.observe(state)

    rewards, seen = eqx.filter_vmap(dive)(batch)
    assert np.allclose(rewards, [[0.7, -1], [1, -1]])
    assert seen.shape == (2, 2, 48, 48, 3)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("atlantis", "unknown map 'atlantis'; choose one of: dcrac, tenths, convex, concave"),
        ([[0, 1], [0]], "rows of one length"),
        ([0, 1], r"not of shape \(2,\)"),
        ([[0, float("nan")]], "finite numbers, not nan"),
        ([[0, float("inf")]], "finite numbers, not inf"),
        ([[0, 0], [0, -1]], "this one has none"),
        ([[0, -1, 5]], "that the start can reach"),
        ([[-1, 5]], "must be 0, not -1"),
        ([[5, 5]], "must be 0, not 5"),
    ],
)
def test_a_bad_map_is_one_clear_sentence(bad, sentence: str):
    with pytest.raises(InputError, match=sentence) as caught:
        DeepSeaTreasure(bad)
    assert "\n" not in str(caught.value)


def test_other_bad_arguments():
    with pytest.raises(InputError, match="unknown observation 'sonar'"):
        DeepSeaTreasure(observation="sonar")
    with pytest.raises(InputError, match="time_limit must be a whole number"):
        DeepSeaTreasure(time_limit=0)
    with pytest.raises(InputError, match=r"time_limit must be .* from 1 to 2147483647"):
        DeepSeaTreasure(time_limit=2**31)


def test_a_large_map_has_features_only():
    sea_map = np.zeros((64, 65))
    sea_map[1, 0] = 1
    assert play(DeepSeaTreasure(sea_map), [DOWN]) == ([1, -1], True, [1, 0])
    with pytest.raises(InputError, match="maps of at most 4,096 cells, and this one has 4,160"):
        DeepSeaTreasure(sea_map, observation="pixels")


@pytest.mark.parametrize("sea_map", ["dcrac", [[0, 0, 0, 0], [0, -1, -1, 2]], [[0], [0], [3]]])
def test_frames_are_48_by_48_with_and_without_the_table(sea_map):
    table, plain = DeepSeaTreasure(sea_map, observation="pixels"), DeepSeaTreasure(sea_map)
    state, *_ = table.step(table.reset(KEY), jnp.asarray(DOWN), KEY)
    assert table.observe(state).shape == (2, 48, 48, 3)
    for view in table.views(state):
        assert np.array_equal(table.frame(view), plain.frame(view))


def test_every_position_has_its_own_frame():
    frames = np.asarray(DeepSeaTreasure("convex", observation="pixels").frames)
    assert len(np.unique(frames.reshape(121, -1), axis=0)) == 121


def test_frame_has_the_papers_colours():
    env = DeepSeaTreasure(observation="pixels")
    frame = np.asarray(env.frame(jnp.asarray([0, 0], jnp.int32)))
    blue, yellow, black, white = frame[2, 46], frame[10, 2], frame[46, 2], frame[1, 1]
    assert blue.argmax() == 2
    assert yellow[2] < 100 < yellow[:2].min()
    assert black.max() == 0
    assert white.min() > 200


@pytest.mark.parametrize(("size", "shape"), [(96, (96, 192, 3)), (20, (20, 40, 3))])
def test_pictures_keep_the_maps_aspect(size: int, shape: tuple[int, ...]):
    env = DeepSeaTreasure([[0, 0, 0, 0], [0, -1, -1, 2.5]])
    picture = jax.jit(lambda state: env.render(state, size))(env.reset(KEY))
    assert picture.shape == shape
    assert picture.dtype == jnp.uint8
    state, *_ = env.step(env.reset(KEY), jnp.asarray(RIGHT), KEY)
    assert not np.array_equal(picture, env.render(state, size))


@pytest.mark.parametrize(
    ("sea_map", "sentence"),
    [
        (np.zeros((1500, 1500)), r"at most 262,144 cells, and this one has 2,250,000 \(1,500 x"),
        (np.zeros((513, 512)), "at most 262,144 cells"),
        (np.zeros((1, 262_145)), "at most 262,144 cells"),
        ([["0", "5"]], "a table of numbers"),
        ([[False, True]], "a table of numbers"),
        ([[0, 5j]], "a table of numbers"),
        ([[0, None]], "a table of numbers"),
        ([[0, 10**400]], "a table of numbers"),
        ([[0, 1e300]], "from 1e-06 to 1e\\+09, and one number is 1e\\+300"),
        ([[0, 1e-50]], "one number is 1e-50"),
        ([[0, -1e300, 5]], "one number is -1e"),
        ([[0, np.inf]], "finite"),
        ([[0, np.nan]], "finite"),
    ],
)
def test_maps_that_cannot_be_meant(sea_map: Any, sentence: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(InputError, match=sentence) as caught:
        check_map(sea_map)
    assert time.perf_counter() - begun < 1
    assert "\n" not in str(caught.value)


def test_the_largest_map_is_read_in_a_moment() -> None:
    sea_map = np.zeros((512, 512))
    sea_map[511, 511] = 7
    begun = time.perf_counter()
    assert reachable_distances(check_map(sea_map))[511, 511] == 1022
    assert time.perf_counter() - begun < 10
