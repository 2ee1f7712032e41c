"""Fingerprints of objects made in Python: two objects with equal parameters have the same.

They tell whether the object that a run is resumed or evaluated with is the one it was trained with.
"""

import copy
import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MAX_WRAPPERS = 20
"""Wrappers of a Gymnasium environment that are looked through."""


def fingerprint(value: Any) -> str:
    """Sixteen letters and digits that depend on a value's type and on all of its parameters."""
    digest = hashlib.sha256()
    _add(digest, value, 0)
    return digest.hexdigest()[:16]


def _parameters(env: Any) -> dict[str, str]:
    """Fingerprints of the attributes of a Gymnasium environment, and of those it wraps, that an
    episode does not change: what it was built with. Of one that cannot be copied, none.
    """
    try:
        played = copy.deepcopy(env)
        moments = [_attributes(played)]
        played.reset(seed=0)
        moments.append(_attributes(played))
        for _ in range(2):
            played.step(played.action_space.sample())
            moments.append(_attributes(played))
    except Exception:  # whatever somebody's environment does
        return {}
    first, *later = moments
    return {
        name: value
        for name, value in first.items()
        if all(moment.get(name) == value for moment in later)
    }


def _attributes(env: Any) -> dict[str, str]:
    found, layer = {}, env
    for number in range(MAX_WRAPPERS):
        for name, value in vars(layer).items():
            if name not in ("env", "_np_random", "_np_random_seed", "spec", "_cached_spec"):
                found[f"{number}.{name}"] = fingerprint(value)
        if not hasattr(layer, "env"):
            break
        layer = layer.env
    return found


def type_name(value: Any) -> str:
    """Module and name of a value's type."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _add(digest: Any, value: Any, depth: int) -> None:
    def say(text: str) -> None:
        digest.update(text.encode())
        digest.update(b"\0")

    if depth > 20:
        return say("...")
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        array = np.asarray(value)
        say(f"array {array.dtype} {array.shape}")
        return digest.update(array.tobytes()) if array.dtype != object else None
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return say(repr(value))
    if isinstance(value, Mapping):
        say(f"mapping {len(value)}")
        for name in sorted(value, key=str):
            say(str(name))
            _add(digest, value[name], depth + 1)
        return None
    if isinstance(value, list | tuple):
        say(f"sequence {len(value)}")
        for item in value:
            _add(digest, item, depth + 1)
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        say(type_name(value))
        for field in dataclasses.fields(value):
            say(field.name)
            _add(digest, getattr(value, field.name, None), depth + 1)
        return None
    if callable(value) and hasattr(value, "__qualname__"):
        return say(f"{value.__module__}.{value.__qualname__}")
    spaces = [getattr(value, f"{name}_space", None) for name in ("observation", "action")]
    if None not in spaces:
        say(f"{type_name(value)} {spaces[0]} {spaces[1]}")
        described = getattr(value, "spec", None)
        say(str(getattr(described, "id", "")) + str(getattr(described, "kwargs", "")))
        return _add(digest, _parameters(value), depth + 1)
    return say(type_name(value))
