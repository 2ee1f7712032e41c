"""A trained policy: what to do for an observation and weights; to keep in a file, and to run.

A file holds the network's arrays (safetensors) and, as a JSON header, what the environment looks
like and how the policy was trained: loading it never runs code. What may not live here: how a file
is laid out (see `policy_files`).
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from windvane.agents import AGENTS
from windvane.agents.core import Agent
from windvane.envs.environment import Environment
from windvane.envs.plans import Plan
from windvane.envs.resolve import World
from windvane.errors import LARGEST_COUNT, InputError, require_int, shown
from windvane.files import check_name, faults_of
from windvane.networks import Architecture
from windvane.policy_files import checksum, read_policy, write_policy
from windvane.spec import EnvSpec
from windvane.training.build import Training, check_custom, open_world
from windvane.training.config import PARTS, TrainConfig
from windvane.weights import check_weights

MAX_POLICIES = 4096
"""Networks that one file may hold."""


@final
class Policy:
    """A trained policy: it acts greedily for any weights.

    `spec` describes the environment, `config` the training, `seed` the run, and `step` the steps
    that it was trained for.
    """

    def __init__(
        self,
        spec: EnvSpec,
        agent: Agent,
        network: Any,
        config: TrainConfig,
        seed: int,
        *,
        step: int | None = None,
        world: World | None = None,
        trusted: bool = False,
    ):
        """Put a policy together from its parts; `world` is its environment, if at hand."""
        self.spec, self.agent, self.network = spec, agent, network
        self.config, self.seed, self.step = config, seed, config.steps if step is None else step
        self._world, self._trusted = world, trusted

    def __repr__(self) -> str:
        """The agent, the environment and the seed."""
        return f"Policy({self.config.agent} on {self.config.env}, seed {self.seed})"

    @property
    def checksum(self) -> str:
        """SHA-256 sum of the network's numbers."""
        return checksum(_arrays(self.network))

    @property
    def world(self) -> World:
        """The environment it was trained in, rebuilt from the configuration where need be."""
        if self._world is None:
            world = open_world(self.config, trusted=self._trusted)
            if isinstance(world, Environment) and world.spec != self.spec:
                raise InputError(
                    f"the policy was trained on another {self.config.env} than its configuration "
                    "describes: what they show or reward differs"
                )
            self._world = world
        return self._world

    @property
    def env(self) -> Environment[Any]:
        """The native environment it was trained in."""
        if not isinstance(self.world, Environment):
            raise InputError(f"{self.config.env} is a Gymnasium environment, not a native one")
        return self.world

    def q_values(self, observation: Any, weights: Any) -> np.ndarray:
        """Q-values of one observation (actions, outputs), or of a batch of them, which may have a
        weight vector each; discounted, and scaled by the configuration's `reward_scale`.
        """
        observations, vectors, number, single = self._check(observation, weights)
        values = np.asarray(self._programs[1](self._leaves, observations, vectors))
        return values[0] if single else values[:number]

    def act(self, observation: Any, weights: Any) -> Any:
        """The best action for an observation and weights, or the best actions of a batch."""
        observations, vectors, number, single = self._check(observation, weights)
        actions = np.asarray(self._programs[0](self._leaves, observations, vectors))
        return int(actions[0]) if single else actions[:number]

    def act_many(self, observations: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """As `act` for a batch, without checks: for loops that have made them before."""
        return np.asarray(self._programs[0](self._leaves, observations, weights))

    def plan(self, weights: Any) -> "PolicyPlan":
        """The policy for fixed weights, to run in its native environment."""
        vector = jnp.asarray(check_weights(weights, self.spec.num_objectives), jnp.float32)
        return PolicyPlan(self.env, self.agent, self.network, vector)

    def save(self, path: str | Path) -> None:
        """Write the policy to one file."""
        header = {
            "seed": self.seed,
            "step": self.step,
            "spec": self.spec.to_json(),
            "sizes": self.agent.policy_sizes(self.network),
            "config": self.config.to_json(),
        }
        write_policy(Path(path), header, _arrays(self.network))

    @staticmethod
    def load(
        path: str | Path, *, env: Any = None, agent: Any = None, trust: bool = False
    ) -> "Policy":
        """Read a policy. An environment or agent that was an object made in Python must be given
        again; one that is an import path is imported only with `trust`, or if it is given again.
        """
        check_name(path)
        path = Path(path)
        header, arrays = read_policy(path)
        config = TrainConfig.from_json(header.get("config"), str(path))
        objects = {"env": env, "agent": agent}
        objects, trusted = given_again(config, objects, trust)
        if header["format"] == 1 and objects:
            # The first format did not say which parts were objects made in Python.
            names = {kind: {"type": type(part).__name__} for kind, part in objects.items()}
            config = replace(config, custom=names)
        needed = {kind: known for kind, known in config.custom.items() if kind == "agent"}
        if needed or "agent" in objects:
            check_custom(config, objects, kinds=("agent",))
        made = objects.get("agent")
        if made is None:
            made = AGENTS.make(config.agent, config.args("agent"), trusted="agent" in trusted)
        world = None
        if "env" in objects:
            check_custom(config, objects, kinds=("env",))
            world = open_world(config, objects["env"])
        if header["format"] == 1:
            world = open_world(config, trusted=False) if world is None else world
            spec = world.spec  # type: ignore[union-attr]
            sizes = {"policies": header.get("policies")} if "policies" in header else {}
        else:
            spec = EnvSpec.from_json(header.get("spec"), str(path))
            sizes = header.get("sizes")
        network = _rebuild(path, made, spec, config, _check_sizes(sizes, path), arrays)
        # Files of earlier versions have none.
        if header.get("checksum", checksum(arrays)) != checksum(arrays):
            raise InputError(f"the policy {path} is damaged: its network's checksum is wrong")
        seed, step = header.get("seed", 0), header.get("step")
        with faults_of(path, "the policy"):
            for name, value in (("seed", seed), ("step", 0 if step is None else step)):
                require_int(f"its {name}", value, 0, LARGEST_COUNT)
        return Policy(
            spec, made, network, config, seed, step=step, world=world, trusted="env" in trusted
        )

    def _check(self, observation: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, int, bool]:
        """Arrays of a batch whose size is a power of two, how many of it count, and whether one
        observation was given.
        """
        shape, dtype, objectives = self._expected
        try:
            observations = np.asarray(observation)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(
                f"an observation must be an array, not {shown(observation)}"
            ) from error
        if observations.ndim == 0 and shape == (1,):  # a Discrete space's number
            observations = observations[None]
        single = observations.shape == shape
        if not single and (observations.ndim != len(shape) + 1 or observations.shape[1:] != shape):
            raise InputError(
                f"an observation must have the shape {shape}, not {observations.shape}"
            )
        if observations.dtype != dtype:
            if not np.can_cast(observations.dtype, dtype, "same_kind"):
                raise InputError(f"an observation must be of {dtype}, not {observations.dtype}")
            observations = observations.astype(dtype)
        if single:
            observations = observations[None]
        number = len(observations)
        if number == 0:
            raise InputError("there must be at least one observation, and the batch is empty")
        if _dimensions(weights) == 2:
            rows = np.stack([check_weights(row, objectives) for row in weights])
            if len(rows) not in (1, number):
                raise InputError(
                    f"there must be one weight vector or one for each of {number} observations, "
                    f"not {len(rows)}"
                )
        else:
            rows = check_weights(weights, objectives)[None]
        size = 1 << (number - 1).bit_length()
        vectors = np.empty((size, objectives), np.float32)
        vectors[:number] = rows
        if size != number:
            vectors[number:] = rows[-1]
            padding = np.broadcast_to(observations[-1], (size - number, *shape))
            observations = np.concatenate([observations, padding])
        return observations, vectors, number, single

    @cached_property
    def _expected(self) -> tuple[tuple[int, ...], np.dtype, int]:
        spec = self.spec
        return spec.observation_shape, np.dtype(spec.frame.dtype), spec.num_objectives

    @cached_property
    def _leaves(self) -> tuple[Array, ...]:
        return tuple(jax.tree.leaves(eqx.filter(self.network, eqx.is_array)))

    @cached_property
    def _programs(self) -> tuple[Any, Any]:
        """Compiled functions of the network's plain arrays, which are the cheapest to call."""
        arrays, static = eqx.partition(self.network, eqx.is_array)
        structure, agent = jax.tree.structure(arrays), self.agent

        def network(leaves: Any) -> Any:
            return eqx.combine(jax.tree.unflatten(structure, leaves), static)

        def act(leaves: Any, observations: Any, weights: Any) -> Array:
            one = network(leaves)
            return jax.vmap(lambda o, w: agent.act(one, o, w))(observations, weights)

        def q_values(leaves: Any, observations: Any, weights: Any) -> Array:
            return jax.vmap(network(leaves))(observations, weights)

        return jax.jit(act), jax.jit(q_values)


def trained_policy(training: Training, network: Any, run: int, step: int | None = None) -> Policy:
    """The policy of one run of a training; `network` is what the run has learned by `step`."""
    learner, config = training.learner, training.config.runs[run]
    return Policy(
        learner.spec, learner.agent, network, config, config.seed_numbers[0],
        step=step, world=training.world,
    )  # fmt: skip


def given_again(
    config: TrainConfig, given: dict[str, Any], trust: bool
) -> tuple[dict[str, Any], set[str]]:
    """Objects that were given for parts of a run, and the parts whose names may be imported: those
    that were named again, or all.
    """
    objects: dict[str, Any] = {}
    trusted: set[str] = set(PARTS) if trust else set()
    for kind, part in given.items():
        names = isinstance(part, list | tuple) and all(isinstance(name, str) for name in part)
        if isinstance(part, str) or names:
            named = getattr(config, kind)
            if part != named:
                raise InputError(f"this run's {kind} is {named!r}, not {part!r}")
            trusted.add(kind)
        elif part is not None:
            objects[kind] = part
    return objects, trusted


def _dimensions(weights: Any) -> int:
    """Axes of weights; 1 for what is no array, to be refused by name."""
    try:
        return np.ndim(weights)
    except (TypeError, ValueError, RecursionError):
        return 1


@final
class PolicyPlan(Plan):
    """A policy for fixed weights, without a memory."""

    env: Environment[Any]
    agent: Agent
    network: Any
    weights: Float[Array, " objectives"]

    def start(self) -> None:
        """Nothing to remember."""
        return

    def act(self, memory: None, state: Any) -> tuple[Int[Array, ""], None]:
        """The best action."""
        observation = self.env.observe(state)
        return self.agent.act(self.network, observation, self.weights), memory


def _rebuild(
    path: Path,
    agent: Agent,
    spec: EnvSpec,
    config: TrainConfig,
    sizes: dict[str, int],
    arrays: list[np.ndarray],
) -> Any:
    """The network of a file, if its arrays are those that the rest of the file describes."""
    fields = Architecture.__dataclass_fields__
    architecture = Architecture(**{name: getattr(config.resolved(), name) for name in fields})

    def build(key: Any) -> Any:
        return agent.policy_template(agent.build(spec, architecture, key), sizes)

    like = eqx.filter_eval_shape(build, jax.random.key(0))
    abstract, static = eqx.partition(like, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    wanted, structure = jax.tree.flatten(abstract)
    if [(a.shape, a.dtype) for a in arrays] != [(leaf.shape, leaf.dtype) for leaf in wanted]:
        raise InputError(f"{path} holds another network than its configuration describes")
    if not all(np.isfinite(array).all() for array in arrays):
        raise InputError(f"{path} holds a network with numbers that are not finite")
    leaves = [jnp.asarray(array) for array in arrays]
    return eqx.combine(jax.tree.unflatten(structure, leaves), static)


def _arrays(network: Any) -> list[np.ndarray]:
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_array))
    return [np.asarray(leaf) for leaf in leaves]


def _check_sizes(sizes: Any, path: Path) -> dict[str, int]:
    good = isinstance(sizes, dict) and all(
        isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= MAX_POLICIES
        for size in sizes.values()
    )
    if not good:
        raise InputError(f"{path} has sizes of its network that cannot be meant: {shown(sizes)}")
    return sizes
