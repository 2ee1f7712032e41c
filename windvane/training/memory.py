"""The memory that a training needs, estimated from shapes: nothing is allocated or compiled.

What may not live here: limits of single settings (see `config`).
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane.envs.environment import Environment
from windvane.envs.episodes import reset_episode
from windvane.envs.resolve import World
from windvane.errors import InputError
from windvane.learning.learner import Learner
from windvane.learning.rollout_learner import RolloutLearner
from windvane.machine import memory_bytes
from windvane.spec import EnvSpec
from windvane.training.config import TrainConfig

PROCESS_BYTES = 16 * 2**20
"""Least memory of a process with a copy of an environment."""
MAJOR = 0.25
"""Share of the whole that makes a part worth naming."""


@dataclass(frozen=True)
class Part:
    """Memory for one purpose, and the settings that make it large."""

    what: str
    settings: tuple[str, ...]
    bytes: int


def check_memory(config: TrainConfig, learner: Learner | RolloutLearner, world: World) -> None:
    """Complain about a training that this machine has no memory for."""
    there, where = available()
    if there is None:
        return
    parts = estimate(config, learner, world)
    needed = sum(part.bytes for part in parts)
    if needed <= there:
        return
    major = sorted(parts, key=lambda part: -part.bytes)
    major = [part for part in major if part.bytes >= MAJOR * needed]
    settings = list(dict.fromkeys(name for part in major for name in part.settings))
    fewer = ", or fewer seeds" if _number_of_runs(config) > 1 else ""
    raise InputError(
        f"this training needs about {_gib(needed)} GiB of memory, most of it for "
        f"{' and '.join(part.what for part in major)}, and {where} has {_gib(there)} GiB: choose a "
        f"smaller {' or '.join(settings)}{fewer}"
    )


def available() -> tuple[int | None, str]:
    """Bytes of memory where arrays lie, if they are known, and a name for it."""
    devices = jax.local_devices()
    limits = [_limit(device) for device in devices]
    if devices[0].platform != "cpu" and all(limits):
        # Runs are shared out over the devices.
        return sum(limits), "the accelerator" if len(limits) == 1 else "all accelerators"
    return memory_bytes(), "this machine"


def _limit(device: Any) -> int:
    """Bytes of memory of a device; 0 where it does not say."""
    try:
        return int((device.memory_stats() or {}).get("bytes_limit") or 0)
    except Exception:  # some plugins have no such function
        return 0


def estimate(
    config: TrainConfig, learner: Learner | RolloutLearner, world: World
) -> tuple[Part, ...]:
    """What is allocated for certain, by purpose: at least that much is needed."""
    runs, key = _number_of_runs(config), jax.random.key(0)
    spec, native = learner.spec, isinstance(world, Environment)
    if isinstance(learner, Learner):
        weights = jnp.zeros((1, spec.num_objectives))
        state: Any = eqx.filter_eval_shape(learner.init, key, weights)
        replay, history = _bytes(state.replay), _bytes(state.history)
        networks = _bytes(state) - replay - history
        rows = config.batch_size
    else:
        state = eqx.filter_eval_shape(learner.init, key)
        replay, history, networks = 0, 0, _bytes(state)
        rows = config.cycle_steps // learner.agent.minibatches
    # Gradients, as a tree and as one array, beside what each layer passes on.
    layers = config.encoder_depth + 2 * config.depth
    learning = 2 * _bytes(state.online) + 4 * rows * config.width * layers
    taken = 0
    if config.rollout:
        seen = spec.stack * frame_bytes(spec) + 4 * (3 * spec.num_objectives + 4)
        taken = config.cycle_steps * seen
    copies = 0
    if native:
        one = eqx.filter_eval_shape(reset_episode, world, key)
        copies = config.num_envs * _bytes(one)
    elif config.vector_mode == "async":
        copies = config.num_envs * PROCESS_BYTES
    # Of a state there are two when it is begun, and when a Gymnasium run is written. On a CPU, and
    # in Gymnasium environments, runs learn one after another.
    turns = not native or (config.rollout > 0 and jax.default_backend() == "cpu")
    at_once = 1 if turns else runs
    kept = 2 * runs
    rows_by = "num_envs" if config.rollout else "batch_size"
    gradients = max(at_once * learning - runs * (networks + replay + history), 0)
    return (
        Part("networks", ("width", "depth"), kept * networks),
        Part("replay buffers", ("capacity",), kept * replay),
        Part("past weights", ("weight_history_size",), kept * history),
        Part("environments", ("num_envs",), (kept if native else runs) * copies),
        Part("rollouts", ("num_envs", "rollout"), at_once * taken),
        Part("gradients", ("width", "depth", rows_by), gradients),
    )


def frame_bytes(spec: EnvSpec) -> int:
    """Bytes of one frame as it is stored."""
    return int(np.prod(spec.frame.shape)) * np.dtype(spec.frame.dtype).itemsize


def _number_of_runs(config: TrainConfig) -> int:
    return len(config.seed_numbers) * len(config.schedules)


def _bytes(tree: Any) -> int:
    """Bytes of arrays that there are the shapes of; a random key is two numbers of 32 bits."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]
    return sum(
        int(np.prod(leaf.shape, dtype=object))
        * (8 if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.dtype.itemsize)
        for leaf in leaves
    )


def _gib(number: int) -> str:
    gib = number / 2**30
    return f"{gib:,.0f}" if gib >= 10 else f"{gib:.1f}"
