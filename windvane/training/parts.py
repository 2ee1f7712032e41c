"""From the names in a configuration to the parts of a run. Parts of the user's own may stand in."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.core import Agent
from windvane.agents.multi_objective import MultiObjectiveDQN
from windvane.agents.naive import Naive
from windvane.agents.uvfa import UVFA
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.environment import Environment
from windvane.envs.minecart import Minecart
from windvane.networks import Architecture
from windvane.replay.buffer import ReplayBuffer
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.selective import SelectiveReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay
from windvane.training.config import TrainConfig
from windvane.training.loop import Trainer
from windvane.training.settings import Hyperparameters
from windvane.weights import OneOf, RegularChanges, SparseChanges, WeightSchedule

SPARSE_EVERY = {"minecart": 50_000, "dst": 5_000}
REGULAR_EVERY = 10


def make_env(config: TrainConfig) -> Environment[Any]:
    """The paper's instance of the problem."""
    if config.env == "dst":
        return DeepSeaTreasure(observation=config.observation)
    return Minecart(observation=config.observation)


def make_agent(config: TrainConfig) -> Agent:
    """The agent of that name."""
    match config.agent:
        case "cn":
            return ConditionedNetwork()
        case "cn-active":
            return ConditionedNetwork(train_on="active")
        case "cn-uvfa":
            return ConditionedNetwork(train_on="history")
        case "uvfa":
            return UVFA()
        case "mo":
            return MultiObjectiveDQN()
        case "naive":
            return Naive()
        case "mn":
            from windvane.agents.multi_network import MultiNetwork

            return MultiNetwork(kappa=config.kappa, reuse=config.reuse, room=config.room)


def make_replay(config: TrainConfig, env: Environment[Any]) -> ReplayBuffer[Any]:
    """The retention rule of that name."""
    capacity = config.capacity
    exponent, offset = config.priority_exponent, config.priority_offset
    match config.replay:
        case "standard":
            return StandardReplay(capacity, priority_exponent=exponent, priority_offset=offset)
        case "sel":
            return SelectiveReplay(capacity, priority_exponent=exponent, priority_offset=offset)
        case "exp":
            return ExplorationReplay(capacity, priority_exponent=exponent, priority_offset=offset)
        case "der":
            signature = ReturnSignature(env.num_objectives, config.gamma)
            most = config.trajectories or max(capacity // 10, 1)
            return DiverseReplay(
                capacity,
                signature,
                trajectories=most,
                priority_exponent=exponent,
                priority_offset=offset,
            )


def make_schedule(config: TrainConfig, env: Environment[Any]) -> WeightSchedule:
    """Sparse or regular changes, or one of them (see `run_schedules`)."""
    objectives, every = env.num_objectives, config.weights_every
    made: dict[str, WeightSchedule] = {
        "sparse": SparseChanges(objectives, every or SPARSE_EVERY[config.env]),
        "regular": RegularChanges(objectives, every or REGULAR_EVERY),
    }
    kinds = tuple(made[kind] for kind in config.kinds)
    return kinds[0] if len(kinds) == 1 else OneOf(kinds)


def run_schedules(config: TrainConfig, schedule: WeightSchedule) -> PyTree[Array]:
    """What differs between the schedules of the runs: arrays, with a leading axis of runs."""
    kinds, seeds = len(config.kinds), len(config.seed_numbers)
    arrays = eqx.filter(schedule, eqx.is_array)
    every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (kinds * seeds, *leaf.shape)), arrays)
    if kinds == 1:
        return every
    return eqx.tree_at(lambda s: s.chosen, every, jnp.repeat(jnp.arange(kinds), seeds))


def make_trainer(
    config: TrainConfig,
    *,
    env: Environment[Any] | None = None,
    agent: Agent | None = None,
    replay: ReplayBuffer[Any] | None = None,
    weights: WeightSchedule | None = None,
) -> Trainer:
    """All parts together; what is given is used instead of what the configuration names."""
    config = config.resolved()
    names = Hyperparameters.__dataclass_fields__
    settings = Hyperparameters(**{name: getattr(config, name) for name in names})
    sizes = Architecture.__dataclass_fields__
    env = make_env(config) if env is None else env
    return Trainer(
        env=env,
        agent=make_agent(config) if agent is None else agent,
        replay=make_replay(config, env) if replay is None else replay,
        schedule=make_schedule(config, env) if weights is None else weights,
        architecture=Architecture(**{name: getattr(config, name) for name in sizes}),
        settings=settings,
    )
