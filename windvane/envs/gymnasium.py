"""The native environments as Gymnasium environments, by MO-Gymnasium's conventions.

One environment lives here, many at once in `gymnasium_vector`, ids in `registration`. Importing
this file needs Gymnasium; nothing else in `windvane.envs` imports it.
"""

import functools
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from jaxtyping import Array, UInt32
from numpy.typing import ArrayLike

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.environment import Environment, require_renderable
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER, MinecartConfig
from windvane.envs.window import Window
from windvane.errors import InputError, choose, require_positive_int
from windvane.packing import Packing

RENDER_MODES = ("human", "rgb_array")


class KeyStream(NamedTuple):
    """A sequence of keys: the n-th reset or step since seeding uses the n-th key."""

    seed: UInt32[Array, "2"]
    used: UInt32[Array, ""]

    @classmethod
    def from_seed(cls, seed: int) -> "KeyStream":
        """The stream of a seed, which may be of any size."""
        return cls(np.random.SeedSequence(seed).generate_state(2), np.zeros((), np.uint32))  # type: ignore[arg-type]

    def next(self) -> tuple[Array, "KeyStream"]:
        """One key, and the rest of the stream."""
        key = jax.random.fold_in(jax.random.wrap_key_data(self.seed), self.used)
        return key, KeyStream(self.seed, self.used + 1)


class Structure(NamedTuple):
    """All of an environment but its arrays; equal structures share compiled programs."""

    tree: Any
    others: tuple[tuple[type, Any] | None, ...]
    """Leaves that are not arrays, such as Python numbers, with their types; None for an array."""

    @classmethod
    def partition(cls, env: Environment[Any]) -> "tuple[tuple[Any, ...], Structure]":
        """Split an environment into its arrays and its structure."""
        leaves, tree = jax.tree.flatten(env)
        kinds = (jax.Array, np.ndarray)
        arrays = tuple(leaf for leaf in leaves if isinstance(leaf, kinds))
        others = tuple(None if isinstance(leaf, kinds) else (type(leaf), leaf) for leaf in leaves)
        structure = cls(tree, others)
        try:
            hash(structure)
        except TypeError as error:
            raise InputError(
                f"{type(env).__name__} must have hashable static fields: {error}"
            ) from error
        return arrays, structure

    def combine(self, arrays: Any) -> Any:
        """The environment with these arrays, which may be traced."""
        rest = iter(arrays)
        leaves = [next(rest) if other is None else other[1] for other in self.others]
        return jax.tree.unflatten(self.tree, leaves)


class WindvaneEnv(gymnasium.Env[np.ndarray, Any]):
    """One native environment with a vector reward.

    A seed given to `reset` determines all later randomness; a reset without one continues it.
    Episodes are truncated by `gymnasium.make`'s time limit, not here.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 12}  # noqa: RUF012

    def __init__(
        self, native: Environment[Any], *, render_mode: str | None = None, render_size: int = 480
    ):
        """Wrap `native`; rendered frames are `render_size` pixels high."""
        self.native = native
        self.render_mode = check_render_mode(native, render_mode)
        self.render_size = require_positive_int("render_size", render_size)
        self.observation_space = observation_space(native)
        self.action_space = Discrete(native.num_actions)
        self.reward_space = reward_space(native)
        self.reward_dim = native.num_objectives
        title, fps = type(native).__name__, self.metadata["render_fps"]
        self._window = Window(title, fps) if render_mode == "human" else None
        self._leaves, structure = Structure.partition(native)
        self._programs = _compile(structure, tuple(map(_shape_of, self._leaves)))
        # Ready on the device: converting a number on every step would cost as much as the step.
        self._actions = [jnp.asarray(action) for action in range(native.num_actions)]
        self._carry: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; a seed also restarts the random numbers."""
        super().reset(seed=seed, options=options)
        if seed is not None or self._carry is None:
            stream = KeyStream.from_seed(self.np_random_seed)
            self._carry, observation = self._programs.init(self._leaves, stream)
        else:
            self._carry, observation = self._programs.reset(self._leaves, self._carry)
        observation = np.array(observation)
        if self.native.observation == "pixels":
            # A copy, since the caller may edit the observation.
            self._frame = observation[-1].copy()
        self._show()
        return observation, {}

    def step(self, action: Any) -> tuple[np.ndarray, np.ndarray, bool, bool, dict[str, Any]]:  # type: ignore[override]
        """Take an action; the reward is a new vector, one entry per objective."""
        if self._carry is None:
            raise ResetNeeded("call reset before the first step")
        programs = self._programs
        self._carry, frame = programs.step(
            self._leaves, self._carry, self._actions[self._action_index(action)]
        )
        packed = np.asarray(self._carry)
        if frame is None:
            observation = programs.features(packed)
        else:
            previous, self._frame = self._frame, np.asarray(frame)
            observation = np.stack((previous, self._frame))
        if self._window is not None:
            self._show()
        return observation, programs.reward(packed), bool(programs.terminated(packed)), False, {}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The current frame, or None where a window shows it."""
        if self._carry is None:
            raise ResetNeeded("call reset before render")
        if self.render_mode == "rgb_array":
            return np.array(self._render(self.state))
        self._show()
        return None

    @property
    def state(self) -> Any:
        """The native environment's state."""
        if self._carry is None:
            raise ResetNeeded("call reset before reading the state")
        return self._programs.state(self._carry)

    def pareto_front(self, gamma: float) -> list[np.ndarray]:
        """Discounted values of the undominated policies.

        Deep Sea Treasure has them all; of Minecart's only those on the convex hull are known.
        Episodes end at the native `time_limit`, whatever `max_episode_steps` is; the ids' own
        limits equal it.
        """
        from windvane import oracle

        if isinstance(self.native, DeepSeaTreasure):
            return list(oracle.pareto_front(self.native, gamma).values.copy())
        return self.convex_coverage_set(gamma)

    def convex_coverage_set(self, gamma: float) -> list[np.ndarray]:
        """Discounted values of the policies that are best for some weights.

        Episodes end at the native `time_limit`, whatever `max_episode_steps` is; the ids' own
        limits equal it.
        """
        from windvane import oracle

        return list(oracle.coverage_set(self.native, gamma).values.copy())

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()

    def _action_index(self, action: Any) -> int:
        try:
            index = operator.index(action)
        except TypeError:
            index = -1
        if not 0 <= index < len(self._actions):
            last = len(self._actions) - 1
            raise InputError(f"an action must be a whole number from 0 to {last}, not {action!r}")
        return index

    @functools.cached_property
    def _render(self) -> Callable[[Any], Array]:
        native = require_renderable(self.native)
        return jax.jit(lambda state: native.render(state, self.render_size))

    def _show(self) -> None:
        if self._window is not None:
            self._window.show(np.asarray(self._render(self.state)))


class _Programs(NamedTuple):
    """Compiled functions of a single environment, and how the host reads their packed carry."""

    init: Callable[..., tuple[Array, Array]]
    reset: Callable[..., tuple[Array, Array]]
    step: Callable[..., tuple[Array, Array | None]]
    state: Callable[[Array], Any]
    features: Callable[[np.ndarray], np.ndarray]
    reward: Callable[[np.ndarray], np.ndarray]
    terminated: Callable[[np.ndarray], np.ndarray]


@functools.lru_cache(maxsize=64)
def _compile(structure: Structure, shapes: tuple[jax.ShapeDtypeStruct, ...]) -> _Programs:
    """Compiled functions that all environments of one structure share.

    The carry between two calls is one array of bytes: features, reward and `terminated` of the
    last call, the state, and the key stream. Pixels are returned beside it; a step renders the
    newest frame alone, since the host still has the one before.
    """

    def reset(leaves: Any, stream: KeyStream) -> Any:
        env = structure.combine(leaves)
        key, stream = stream.next()
        state = env.reset(key)
        reward = jnp.zeros(env.num_objectives, jnp.float32)
        result = (env.features(state), reward, jnp.asarray(False))
        return (result, state, stream), env.observe(state)

    def step(leaves: Any, carry: Any, action: Array) -> Any:
        env = structure.combine(leaves)
        _, state, stream = carry
        key, stream = stream.next()
        state, reward, terminated = env.step(state, action, key)
        result = (env.features(state), reward.astype(jnp.float32), terminated)
        frame = env.frame(env.views(state)[1]) if env.observation == "pixels" else None
        return (result, state, stream), frame

    packing = Packing.of(jax.eval_shape(reset, shapes, KeyStream.from_seed(0))[0])

    def pack(carry: Any, observation: Any) -> Any:
        return packing.pack(carry), observation

    return _Programs(
        init=jax.jit(lambda leaves, stream: pack(*reset(leaves, stream))),
        reset=jax.jit(lambda leaves, carry: pack(*reset(leaves, packing.unpack(carry)[2]))),
        step=jax.jit(
            lambda leaves, carry, action: pack(*step(leaves, packing.unpack(carry), action))
        ),
        state=jax.jit(lambda carry: packing.unpack(carry)[1]),
        features=packing.reader(0),
        reward=packing.reader(1),
        terminated=packing.reader(2),
    )


def _shape_of(leaf: Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def check_render_mode(env: Environment[Any], render_mode: str | None) -> str | None:
    """Return `render_mode` if it is None, or a mode that `env` can be rendered in."""
    if render_mode is None:
        return None
    require_renderable(env)
    return choose("render_mode", render_mode, RENDER_MODES)


def observation_space(env: Environment[Any]) -> Box:
    """Two frames, or the feature vector within its bounds."""
    spec = env.spec
    if spec.frame.is_image:
        return Box(0, 255, spec.observation_shape, np.uint8)
    dtype = np.dtype(spec.frame.dtype)
    low, high = (np.asarray(bound, dtype) for bound in env.feature_bounds)
    return Box(low, high, dtype=dtype.type)


def reward_space(env: Environment[Any]) -> Box:
    """The reward vector within its bounds."""
    low, high = env.reward_bounds
    return Box(low, high, dtype=np.float32)


def native_minecart(
    config: Any = None,
    deterministic: bool = False,
    frame_skip: int = 4,
    observation: str = "features",
) -> Minecart:
    """A Minecart from the arguments of `gymnasium.make`.

    `config` is a `MinecartConfig`, a path to a JSON file, or the parsed contents of one.
    """
    if config is None:
        config = PAPER
    elif isinstance(config, dict):
        config = MinecartConfig.from_dict(config)
    elif isinstance(config, (str, Path)):
        config = MinecartConfig.from_json(config)
    elif not isinstance(config, MinecartConfig):
        raise InputError(
            f"config must be a MinecartConfig, a dict or a path to a JSON file, not {config!r}"
        )
    return Minecart(
        config, deterministic=deterministic, frame_skip=frame_skip, observation=observation
    )


def make_minecart(
    render_mode: str | None = None, render_size: int = 480, **kwargs: Any
) -> WindvaneEnv:
    """Entry point of `windvane/Minecart-v0`; other arguments go to `native_minecart`."""
    return WindvaneEnv(native_minecart(**kwargs), render_mode=render_mode, render_size=render_size)


def make_deep_sea_treasure(
    sea_map: str | ArrayLike = "dcrac",
    observation: str = "features",
    render_mode: str | None = None,
    render_size: int = 480,
) -> WindvaneEnv:
    """Entry point of `windvane/DeepSeaTreasure-v0`."""
    native = DeepSeaTreasure(sea_map, observation=observation)
    return WindvaneEnv(native, render_mode=render_mode, render_size=render_size)
