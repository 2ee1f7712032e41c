"""A policy that runs start with: where it comes from, and whether its network fits.

What may not live here: how a learner begins with a network (see `Learner.init`).
"""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from windvane.agents.core import Agent
from windvane.errors import InputError, shown
from windvane.networks import Architecture, QNetwork
from windvane.policy import Policy
from windvane.registry import CUSTOM
from windvane.spec import EnvSpec
from windvane.training.build import Training

SIZES = ("width", "depth", "encoder_depth", "dueling", "layer_norm", "feature_scaling")
"""Settings that a network follows from, beside the environment."""
FOR_VECTORS = ("encoder_depth", "feature_scaling")
"""Those that make no difference to images."""
OBJECT = f"{CUSTOM}Policy"
"""Stands in a configuration for a policy that was an object made in Python."""
SUITED = "cn, cn-active, cn-uvfa, envelope and pqn"


def open_start(given: Any) -> Policy:
    """The policy itself, or the one in a file. Nothing that the file names is imported."""
    if isinstance(given, Policy):
        return given
    if given == OBJECT:
        raise InputError(
            "the policy that this run starts with was an object made in Python and cannot be "
            "rebuilt: give it again, as start_from=..."
        )
    if not isinstance(given, str | Path):
        raise InputError(
            f"start_from must be a policy or the path of a saved one, not {shown(given)}"
        )
    return Policy.load(given)


def describe_start(given: Any, policy: Policy) -> dict[str, Any]:
    """What a configuration keeps of a policy that runs start with."""
    name = OBJECT if isinstance(given, Policy) else str(given)
    return {"start_from": name, "start_checksum": policy.checksum}


def check_start(checksum: str | None, policy: Policy, name: str = "the policy given") -> None:
    """Complain about another policy than the one that a configuration starts with."""
    if checksum not in (None, policy.checksum):
        raise InputError(
            f"{name} is not the policy that this run starts with: its network's checksum differs"
        )


def architecture_of(policy: Policy) -> dict[str, Any]:
    """The sizes of a policy's network, as settings."""
    return {name: getattr(policy.config, name) for name in SIZES}


def start_network(training: Training, policy: Policy | None) -> Any:
    """The network that runs start with, checked against them; None for random ones. `policy` is one
    that was given again; otherwise it is read from where the configuration says.
    """
    config = training.config
    if config.start_from is None:
        if policy is not None:
            raise InputError("this run starts with random networks: leave start_from out")
        return None
    policy = open_start(config.start_from) if policy is None else policy
    name = "the policy to start from" if config.start_from == OBJECT else config.start_from
    check_start(config.start_checksum, policy, name)
    learner = training.learner
    _check_agent(f"the agent {config.agent}", learner.agent, learner.spec)
    _check_agent(f"the agent {policy.config.agent} of {name}", policy.agent, policy.spec)
    _check_spec(name, policy.spec, learner.spec)
    theirs, ours = architecture_of(policy), {key: getattr(config, key) for key in SIZES}
    apart = [
        key
        for key in SIZES
        if theirs[key] != ours[key] and not (key in FOR_VECTORS and learner.spec.frame.is_image)
    ]
    if apart:
        differ = " and ".join(
            f"{key} {_text(theirs[key])}, not {_text(ours[key])}" for key in apart
        )
        raise InputError(f"the network of {name} has {differ}: leave these settings out")
    like = eqx.filter_eval_shape(
        learner.agent.build, learner.spec, learner.architecture, jax.random.key(0)
    )
    abstract, static = eqx.partition(like, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    wanted, structure = jax.tree.flatten(abstract)
    leaves = jax.tree.leaves(eqx.filter(policy.network, eqx.is_array))
    if [(a.shape, a.dtype) for a in leaves] != [(a.shape, a.dtype) for a in wanted]:
        raise InputError(f"the network of {name} is another than the agent {config.agent} has")
    # The arrays are the policy's, what they are computed in is this run's.
    return eqx.combine(jax.tree.unflatten(structure, leaves), static)


def _check_agent(who: str, agent: Agent, spec: EnvSpec) -> None:
    """Complain about an agent whose parameters are not one network that is given the weights and
    returns vectors.
    """
    like = eqx.filter_eval_shape(agent.build, spec, Architecture(width=1), jax.random.key(0))
    suited = isinstance(like, QNetwork) and agent.conditioned
    if not (suited and like.head.outputs == spec.num_objectives):
        raise InputError(
            f"start_from is for agents with one network that is given the weights, such as "
            f"{SUITED}, and {who} has another"
        )


def _check_spec(name: str, theirs: EnvSpec, ours: EnvSpec) -> None:
    """Complain about a policy for an environment that shows or rewards something else."""
    start = f"{name} is for another environment or observation: its policy has"
    for has, first, second in (
        ("a number of actions of", theirs.num_actions, ours.num_actions),
        ("the objectives", ", ".join(theirs.objectives), ", ".join(ours.objectives)),
        ("observations of shape", theirs.observation_shape, ours.observation_shape),
    ):
        if first != second:
            raise InputError(f"{start} {has} {first}, not {second}")
    if theirs != ours:
        raise InputError(f"{start} observations of other bounds or of another type")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
