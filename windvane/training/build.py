"""From a configuration to the parts of a training. Objects made in Python may stand in."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from windvane.agents import AGENTS
from windvane.agents.core import Agent
from windvane.agents.pqn import PQN
from windvane.envs import ENVS
from windvane.envs.checking import check_environment
from windvane.envs.environment import Environment, require_observation
from windvane.envs.resolve import GymnasiumEnv, World, from_object, resolve_env
from windvane.errors import InputError, shown
from windvane.fingerprint import fingerprint, type_name
from windvane.learning.codec import FrameCodec
from windvane.learning.hyperparameters import Hyperparameters
from windvane.learning.learner import Learner
from windvane.learning.rollout_learner import RolloutLearner
from windvane.learning.state_codec import StateCodec
from windvane.live import LiveWeights
from windvane.networks import Architecture
from windvane.registry import CUSTOM
from windvane.replay import REPLAYS
from windvane.replay.buffer import ReplayBuffer
from windvane.replay.setup import ReplaySetup
from windvane.schedules import (
    LIVE,
    ChosenWeights,
    OneOf,
    ScheduleSetup,
    WeightSchedule,
    check_objectives,
    make_schedule,
)
from windvane.spec import EnvSpec
from windvane.training.config import PARTS, TrainConfig
from windvane.training.fused import FusedDriver
from windvane.training.fused_session import FusedSession
from windvane.training.host import HostDriver
from windvane.training.host_loop import WeightSource
from windvane.training.host_rollouts import HostRolloutDriver
from windvane.training.host_session import HostSession
from windvane.training.memory import check_memory, frame_bytes
from windvane.training.parallel import RECORDED, ParallelDriver
from windvane.training.session import Session

REPLAY_BYTES_LIMIT = 32 * 2**30
"""Memory that the frames of one replay buffer may take."""
CHUNK_BYTES_LIMIT = 2 * 2**30
"""Memory that what happens in the steps of one chunk may take."""


@dataclass(frozen=True)
class Training:
    """The parts of a training, built and checked against each other."""

    config: TrainConfig
    world: World
    learner: Learner | RolloutLearner
    schedule: WeightSource

    @property
    def spec(self) -> EnvSpec:
        """What the agent knows of the environment."""
        return self.learner.spec

    def session(self, numbers: Sequence[dict[str, float]] | None = None) -> Session:
        """The training in progress, before its first step. With `numbers`, settings by name, all
        its runs are there once per element, which has its own; see `windvane.training.sweep`.
        """
        config = self.config
        seeds = np.asarray([run.seed_numbers[0] for run in config.runs])
        if numbers is not None:
            return self._sweep(seeds, numbers)
        if isinstance(self.world, Environment):
            live = self.schedule if isinstance(self.schedule, LiveWeights) else None
            schedule = self.schedule if live is None else live.snapshot()
            if not isinstance(schedule, WeightSchedule):
                raise InputError(
                    "a native environment is trained in a compiled loop, which cannot call a "
                    "function for its weights: use LiveWeights or a WeightSchedule"
                )
            if isinstance(self.learner, RolloutLearner):
                driver = ParallelDriver(
                    self.learner, self.world, schedule, config.num_envs, config.rollout
                )
            else:
                driver = FusedDriver(self.learner, self.world, schedule)
            return FusedSession(driver, seeds, run_schedules(config, schedule), live)
        if isinstance(self.learner, RolloutLearner):
            driver = HostRolloutDriver(self.learner, self.schedule, config.num_envs, config.rollout)
        else:
            interval = config.cycle_steps
            starts = -(-config.learning_starts // interval) * interval
            driver = HostDriver(self.learner, self.schedule, config.num_envs, starts)
        arrays = run_schedules(config, self.schedule)
        return HostSession(driver, seeds, arrays, _env_maker(config, self.world))

    def _sweep(
        self, seeds: Int[np.ndarray, " runs"], numbers: Sequence[dict[str, float]]
    ) -> FusedSession:
        assert isinstance(self.learner, Learner)
        assert isinstance(self.world, Environment)
        assert isinstance(self.schedule, WeightSchedule)
        times = len(numbers)
        each = {
            name: jnp.repeat(jnp.asarray([one[name] for one in numbers], jnp.float32), len(seeds))
            for name in numbers[0]
        }
        schedules = jax.tree.map(
            lambda leaf: jnp.tile(leaf, (times, *(1 for _ in leaf.shape[1:]))),
            run_schedules(self.config, self.schedule),
        )
        driver = FusedDriver(self.learner, self.world, self.schedule)
        return FusedSession(driver, np.tile(seeds, times), schedules, numbers=each)


def build(config: TrainConfig, *, trusted: Collection[str] = (), **custom: Any) -> Training:
    """All parts together; `env`, `agent`, `replay` and `schedule` given here replace those that the
    configuration names. Names that import code must be of a kind that is `trusted`.
    """
    config = config.resolved()
    check_custom(config, custom)
    world = open_world(config, custom.get("env"), trusted="env" in trusted)
    spec, codec = _spec_and_codec(config, world)
    agent = custom.get("agent")
    if agent is None:
        agent = AGENTS.make(config.agent, config.args("agent"), trusted="agent" in trusted)
    replay = custom.get("replay")
    if replay is None:
        setup = ReplaySetup(
            config.capacity, config.priority_exponent, config.priority_offset,
            spec.num_objectives, config.gamma,
        )  # fmt: skip
        replay = REPLAYS.make(
            config.replay, config.args("replay"), setup, trusted="replay" in trusted
        )
    if not isinstance(agent, Agent):
        raise InputError(f"an object of the class Agent is needed, not {shown(agent)}")
    if not (isinstance(replay, ReplayBuffer) or (replay is None and config.rollout)):
        raise InputError(f"an object of the class ReplayBuffer is needed, not {shown(replay)}")
    learner = _learner(config, spec, codec, agent, replay)
    _check_memory(config, spec, world)
    check_memory(config, learner, world)
    schedule = _schedule(config, spec, custom, "schedule" in trusted)
    _check_choices(config, agent, schedule)
    return Training(config, world, learner, schedule)


def _learner(
    config: TrainConfig, spec: EnvSpec, codec: Any, agent: Agent, replay: ReplayBuffer[Any] | None
) -> Learner | RolloutLearner:
    """The agent with all that it learns by."""
    names = Hyperparameters.__dataclass_fields__
    sizes = Architecture.__dataclass_fields__
    architecture = Architecture(**{name: getattr(config, name) for name in sizes})
    hyperparameters = Hyperparameters(**{name: getattr(config, name) for name in names})
    if (agent.learns_from == "rollouts") != (replay is None):
        needed = "rollout, such as 32" if agent.learns_from == "rollouts" else "a replay rule"
        raise InputError(f"the agent {config.agent} learns from {agent.learns_from}: set {needed}")
    if replay is not None:
        return Learner(spec, agent, replay, codec, architecture, hyperparameters)
    if not isinstance(agent, PQN):
        raise InputError(
            f"an agent that learns from rollouts must be a PQN, and {config.agent} is not"
        )
    if config.cycle_steps % agent.minibatches:
        raise InputError(
            f"minibatches must divide {config.cycle_steps}, the steps of a rollout in all "
            f"environments, and {agent.minibatches} does not"
        )
    updates = config.steps // config.cycle_steps * agent.epochs * agent.minibatches
    total = jnp.asarray(updates, jnp.float32)
    return RolloutLearner(spec, agent, architecture, hyperparameters, total)


def _check_choices(config: TrainConfig, agent: Agent, schedule: WeightSource) -> None:
    """Complain about weights that nobody chooses, or that there is no room for."""
    every = agent.iteration_interval
    if every is not None and config.chunk > every:
        raise InputError(
            f"chunk must be at most {every:,}, the steps between two choices of weights of the "
            f"agent {config.agent}, not {config.chunk:,}"
        )
    if not isinstance(schedule, ChosenWeights):
        return
    if every is None:
        raise InputError(
            f"the schedule chosen is for agents that choose weights, such as gpi-ls, and "
            f"{config.agent} does not"
        )
    room, needed = len(schedule.vectors), getattr(agent, "max_weights", 0)
    if needed > room:
        raise InputError(
            f"the schedule chosen holds {room} weight vectors and the agent {config.agent} may "
            f"choose {needed}: set schedule_args capacity={needed}"
        )


def open_world(config: TrainConfig, env: Any = None, *, trusted: bool = False) -> World:
    """The environment that a configuration names, or the object that stands in for it."""
    if env is None:
        check_custom(config, {}, kinds=("env",))
        return resolve_env(config.env, config.args("env"), config.observation, trusted=trusted)
    return env if isinstance(env, Environment | GymnasiumEnv) else from_object(env)


def run_schedules(config: TrainConfig, schedule: Any) -> PyTree[Array]:
    """What differs between the schedules of the runs: arrays, with a leading axis of runs."""
    kinds, seeds = len(config.schedules), len(config.seed_numbers)
    arrays = eqx.filter(schedule, eqx.is_array) if isinstance(schedule, WeightSchedule) else None
    every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (kinds * seeds, *leaf.shape)), arrays)
    if kinds == 1:
        return every
    return eqx.tree_at(lambda s: s.chosen, every, jnp.repeat(jnp.arange(kinds), seeds))


def check_custom(
    config: TrainConfig, given: dict[str, Any], kinds: Collection[str] = PARTS
) -> None:
    """Complain about objects that are missing, or are not those that a run was trained with."""
    for kind, known in config.custom.items():
        if kind not in kinds:
            continue
        name = str(known.get("type", "")) if isinstance(known, dict) else str(known)
        part = given.get(kind)
        if part is None:
            raise InputError(
                f"the {kind} of this run was an object made in Python ({name}) and cannot be "
                f"rebuilt: give it again, as {kind}=..."
            )
        mark = known.get("fingerprint") if isinstance(known, dict) else None
        # Runs of the first format know the name of the class alone.
        same = type_name(part).endswith(name) if mark is None else fingerprint(part) == mark
        if not same:
            raise InputError(
                f"the {kind} {type_name(part)} given now is not the one that this run was trained "
                f"with, {name}: its parameters differ"
            )
    for kind, part in given.items():
        named = getattr(config, kind)
        if part is not None and kind in kinds and kind not in config.custom:
            raise InputError(
                f"this run's {kind} is {named!r} by name, and an object was given: leave it out"
            )


def describe_custom(parts: dict[str, Any]) -> dict[str, Any]:
    """What a configuration keeps of objects made in Python: names, and how to recognise them."""
    changes: dict[str, Any] = {
        kind: f"{CUSTOM}{type(part).__name__}" for kind, part in parts.items()
    }
    known = {
        kind: {"type": type_name(part), "fingerprint": fingerprint(part)}
        for kind, part in parts.items()
    }
    return changes | {"custom": known}


def _spec_and_codec(config: TrainConfig, world: World) -> tuple[EnvSpec, Any]:
    if isinstance(world, Environment):
        used = {"frame_stack": 1, "frame_size": None, "time_limit": None}
        for name, value in used.items():
            if getattr(config, name) != value:
                raise InputError(
                    f"{name} is for Gymnasium environments, and {config.env} is a native one"
                )
        if config.num_envs > 1 and not config.rollout:
            raise InputError(
                f"num_envs is for Gymnasium environments and for agents that learn from rollouts, "
                f"and {config.env} is a native environment"
            )
        if config.observation != "auto":
            require_observation(world, config.observation)
        return check_environment(world), StateCodec(world)
    from windvane.envs.host import HostEnvs

    options = _host_options(config)
    options["vector_mode"] = "sync"
    number = getattr(world.first, "num_envs", 1)
    envs = HostEnvs(replace(world, make_vector=None), number, **options)
    return envs.spec, FrameCodec(envs.spec)


def _env_maker(config: TrainConfig, world: GymnasiumEnv) -> Callable[[], Any]:
    """Makes the copies of one run; the environment that exists already is used once."""
    from windvane.envs.host import HostEnvs

    unused = [world]

    def make() -> Any:
        one = unused.pop() if unused else replace(world, first=None)
        return HostEnvs(one, config.num_envs, **_host_options(config))

    return make


def _host_options(config: TrainConfig) -> dict[str, Any]:
    names = ("vector_mode", "frame_stack", "frame_size", "one_hot", "time_limit")
    return {name: getattr(config, name) for name in names}


def _schedule(
    config: TrainConfig, spec: EnvSpec, custom: dict[str, Any], trusted: bool
) -> WeightSource:
    given = custom.get("schedule")
    if isinstance(given, LiveWeights):
        if given.num_objectives != spec.num_objectives:
            raise InputError(
                f"the live weights are for {given.num_objectives} objectives, and the environment "
                f"has {spec.num_objectives}"
            )
        return given
    if given is not None and not isinstance(given, WeightSchedule) and callable(given):
        return given
    if given is not None:
        return check_objectives(given, spec.num_objectives, config.schedules[0])
    known = ENVS[config.env].about.get("sparse_every") if config.env in ENVS else None
    setup = ScheduleSetup(spec.num_objectives, config.steps, known or max(config.steps // 20, 1))
    if config.schedules[0].startswith(LIVE):
        live = LiveWeights.from_file(config.schedules[0].removeprefix(LIVE))
        return _schedule(config, spec, {"schedule": live}, trusted)
    made = tuple(
        make_schedule(name, config.args("schedule"), setup, trusted=trusted)
        for name in config.schedules
    )
    return made[0] if len(made) == 1 else OneOf(made)


def _check_memory(config: TrainConfig, spec: EnvSpec, world: World) -> None:
    runs = len(config.seed_numbers) * len(config.schedules)
    # Of every step: weights, returns, and four numbers more.
    per_step = 4 * (2 * spec.num_objectives + 4) * runs
    if config.rollout and isinstance(world, Environment):  # of few environments
        per_step = max(per_step * min(RECORDED, config.num_envs) // config.num_envs, 1)
    for name in ("chunk", "learning_starts"):
        steps = min(getattr(config, name), config.steps)
        if steps * per_step > CHUNK_BYTES_LIMIT:
            raise InputError(
                f"{name} must be at most {CHUNK_BYTES_LIMIT // per_step:,} for "
                f"{runs} runs of {spec.num_objectives} objectives, not "
                f"{getattr(config, name):,}: its steps would take "
                f"{steps * per_step / 2**30:.0f} GiB"
            )
    frame = frame_bytes(spec)
    if config.rollout:
        total = config.cycle_steps * spec.stack * frame * runs
        if total > REPLAY_BYTES_LIMIT:
            raise InputError(
                f"a rollout of {config.cycle_steps:,} steps with frames of {spec.frame.shape} "
                f"takes {total / 2**30:.0f} GiB: choose a smaller num_envs or rollout"
            )
        return
    if isinstance(world, Environment):
        return
    total = config.capacity * (spec.stack + 1) * frame * runs
    if total > REPLAY_BYTES_LIMIT:
        raise InputError(
            f"a capacity of {config.capacity:,} transitions with frames of {spec.frame.shape} "
            f"takes {total / 2**30:.0f} GiB: choose a smaller capacity or frame_size"
        )
