"""From a configuration to the parts of a training: names, arguments, objects, and complaints."""

from typing import Any

import pytest

from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.multi_network import MultiNetwork
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.learning.hyperparameters import Hyperparameters
from windvane.live import LiveWeights
from windvane.networks import Architecture
from windvane.replay.diverse import DiverseReplay
from windvane.replay.standard import StandardReplay
from windvane.schedules import FixedWeights, RegularChanges, SparseChanges, WeightSequence
from windvane.training.build import build, describe_custom
from windvane.training.config import TrainConfig


def quick(**changes: Any) -> TrainConfig:
    return TrainConfig.preset("quick-dst", **changes)


def custom(**objects: Any) -> Any:
    """What is built with objects made in Python."""
    return build(quick(**describe_custom(objects)), **objects)


def test_every_part_gets_its_settings() -> None:
    config = quick(gamma=0.9, width=32, clip_norm=3, replay_args={"trajectories": 12})
    learner = build(config).learner
    for name in Hyperparameters.__dataclass_fields__:
        assert getattr(learner.hyperparameters, name) == getattr(config, name)
    assert learner.architecture == Architecture(32, 3, 1, "float32")
    assert isinstance(learner.replay, DiverseReplay)
    assert learner.replay.trajectories == 12
    arguments = {"kappa": 0.1, "reuse": "partial", "max_policies": 5}
    several = build(quick(agent="mn", agent_args=arguments)).learner
    assert several.agent == MultiNetwork(0.1, "partial", 5)
    assert build(TrainConfig()).learner.replay.trajectories == 10_000  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "changes",
    [{"agent": name} for name in ("cn", "cn-active", "cn-uvfa", "uvfa", "mn", "mo", "naive")]
    + [{"replay": name} for name in ("standard", "der", "sel", "exp")]
    + [{"schedule": "regular"}, {"schedule": "0.3,0.7"}, {"env": "minecart"}],
)
def test_all_names_are_built(changes: dict[str, Any]) -> None:
    training = build(quick(**changes))
    assert training.session() is not None
    assert training.spec == training.world.spec  # type: ignore[union-attr]


def test_arguments_of_environments() -> None:
    sea = build(quick(env_args={"time_limit": 30, "map": [[0, 1], [0, 2]]})).world
    assert isinstance(sea, DeepSeaTreasure)
    assert sea.time_limit == 30
    assert sea.sea_map.shape == (2, 2)
    cart = build(quick(env="minecart", env_args={"frame_skip": 2, "deterministic": True})).world
    assert isinstance(cart, Minecart)
    assert cart.frame_skip == 2


def test_arguments_of_schedules() -> None:
    sparse = build(quick(schedule_args={"every": 7})).schedule
    assert isinstance(sparse, SparseChanges)
    assert sparse.every == 7
    regular = build(quick(schedule="regular", schedule_args={"every": 7})).schedule
    assert isinstance(regular, RegularChanges)
    assert regular.episodes == 7
    rows = {"rows": [[1, 0], [0.5, 0.5]], "every": 2, "unit": "steps", "repeat": True}
    sequence = build(quick(schedule="sequence", schedule_args=rows)).schedule
    assert isinstance(sequence, WeightSequence)
    assert sequence.sequence.tolist() == [[1, 0], [0.5, 0.5]]
    assert (sequence.unit, sequence.repeat) == ("steps", True)


def test_objects_made_in_python() -> None:
    agent, schedule = ConditionedNetwork(train_on="active"), FixedWeights([0.5, 0.5])
    env, replay = DeepSeaTreasure(time_limit=9), StandardReplay(50)
    training = custom(env=env, agent=agent, replay=replay, schedule=schedule)
    assert training.world is env
    assert training.learner.agent is agent
    assert training.learner.replay is replay
    assert training.schedule is schedule


def test_objects_are_recognised_by_their_parameters() -> None:
    config = quick(**describe_custom({"agent": MultiNetwork(0.1)}))
    assert build(config, agent=MultiNetwork(0.1)).learner.agent == MultiNetwork(0.1)
    with pytest.raises(InputError, match="is not the one that this run was trained with"):
        build(config, agent=MultiNetwork(0.2))
    with pytest.raises(InputError, match="give it again, as agent="):
        build(config)
    with pytest.raises(InputError, match="this run's agent is 'cn' by name"):
        build(quick(), agent=ConditionedNetwork())


def test_live_weights_and_functions() -> None:
    live = LiveWeights([0.25, 0.75])
    assert custom(schedule=live).schedule is live
    assert custom(schedule=live).session() is not None
    with pytest.raises(InputError, match="cannot call a function for its weights"):
        custom(schedule=lambda episode, step: [0.5, 0.5]).session()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent_args": {"kappa": 1}}, "agent cn has no argument 'kappa'; it takes: train_on"),
        ({"agent": "mn", "agent_args": {"kappa": -1}}, "kappa must be a number of at least 0"),
        ({"agent": "mn", "agent_args": {"kappa": "much"}}, "kappa must be a number of at least 0"),
        ({"agent": "mn", "agent_args": {"max_policies": 0}}, "max_policies must be a whole number"),
        ({"agent": "mn", "agent_args": {"reuse": "half"}}, "unknown reuse 'half'"),
        ({"replay_args": {"trajectories": 0}}, "trajectories"),
        ({"replay": "standard", "replay_args": {"trajectories": 5}}, "no argument 'trajectories'"),
        ({"schedule_args": {"every": 0}}, "must be a whole number from 1"),
        ({"schedule_args": {"episodes": 3}}, "schedule sparse has no argument 'episodes'"),
        ({"schedule": "0.5,0.5", "schedule_args": {"every": 3}}, "take no arguments"),
        ({"schedule": "0.2,0.3,0.5"}, "is for 3 objectives, and the environment has 2"),
        ({"schedule": "live:/nowhere"}, "cannot read weights such as 0.3,0.7 from /nowhere"),
        ({"schedule": "chosen"}, "for agents that choose weights, such as gpi-ls, and cn does not"),
        ({"agent": "gpi-ls", "agent_args": {"iteration_steps": 10}}, "chunk must be at most 10"),
        (
            {"agent": "gpi-ls", "schedule": "chosen", "agent_args": {"max_weights": 99}},
            "may choose 99: set schedule_args capacity=99",
        ),
        ({"env_args": {"map": "atlantis"}}, "atlantis"),
        ({"env_args": {"depth": 3}}, "env dst has no argument 'depth'"),
        ({"num_envs": 2}, "num_envs is for Gymnasium environments and for agents that learn"),
        ({"frame_stack": 2}, "frame_stack is for Gymnasium environments"),
        ({"env": "json:loads"}, "would be imported, which runs its code"),
        ({"env": "custom:Sea"}, "was an object made in Python"),
        ({"agent": "json:loads"}, "would be imported, which runs its code"),
        ({"replay": "json:loads"}, "would be imported, which runs its code"),
        ({"schedule": "json:loads"}, "would be imported, which runs its code"),
    ],
)
def test_bad_parts_are_one_sentence(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    config = quick(**changes)
    with pytest.raises(InputError) as complaint:
        build(config)
    assert message in str(complaint.value)
    assert "\n" not in str(complaint.value)


def make_agent(train_on: Any = "active") -> ConditionedNetwork:
    return ConditionedNetwork(train_on)


def make_nothing() -> None:
    return None


def test_parts_of_import_paths() -> None:
    config = quick(agent=f"{__name__}:make_agent", agent_args={"train_on": "history"})
    assert build(config, trusted=("agent",)).learner.agent == ConditionedNetwork("history")
    for trusted in ((), ("env", "replay", "schedule")):
        with pytest.raises(InputError, match="would be imported, which runs its code"):
            build(config, trusted=trusted)
    with pytest.raises(InputError, match="an object of the class Agent is needed, not None"):
        build(quick(agent=f"{__name__}:make_nothing"), trusted=("agent",))
    with pytest.raises(InputError, match="must be a Gymnasium environment or a Windvane"):
        build(quick(env=f"{__name__}:make_nothing", observation="auto"), trusted=("env",))
