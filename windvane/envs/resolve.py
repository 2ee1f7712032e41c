"""From the name of an environment to the environment, and from an object to a name.

Names are those of the registry, `mo:ID` for MO-Gymnasium, Gymnasium ids, and import paths of
factories. Importing runs code, so a name that only a file gives is not imported.
"""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from windvane.envs import ENVS
from windvane.envs.environment import Environment
from windvane.errors import InputError, in_one_line, shown
from windvane.fingerprint import fingerprint
from windvane.registry import CUSTOM, Arguments, call, is_import_path, load, require_trust

MO = "mo:"
"""Prefix of MO-Gymnasium ids."""
WINDVANE = "windvane/"
"""Namespace of Windvane's own Gymnasium ids."""
_GYM_ID = re.compile(r"([\w.]+:)?([\w-]+/)?[\w.-]+-v\d+")


@dataclass(frozen=True)
class GymnasiumEnv:
    """How copies of a Gymnasium environment are made; `first` is one that exists already."""

    name: str
    make: Callable[[], Any] = field(repr=False)
    make_vector: Callable[[int], Any] | None = field(default=None, repr=False)
    """Makes a vector environment of that many copies, where there is an entry point for one."""
    first: Any = field(default=None, repr=False)


World = Environment[Any] | GymnasiumEnv


def check_env(name: Any) -> str:
    """Return the name of an environment if it has the form of one."""
    if isinstance(name, str) and len(name) <= 200:
        identifier = name.removeprefix(MO)
        if name in ENVS or name.startswith(CUSTOM) or is_import_path(name):
            return name
        if _GYM_ID.fullmatch(identifier):
            return name
    raise InputError(
        f"unknown env {shown(name)}; choose one of: {', '.join(ENVS)}, mo:ID of MO-Gymnasium such "
        "as mo:four-room-v0, a Gymnasium id, or an import path such as my_package.module:make_env"
    )


def needs_trust(name: str) -> bool:
    """Whether the environment's code is neither Windvane's nor MO-Gymnasium's."""
    return name not in ENVS and not name.startswith((MO, WINDVANE, CUSTOM))


def resolve_env(
    name: str, args: Mapping[str, Any], observation: str, *, trusted: bool = False
) -> World:
    """The native environment of that name, or how to make the Gymnasium one."""
    check_env(name)
    if name in ENVS or name.startswith(CUSTOM):
        return ENVS.make(name, args, observation)
    if needs_trust(name):
        require_trust("env", name, trusted)
    if is_import_path(name):
        made = _call_factory(name, args)
        if isinstance(made, Environment):
            return _check_observation(made, observation, name)
        return _from_object(made, name, partial(_call_factory, name, dict(args)), observation)
    _refuse_observation(name, observation)
    return _from_id(name, args)


def describe_env(env: Any) -> tuple[str, Arguments] | None:
    """The name and arguments that rebuild an environment made in Python; None if nothing does."""
    if isinstance(env, Environment):
        from windvane.envs.factories import describe

        found = describe(env)
        if found is None:
            return None
        name, args = found[0], Arguments(found[1])
        same = fingerprint(resolve_env(name, args, env.observation)) == fingerprint(env)
        return (name, args) if same else None
    spec = getattr(env, "spec", None)
    if spec is None or getattr(spec, "additional_wrappers", ()) or hasattr(env, "num_envs"):
        return None
    home = str(getattr(spec, "entry_point", ""))
    name = f"{MO}{spec.id}" if home.startswith("mo_gymnasium") else spec.id
    kwargs = {k: v for k, v in spec.kwargs.items() if k != "render_mode"}
    try:
        return check_env(name), Arguments(kwargs)
    except InputError:
        return None


def from_object(env: Any) -> GymnasiumEnv:
    """How to make copies of a Gymnasium environment, or vector environment, made in Python."""
    return _from_object(env, type(env).__name__, partial(_copy, env), "auto")


def _from_object(env: Any, name: str, make: Callable[[], Any], observation: str) -> GymnasiumEnv:
    gymnasium = _gymnasium()
    _refuse_observation(name, observation)
    if isinstance(env, gymnasium.vector.VectorEnv):
        return GymnasiumEnv(name, make, first=env)
    if not isinstance(env, gymnasium.Env):
        raise InputError(
            f"the env {name} must be a Gymnasium environment or a Windvane Environment, "
            f"not {env!r:.80}"
        )
    return GymnasiumEnv(name, make, first=env)


def _from_id(name: str, args: Mapping[str, Any]) -> GymnasiumEnv:
    # Partials rather than closures, so that they can be pickled for other processes.
    plain = dict(args)
    make = partial(_make_by_id, name, plain)
    first = make()
    # The vector entry points of others need not support the autoreset mode SAME_STEP.
    ours = name.startswith(WINDVANE)
    vectorised = ours and getattr(first.spec, "vector_entry_point", None) is not None
    make_vector = partial(_make_vector, name, plain) if vectorised else None
    return GymnasiumEnv(name, make, make_vector, first)


def _make_by_id(name: str, args: dict[str, Any]) -> Any:
    maker = _mo_gymnasium().make if name.startswith(MO) else _gymnasium().make
    try:
        return maker(name.removeprefix(MO), **args)
    except InputError:
        raise
    except Exception as error:  # a constructor may raise anything
        raise InputError(f"cannot make the env {name}: {in_one_line(error)}") from error


def _make_vector(name: str, args: dict[str, Any], num_envs: int) -> Any:
    gymnasium = _gymnasium()
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    return gymnasium.make_vec(name, num_envs, "vector_entry_point", autoreset_mode=mode, **args)


def _call_factory(name: str, args: Mapping[str, Any]) -> Any:
    try:
        return call(f"env {name}", load(name), (), args)
    except InputError:
        raise
    except Exception as error:  # a factory may raise anything
        raise InputError(f"cannot make the env {name}: {in_one_line(error)}") from error


def _check_observation(env: Environment[Any], observation: str, name: str) -> Environment[Any]:
    if observation not in ("auto", env.observation):
        raise InputError(
            f"the env {name} shows {env.observation}, and observation={observation} was asked for"
        )
    return env


def _refuse_observation(name: str, observation: str) -> None:
    if observation != "auto":
        raise InputError(
            f"the observation of {name} is what its observation space says: leave observation at "
            f"auto rather than {observation}"
        )


def _copy(env: Any) -> Any:
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise InputError(
            f"{type(env).__name__} cannot be copied for several runs or environments: give an "
            f"import path or a Gymnasium id instead ({in_one_line(error)})"
        ) from error


def _gymnasium() -> Any:
    try:
        import gymnasium

        import windvane.registration as registration
    except ImportError as error:
        raise InputError("Gymnasium environments need the package gymnasium: install it") from error
    registration.register()
    return gymnasium


def _mo_gymnasium() -> Any:
    try:
        import mo_gymnasium
    except ImportError as error:
        raise InputError(
            "environments mo:... need the package mo-gymnasium: install windvane[mo]"
        ) from error
    return mo_gymnasium
