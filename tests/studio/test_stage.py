"""Episodes step by step: the same that evaluation plays, in native and Gymnasium environments."""

import io
from typing import Any, ClassVar

import gymnasium
import jax
import numpy as np
import pytest
from PIL import Image

from tests.strangers.parts import Corridor
from windvane.envs.environment import FRAME_SIZE
from windvane.policy import Policy, trained_policy
from windvane.spec import EnvSpec, FrameSpec
from windvane.studio.jobs import Jobs
from windvane.studio.lane import Lane
from windvane.studio.library import Library
from windvane.studio.market import make_market
from windvane.studio.opened import OpenedPolicies
from windvane.studio.scenes import SIZE, chart
from windvane.studio.stage import GymnasiumStage, NativePrograms, NativeStage
from windvane.training.build import build, describe_custom
from windvane.training.config import PARTS, TrainConfig

TINY: dict[str, Any] = {
    "steps": 80, "learning_starts": 40, "chunk": 40, "width": 8, "depth": 1, "capacity": 40,
    "batch_size": 4, "oracle": False,
}  # fmt: skip


def policy_of(env: Any, agent: str = "cn", **settings: Any) -> Policy:
    """A policy as it is before training: random."""
    named = isinstance(env, str)
    custom = {} if named else {"env": env}
    parts = {} if named else {"custom": describe_custom(custom)["custom"]}
    base = {"env": env} if named else {"env": describe_custom(custom)["env"]}
    config = TrainConfig.preset("default", **(base | TINY | {"agent": agent} | settings | parts))
    training = build(config.resolved(), trusted=PARTS, **custom)
    session = training.session()
    session.begin(None, 0)
    return trained_policy(training, session.policy_network(0), 0)


def unknown(weights: np.ndarray) -> None:
    del weights


def played(lane: Lane, weights: np.ndarray) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The steps of one episode and how it went."""
    steps: list[dict[str, Any]] = []
    while True:
        for message in lane.tick(weights):
            if isinstance(message, dict):
                if message["type"] == "episode":
                    return steps, message
                steps.append(message)


def test_an_episode_adds_up() -> None:
    policy = policy_of("dst", observation="features", gamma=0.9, reward_scale=0.1)
    lane = Lane(0, NativeStage(policy, NativePrograms(policy)), 0, lambda w: float(w @ [3, 1]))
    weights = np.asarray([0.25, 0.75])
    steps, episode = played(lane, weights)
    rewards = np.asarray([step["reward"] for step in steps[1:]])
    by_hand = (0.1 * 0.9 ** np.arange(len(rewards))[:, None] * rewards).sum(0)
    np.testing.assert_allclose(episode["returns"], by_hand, rtol=1e-4)
    assert episode["utility"] == pytest.approx(weights @ by_hand, rel=1e-4)
    assert episode["regret"] == pytest.approx(1.5 - weights @ by_hand, rel=1e-4)
    assert episode["steps"] == len(rewards) <= 100
    np.testing.assert_allclose(steps[-1]["returns"], rewards.sum(0), rtol=1e-4)
    assert [step["step"] for step in steps] == list(range(len(steps)))


def test_it_does_what_the_policy_does() -> None:
    policy = policy_of("minecart", observation="features")
    stage = NativeStage(policy, NativePrograms(policy))
    env, weights = policy.env, np.asarray([0.2, 0.3, 0.5])
    stage.reset(3, 1)
    state = env.reset(jax.random.key(0))  # Minecart begins the same in every episode
    decision = stage.decide(weights)
    observation = np.asarray(env.observe(state))
    assert decision.action == policy.act(observation, weights)
    np.testing.assert_allclose(decision.q, policy.q_values(observation, weights), rtol=1e-5)
    taken = stage.step(weights)
    assert taken.decision.action == decision.action
    assert len(taken.moment.numbers["poses"]) == env.frame_skip


def test_the_same_numbers_give_the_same_episode() -> None:
    policy = policy_of("minecart", observation="features")
    programs, weights = NativePrograms(policy), np.asarray([0.4, 0.4, 0.2])
    moments = []
    for _ in range(2):
        stage = NativeStage(policy, programs)
        stage.reset(5, 2)
        moments.append([stage.step(weights).moment for _ in range(30)])
    assert moments[0] == moments[1]


def test_truncation_ends_an_episode() -> None:
    policy = policy_of("minecart", observation="features", env_args={"time_limit": 7})
    lane = Lane(0, NativeStage(policy, NativePrograms(policy)), 0, unknown)
    steps, episode = played(lane, np.asarray([0.0, 0.0, 1.0]))
    assert episode["steps"] <= 7
    assert episode["terminated"] == (episode["steps"] < 7)
    assert len(steps) == episode["steps"] + 1


@pytest.mark.parametrize("agent", ["cn", "cn-active", "cn-uvfa", "uvfa", "mn", "mo", "naive"])
def test_every_agent_can_be_watched(agent: str) -> None:
    policy = policy_of("dst", agent, observation="features")
    stage = NativeStage(policy, NativePrograms(policy))
    stage.reset(0, 0)
    decision = stage.decide(np.asarray([0.5, 0.5]))
    assert 0 <= decision.action < 4
    assert decision.q.shape[0] == 4


def test_pixels_can_be_watched() -> None:
    policy = policy_of("dst", observation="pixels", width=4)
    stage = NativeStage(policy, NativePrograms(policy))
    assert stage.reset(0, 0).numbers == {"cell": [0, 0]}
    assert stage.step(np.asarray([0.5, 0.5])).decision.q.shape == (4, 2)


def picture_of(message: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(message)))


@pytest.mark.parametrize("name", ["mo:deep-sea-treasure-v0", "windvane/DeepSeaTreasure-v0"])
def test_gymnasium_environments_draw_themselves(name: str) -> None:
    policy = policy_of(name)
    stage = GymnasiumStage(policy)
    lane = Lane(1, stage, 0, unknown)
    messages = [m for _ in range(4) for m in lane.tick(np.asarray([0.5, 0.5]))]
    drawn = [m for m in messages if isinstance(m, bytes)]
    said = [m for m in messages if isinstance(m, dict) and m["type"] == "step"]
    assert [m[0] for m in drawn] == [1] * 4
    assert [int.from_bytes(m[1:5], "big") for m in drawn] == [m["step"] for m in said]
    assert picture_of(drawn[0][5:]).shape[0] == SIZE
    stage.close()


def test_the_last_picture_is_of_the_last_state() -> None:
    class Counting(gymnasium.Env[Any, Any]):
        """Draws how many steps it has taken."""

        metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}
        render_mode = "rgb_array"
        observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)
        reward_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.taken = 0
            return np.zeros(1, np.float32), {}

        def step(self, action: Any) -> Any:
            self.taken += 1
            observation = np.full(1, self.taken, np.float32)
            return observation, np.asarray([1.0, -1.0]), self.taken == 3, False, {}

        def render(self) -> Any:
            return np.full((SIZE, SIZE, 3), 60 * self.taken, np.uint8)

    policy = policy_of(Counting())
    lane = Lane(0, GymnasiumStage(policy), 0, unknown)
    messages = [m for _ in range(6) for m in lane.tick(np.asarray([0.5, 0.5]))]
    shades = [round(picture_of(m[5:]).mean() / 60) for m in messages if isinstance(m, bytes)]
    assert shades == [0, 1, 2, 3, 0, 1]


def test_an_environment_without_pictures_shows_what_the_agent_sees() -> None:
    policy = policy_of("tests.strangers.parts:Corridor")
    stage = NativeStage(policy, NativePrograms(policy))
    moment = stage.reset(0, 0)
    assert moment.picture is not None
    assert picture_of(moment.picture).shape == (SIZE, SIZE, 3)


def test_charts_of_all_kinds_of_observations() -> None:
    image = FrameSpec((FRAME_SIZE, FRAME_SIZE, 3), "uint8")
    frames = np.zeros((2, FRAME_SIZE, FRAME_SIZE, 3), np.uint8)
    frames[1] = 200
    assert chart(frames, EnvSpec(2, ("a", "b"), image, 2)).mean() == 200
    grey = FrameSpec((16, 8, 1), "uint8")
    assert chart(np.zeros((16, 8, 1), np.uint8), EnvSpec(2, ("a",), grey)).shape == (480, 240, 3)
    infinite = FrameSpec((2,), "float32", (-np.inf, 0.0), (np.inf, 1.0))
    assert chart(np.asarray([1e30, 0.5], np.float32), EnvSpec(2, ("a",), infinite)).ndim == 3
    categories = FrameSpec((2,), "int64", categories=(3, 1))
    assert chart(np.asarray([2, 0]), EnvSpec(2, ("a",), categories)).ndim == 3


@pytest.mark.parametrize("objectives", [2, 3, 6])
def test_market_weights_are_points_of_the_simplex(objectives: int) -> None:
    for kind in ("sparse", "regular"):
        market = make_market(kind, objectives, 0)
        assert market is not None
        rows = np.stack([market.at(step) for step in range(0, 400, 7)])
        np.testing.assert_allclose(rows.sum(1), 1, atol=1e-12)
        assert (rows >= 0).all()
        distinct = len(np.unique(rows.round(6), axis=0))
        assert distinct == (4 if kind == "sparse" else len(rows))
    assert make_market("off", 2, 0) is None


def test_the_optimum_is_that_of_the_very_environment() -> None:
    """Environments made in Python have names alike, and still have optima of their own."""
    policies = [policy_of(Corridor(length=length)) for length in (5, 7)]
    library = Library(given=policies)
    opened = OpenedPolicies(library, Jobs())
    first, second = (opened.open(entry["id"]) for entry in library.to_json()["policies"])
    assert first.policy.config.env == second.policy.config.env
    assert first.optimum is not second.optimum
