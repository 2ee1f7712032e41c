"""Native environments from plain JSON values, and plain values from native environments."""

from pathlib import Path
from typing import Any

import numpy as np

from windvane.envs.deep_sea_treasure import MAPS, DeepSeaTreasure, read_map
from windvane.envs.environment import Environment
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER, MinecartConfig
from windvane.errors import InputError, shown


def minecart(
    observation: str,
    config: Any = None,
    deterministic: Any = False,
    frame_skip: Any = 4,
    time_limit: Any = 1000,
) -> Minecart:
    """`config` is a `MinecartConfig`, a path to a JSON file, or what such a file holds."""
    if not isinstance(deterministic, bool):
        raise InputError(f"deterministic must be true or false, not {shown(deterministic)}")
    if config is None:
        config = PAPER
    elif isinstance(config, dict):
        config = MinecartConfig.from_dict(config)
    elif isinstance(config, str | Path):
        config = MinecartConfig.from_json(config)
    return Minecart(
        config,
        deterministic=deterministic,
        frame_skip=frame_skip,
        observation=_kind(observation),
        time_limit=time_limit,
    )


def deep_sea_treasure(
    observation: str, map: Any = "dcrac", time_limit: Any = 100
) -> DeepSeaTreasure:
    """`map` is a name, a table of numbers, or a path to a text file with one."""
    sea_map = read_map(map) if isinstance(map, str) else map
    return DeepSeaTreasure(sea_map, observation=_kind(observation), time_limit=time_limit)


def describe(env: Environment[Any]) -> tuple[str, dict[str, Any]] | None:
    """The registry's name and arguments that rebuild an environment; None if there are none."""
    if type(env) is Minecart:
        args: dict[str, Any] = {} if env.config == PAPER else {"config": env.config.to_dict()}
        changed = {"frame_skip": (env.frame_skip, 4), "time_limit": (env.time_limit, 1000)}
        return "minecart", args | {name: v for name, (v, usual) in changed.items() if v != usual}
    if type(env) is DeepSeaTreasure:
        sea_map = np.asarray(env.sea_map)
        names = (name for name, known in MAPS.items() if _equal(known, sea_map))
        args = {"map": next(names, None) or sea_map.tolist()}
        args = {} if args["map"] == "dcrac" else args
        return "dst", args | ({} if env.time_limit == 100 else {"time_limit": env.time_limit})
    return None


def _kind(observation: str) -> str:
    """A native environment shows features unless pixels are asked for."""
    return "features" if observation == "auto" else observation


def _equal(known: np.ndarray, sea_map: np.ndarray) -> bool:
    return known.shape == sea_map.shape and np.array_equal(known.astype(sea_map.dtype), sea_map)
