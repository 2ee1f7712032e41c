"""A trained policy: what to do for an observation and weights; to keep in a file, and to play.

A file holds the network's arrays (safetensors) and, as a JSON header, the configuration it was
trained by: loading it never runs code.
"""

import json
from pathlib import Path
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from windvane.agents.core import Agent
from windvane.agents.multi_network import MultiNetwork, best_policy
from windvane.envs.environment import Environment
from windvane.envs.plans import Plan
from windvane.errors import InputError
from windvane.files import atomic_write
from windvane.networks import Architecture, QNetwork
from windvane.training.config import TrainConfig
from windvane.weights import check_weights

FORMAT = 1

Observation = Num[Array, "..."] | Num[np.ndarray, "..."]


@final
class Policy:
    """Greedy for any weights; `env` is what it was trained on, `config` how, `seed` which run."""

    def __init__(
        self, config: TrainConfig, env: Environment[Any], agent: Agent, network: Any, seed: int
    ):
        """Put a policy together from its parts."""
        self.config, self.seed = config, seed
        self.env, self.agent, self.network = env, agent, network

    def q_values(self, observation: Any, weights: Any) -> np.ndarray:
        """Q-values of one observation (actions, outputs), or of a batch of them, which may have a
        weight vector each.
        """
        observations, weights, single = self._check(observation, weights)
        values = np.asarray(_q_values(self.network, observations, weights))
        return values[0] if single else values

    def act(self, observation: Any, weights: Any) -> Any:
        """The best action for an observation and weights, or the best actions of a batch."""
        observations, weights, single = self._check(observation, weights)
        actions = np.asarray(_act(self.agent, self.network, observations, weights))
        return int(actions[0]) if single else actions

    def plan(self, weights: Any) -> "PolicyPlan":
        """The policy for fixed weights, as something to play or to film."""
        vector = jnp.asarray(check_weights(weights, self.env.num_objectives), jnp.float32)
        return PolicyPlan(self.env, self.agent, self.network, vector)

    def save(self, path: str | Path) -> None:
        """Write the policy to one file."""
        from safetensors.numpy import save

        header = {"format": FORMAT, "seed": self.seed, "config": self.config.to_json()}
        if isinstance(self.network, BestOfSet):
            header["policies"] = len(self.network.values)
        arrays = jax.tree.leaves(eqx.filter(self.network, eqx.is_array))
        named = {f"array{i:04d}": np.asarray(array) for i, array in enumerate(arrays)}
        data = save(named, {"windvane": json.dumps(header)})
        atomic_write(Path(path), lambda file: file.write(data))

    @staticmethod
    def load(
        path: str | Path, *, env: Environment[Any] | None = None, agent: Agent | None = None
    ) -> "Policy":
        """Read a policy; parts of the user's own that it was trained with must be given again."""
        path = Path(path)
        header, arrays = _read(path)
        config = TrainConfig.from_json(header.get("config"), str(path))
        own = {"env": env, "agent": agent}
        trainer = config.build(**{name: part for name, part in own.items() if part is not None})
        number = header.get("policies") if isinstance(trainer.agent, MultiNetwork) else None
        like = _shape_of(trainer.agent, trainer.env, trainer.architecture, number)
        abstract, static = eqx.partition(like, lambda x: isinstance(x, jax.ShapeDtypeStruct))
        wanted, structure = jax.tree.flatten(abstract)
        found = [(a.shape, a.dtype) for a in arrays]
        if found != [(leaf.shape, leaf.dtype) for leaf in wanted]:
            raise InputError(f"{path} holds another network than its configuration describes")
        leaves = [jnp.asarray(array) for array in arrays]
        network = eqx.combine(jax.tree.unflatten(structure, leaves), static)
        return Policy(config, trainer.env, trainer.agent, network, header.get("seed", 0))

    def _check(self, observation: Any, weights: Any) -> tuple[Array, Float[Array, "n o"], bool]:
        like = jax.eval_shape(lambda key: self.env.observe(self.env.reset(key)), jax.random.key(0))
        observations = np.asarray(observation)
        single = observations.shape == like.shape
        if not single and observations.shape[1:] != like.shape:
            raise InputError(
                f"an observation must have the shape {like.shape}, not {observations.shape}"
            )
        if not np.can_cast(observations.dtype, like.dtype, "same_kind"):
            raise InputError(f"an observation must be of {like.dtype}, not {observations.dtype}")
        observations = observations[None] if single else observations
        vectors = np.asarray(weights, float) if np.ndim(weights) == 2 else [weights]
        vectors = np.stack([check_weights(row, self.env.num_objectives) for row in vectors])
        if len(vectors) not in (1, len(observations)):
            raise InputError(
                f"there must be one weight vector or one for each of {len(observations)} "
                f"observations, not {len(vectors)}"
            )
        vectors = np.broadcast_to(vectors, (len(observations), self.env.num_objectives))
        return jnp.asarray(observations, like.dtype), jnp.asarray(vectors, jnp.float32), single


@final
class BestOfSet(eqx.Module):
    """Networks of which the one with the best value at the start, for the weights, answers."""

    networks: QNetwork
    values: Float[Array, "policies objectives"]

    def __call__(self, observation: Observation, weights: Array) -> Float[Array, "a outputs"]:
        """Q-values of one observation for one weight vector."""
        best = best_policy(self.values, jnp.ones(len(self.values), bool), weights)
        return jax.tree.map(lambda leaf: leaf[best], self.networks)(observation, weights)


def trained_network(agent: Agent, env: Environment[Any], run: Any) -> Any:
    """What a run has learned: its network, or where it keeps a set, that and the set."""
    if not isinstance(agent, MultiNetwork):
        return run.online
    start = env.observe(env.reset(jax.random.key(0)))
    value = agent.stateless_value(run.online, start, run.active)
    held = run.memory.held
    old, new = (run.memory.networks, run.memory.values), (run.online, value)
    both = jax.tree.map(lambda many, one: jnp.concatenate([many[held], one[None]]), old, new)
    return BestOfSet(*both)


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


@eqx.filter_jit
def _act(agent: Agent, network: Any, observations: Any, weights: Any) -> Int[Array, " n"]:
    return jax.vmap(lambda o, w: agent.act(network, o, w))(observations, weights)


@eqx.filter_jit
def _q_values(network: Any, observations: Any, weights: Any) -> Float[Array, "n a outputs"]:
    return jax.vmap(network)(observations, weights)


def _shape_of(
    agent: Agent, env: Environment[Any], architecture: Architecture, number: int | None
) -> Any:
    """The network without its numbers, or a set of `number` of them."""

    def build(key: Any) -> Any:
        network = agent.build(env, architecture, key)
        if number is None:
            return network
        stacked = jax.tree.map(lambda leaf: jnp.zeros((number, *leaf.shape)), network)
        return BestOfSet(stacked, jnp.zeros((number, env.num_objectives)))

    return eqx.filter_eval_shape(build, jax.random.key(0))


def _read(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("windvane", "null"))
            arrays = [file.get_tensor(name) for name in sorted(file.keys())]
    except OSError as error:
        raise InputError(f"cannot read the policy {path}: {error.strerror or error}") from error
    except (SafetensorError, ValueError) as error:
        raise InputError(f"{path} is not a policy: {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        raise InputError(f"{path} is not a policy: it has no header of Windvane's")
    if header["format"] > FORMAT:
        raise InputError(
            f"{path} was written by a newer Windvane (format {header['format']}, and this one "
            f"reads up to {FORMAT}): install a newer one"
        )
    return header, arrays
