"""A check of an environment of one's own: whether its methods do what it declares."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from windvane.envs.environment import Environment
from windvane.errors import InputError
from windvane.spec import EnvSpec


def check_environment(env: Environment[Any]) -> EnvSpec:
    """Return the spec of `env` if its methods agree with it; InputError if one does not.

    The methods are traced, not run, so this takes a moment whatever the environment does.
    """
    name, spec, key = type(env).__name__, env.spec, jax.random.key(0)
    state = eqx.filter_eval_shape(env.reset, key)
    stepped = eqx.filter_eval_shape(env.step, state, jnp.zeros((), jnp.int32), key)
    if not (isinstance(stepped, tuple) and len(stepped) == 3):
        raise InputError(f"{name}.step must return a state, a reward vector and a truth value")
    after, reward, terminated = stepped
    if _form(after) != _form(state):
        raise InputError(
            f"{name}.step must return a state of the shapes and types that reset returns: "
            f"{_difference(state, after)}"
        )
    if _shape(reward) != (spec.num_objectives,) or not jnp.issubdtype(reward.dtype, jnp.floating):
        raise InputError(
            f"{name}.step must return a reward of {spec.num_objectives} floating-point numbers, "
            f"one per objective, not {_words(reward)}"
        )
    if _shape(terminated) != () or terminated.dtype != bool:
        raise InputError(
            f"{name}.step must return one truth value, whether the episode terminated, "
            f"not {_words(terminated)}"
        )
    seen = eqx.filter_eval_shape(env.observe, state)
    if (_shape(seen), str(seen.dtype)) != (spec.observation_shape, spec.frame.dtype):
        raise InputError(
            f"{name} must show {spec.frame.dtype} of shape {spec.observation_shape}, as it "
            f"declares, not {_words(seen)}"
        )
    return spec


def _shape(value: Any) -> Any:
    return getattr(value, "shape", None)


def _form(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(_shape(leaf), str(getattr(leaf, "dtype", None))) for leaf in leaves]


def _difference(before: Any, after: Any) -> str:
    if jax.tree.structure(before) != jax.tree.structure(after):
        return "the two are built differently"
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    old, new = next(pair for pair in pairs if _form(pair[0]) != _form(pair[1]))
    return f"{_words(old)} becomes {_words(new)}"


def _words(value: Any) -> str:
    dtype = getattr(value, "dtype", type(value).__name__)
    return f"{dtype} of shape {_shape(value)}"
