"""The Gymnasium environments: conventions, seeds, autoresets, wrappers, pixels, bad input."""

import json
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils import env_checker
from gymnasium.vector import AutoresetMode

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.gymnasium import WindvaneEnv
from windvane.envs.gymnasium_vector import WindvaneVectorEnv
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER
from windvane.errors import InputError
from windvane.registration import TIME_LIMITS, register

register()
IDS = ["windvane/Minecart-v0", "windvane/DeepSeaTreasure-v0"]
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


def actions_for(env: Any, steps: int, seed: int = 0) -> np.ndarray:
    """Random actions for one environment, or for each copy."""
    space = env.single_action_space if hasattr(env, "num_envs") else env.action_space
    shape = (steps, env.num_envs) if hasattr(env, "num_envs") else steps
    return np.random.default_rng(seed).integers(0, space.n, shape)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("observation", ["features", "pixels"])
def test_conventions(name: str, observation: str):
    env = gymnasium.make(name, observation=observation)
    seen, info = env.reset(seed=1)
    assert env.observation_space.contains(seen)
    assert info == {}
    base: Any = env.unwrapped
    assert base.reward_space.shape == (base.reward_dim,)
    for action in actions_for(env, 30):
        seen, reward, terminated, truncated, _ = env.step(action)
        assert env.observation_space.contains(seen)
        assert base.reward_space.contains(reward)
        assert reward.dtype == np.float32
        assert reward.flags.writeable
        assert type(terminated) is bool
        assert type(truncated) is bool
        assert np.array_equal(seen, base.native.observe(base.state))
        if terminated:
            env.reset()


@pytest.mark.parametrize("name", IDS)
def test_the_checkers_of_gymnasium_that_allow_vector_rewards(name: str):
    env = gymnasium.make(name, render_mode="rgb_array", render_size=64).unwrapped
    env_checker.check_reset_seed_determinism(env)
    env_checker.check_reset_options(env)
    env_checker.check_step_determinism(env)
    env_checker.check_reset_return_type(env)
    env_checker.check_space_limit(env.observation_space, "observation")
    env.reset()
    assert env.render().shape == (64, 64, 3)


OUT_AND_MINE = np.asarray([3] * 3 + [5] * 2 + [4] + [0] * 2)
"""Straight to the paper's furthest mine: what the cart then holds tells the randomness."""


def test_a_seed_determines_this_and_all_following_episodes():
    envs = [gymnasium.make("windvane/Minecart-v0") for _ in range(3)]
    loads = []
    for env, seed in zip(envs, (9, 9, 10), strict=True):
        env.reset(seed=seed)
        loads.append([])
        for _ in range(3):
            loads[-1].append([env.step(action)[0] for action in OUT_AND_MINE][-1][5:])
            env.reset()
    first, again, other = np.asarray(loads)
    assert (first > 0).all(), "the cart of this test misses the mine"
    assert np.array_equal(first, again)
    assert not (first == other).any()
    assert len(np.unique(first)) == first.size


@pytest.mark.parametrize("name", IDS)
def test_truncation(name: str):
    env = gymnasium.make(name, max_episode_steps=7)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("observation", ["features", "pixels"])
@pytest.mark.parametrize("mode", MODES)
def test_copies_do_what_single_environments_do(name: str, observation: str, mode: AutoresetMode):
    copies, steps, limit = 4, 60, 17
    kwargs: dict[str, Any] = {"observation": observation}
    many = gymnasium.make_vec(
        name, num_envs=copies, autoreset_mode=mode, max_episode_steps=limit, **kwargs
    )
    assert many.metadata["autoreset_mode"] is mode
    single = [gymnasium.make(name, max_episode_steps=limit, **kwargs) for _ in range(copies)]
    seen, _ = many.reset(seed=20)
    for i, env in enumerate(single):
        assert np.array_equal(seen[i], env.reset(seed=20 + i)[0])
    ended = [False] * copies
    script = actions_for(many, steps)
    if "Treasure" in name:
        script[:, 0] = 1
    for actions in script:
        seen, reward, terminated, truncated, infos = many.step(actions)
        assert reward.shape == (copies, many.unwrapped.reward_dim)
        assert reward.flags.writeable
        for i, env in enumerate(single):
            if ended[i] and mode is AutoresetMode.NEXT_STEP:
                expected, told = env.reset()[0], (0, False, False)
                ended[i] = False
            else:
                expected, *told, _ = env.step(actions[i])
                ended[i] = told[1] or told[2]
                if ended[i] and mode is AutoresetMode.SAME_STEP:
                    assert infos["_final_obs"][i]
                    assert np.array_equal(infos["final_obs"][i], expected)
                    expected = env.reset()[0]
            assert np.allclose(seen[i], expected, rtol=1e-6, atol=1e-6)
            assert np.allclose(reward[i], told[0], rtol=1e-6)
            assert (terminated[i], truncated[i]) == tuple(told[1:])
    assert many.observation_space.contains(np.asarray(seen))


@pytest.mark.parametrize("native", [Minecart, DeepSeaTreasure])
@pytest.mark.parametrize("mode", MODES)
def test_reused_frames_equal_observe(native: Any, mode: AutoresetMode):
    env = WindvaneVectorEnv(
        native(observation="pixels"), 8, max_episode_steps=9, autoreset_mode=mode
    )
    env.reset(seed=0)
    observe = jax.jit(jax.vmap(lambda state: env.native.observe(state)))
    for actions in actions_for(env, 40):
        seen, *_ = env.step(actions)
        assert np.array_equal(seen, observe(env.state))


def test_observations_are_the_callers_to_edit(monkeypatch: pytest.MonkeyPatch):
    env = WindvaneEnv(DeepSeaTreasure(observation="pixels"))
    env.reset(seed=0)[0][:] = 0
    for _ in range(2):
        seen, *_ = env.step(1)
        assert np.array_equal(seen, env.native.observe(env.state))
        seen[:] = 0
    for share in (128, 1):
        monkeypatch.setattr("windvane.envs.gymnasium_vector.MIN_SHARE", share)
        for observation in ("features", "pixels"):
            many = WindvaneVectorEnv(DeepSeaTreasure(observation=observation), 2)
            many.reset(seed=0)[0][:] = 0
            for _ in range(2):
                seen, *_ = many.step([1, 3])
                assert np.array_equal(seen, jax.vmap(many.native.observe)(many.state))
                seen[:] = 0


def test_copies_without_a_seed_continue():
    envs = [WindvaneVectorEnv(Minecart(), 3) for _ in range(2)]
    for env in envs:
        env.reset(seed=[1, 2, 3])
        env.step(np.zeros(3, int))
    envs[0].reset()
    envs[1].reset(seed=[None, 2, None])
    streams = [np.asarray(env._streams(None).used).tolist() for env in envs]
    assert streams == [[3, 3, 3], [3, 1, 3]]
    assert not np.array_equal(*[WindvaneVectorEnv(Minecart(), 2)._streams(None).seed for _ in "ab"])


def test_wrappers_of_mo_gymnasium():
    wrappers = pytest.importorskip("mo_gymnasium.wrappers")
    for name in IDS:
        env = wrappers.MORecordEpisodeStatistics(
            wrappers.MONormalizeReward(gymnasium.make(name, max_episode_steps=20), idx=0), gamma=0.9
        )
        env.reset(seed=0)
        while True:
            *_, terminated, truncated, info = env.step(0)
            if terminated or truncated:
                break
        assert info["episode"]["l"] == 20
        assert info["episode"]["r"].shape == (env.unwrapped.reward_dim,)
        weights = np.ones(env.unwrapped.reward_dim) / env.unwrapped.reward_dim
        linear = wrappers.LinearReward(gymnasium.make(name), weight=weights)
        linear.reset(seed=0)
        _, reward, _, _, info = linear.step(0)
        assert np.isclose(reward, info["vector_reward"] @ weights)


def test_vector_wrappers_of_mo_gymnasium():
    wrappers = pytest.importorskip("mo_gymnasium.wrappers.vector")
    listed = wrappers.MOSyncVectorEnv(
        [lambda: gymnasium.make(IDS[1], max_episode_steps=20) for _ in range(2)]
    )
    ours = gymnasium.make_vec(IDS[1], num_envs=2, max_episode_steps=20)
    for env in (listed, ours):
        env = wrappers.MORecordEpisodeStatistics(env)
        env.reset(seed=0)
        for _ in range(2):
            _, reward, terminated, _, info = env.step(np.asarray([1, 3]))
        assert np.allclose(reward, [[18, -1], [0, -1]])
        assert terminated.tolist() == [True, False]
        assert np.allclose(info["episode"]["r"][0], [18, -2])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: gymnasium.make(IDS[0], observation="smell"), "unknown observation 'smell'"),
        (lambda: gymnasium.make(IDS[0], config="/nowhere.json"), "cannot read"),
        (lambda: gymnasium.make(IDS[1], sea_map="pond"), "unknown map 'pond'"),
        (lambda: gymnasium.make(IDS[1], render_mode="ansi"), "unknown render_mode 'ansi'"),
        (lambda: WindvaneVectorEnv(DeepSeaTreasure(), 0), "num_envs must be"),
        (
            lambda: WindvaneVectorEnv(DeepSeaTreasure(), 2, autoreset_mode="Disabled"),
            "one of NextStep, SameStep, not Disabled",
        ),
        (
            lambda: WindvaneVectorEnv(DeepSeaTreasure(), 2, render_mode="human"),
            'no render_mode "human"',
        ),
        (lambda: WindvaneVectorEnv(DeepSeaTreasure(), 2).reset(seed=[1]), "must have 2 entries"),
        (lambda: WindvaneVectorEnv(DeepSeaTreasure(), 2).reset(seed=-1), "at least 0, not -1"),
        (
            lambda: WindvaneVectorEnv(DeepSeaTreasure(), 2, max_episode_steps=2**31),
            "max_episode_steps must be a whole number from 1 to 2147483647, not 2147483648",
        ),
        (lambda: gymnasium.make(IDS[0], config={"mines": [3]}), "must be an object, not 3"),
        (lambda: gymnasium.make(IDS[0], config=3), "config must be a MinecartConfig, .* not 3"),
    ],
)
def test_bad_input_is_one_clear_sentence(build: Any, sentence: str):
    with pytest.raises(InputError, match=sentence) as caught:
        build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [1.5, [0, "a"], "ab", True, [0, -1], [1.0, 2.0]])
def test_what_is_no_seed(seed: Any):
    with pytest.raises(InputError, match="a seed must be a whole number of at least 0, not"):
        WindvaneVectorEnv(DeepSeaTreasure(), 2)._streams(seed)


@pytest.mark.parametrize("action", [-1, 4, 1.5, "up", None])
def test_an_action_outside_the_range(action: Any):
    env = WindvaneEnv(DeepSeaTreasure())
    env.reset(seed=0)
    with pytest.raises(InputError, match="from 0 to 3, not"):
        env.step(action)


@pytest.mark.parametrize("actions", [[0, 4], [-1, 0], [0], [0.0, 1.0]])
def test_bad_actions_for_copies(actions: list[Any]):
    env = WindvaneVectorEnv(DeepSeaTreasure(), 2)
    env.reset(seed=0)
    with pytest.raises(InputError, match="action"):
        env.step(np.asarray(actions))


def test_step_before_reset():
    for env in (WindvaneEnv(DeepSeaTreasure()), WindvaneVectorEnv(DeepSeaTreasure(), 2)):
        with pytest.raises(ResetNeeded):
            env.step(np.zeros(2, int) if hasattr(env, "num_envs") else 0)  # type: ignore[arg-type]


def test_human_mode_without_pygame(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("windvane.envs.window.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"install windvane\[human\]"):
        WindvaneEnv(DeepSeaTreasure(), render_mode="human")


def test_human_mode_shows_a_window(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = WindvaneEnv(DeepSeaTreasure([[0], [2]]), render_mode="human", render_size=20)
    env.reset(seed=0)
    env.step(1)
    assert env.render() is None
    env.close()


def test_configurations_reach_the_environment(tmp_path: Any):
    PAPER.deterministic().to_json(tmp_path / "mines.json")
    path = tmp_path / "mines.json"
    for config in (PAPER.deterministic(), path, str(path), json.loads(path.read_text())):
        env: Any = gymnasium.make(IDS[0], config=config, frame_skip=2).unwrapped
        assert env.native.config.mines == PAPER.deterministic().mines
        assert env.native.frame_skip == 2
    many: Any = gymnasium.make_vec(
        IDS[1], num_envs=2, sea_map="convex", render_mode="rgb_array", render_size=44
    )
    many.reset(seed=0)
    assert many.unwrapped.native.sea_map.shape == (11, 11)
    assert len(many.render()) == 2


def test_the_ids_limits_are_the_native_ones():
    natives = {"Minecart": Minecart(), "DeepSeaTreasure": DeepSeaTreasure()}
    assert {name: native.time_limit for name, native in natives.items()} == TIME_LIMITS


def test_registering_twice_changes_nothing():
    before = gymnasium.registry[IDS[0]]
    register()
    assert gymnasium.registry[IDS[0]] is before
