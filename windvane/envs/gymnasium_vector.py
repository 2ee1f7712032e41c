"""Many copies of a native environment as one Gymnasium vector environment, stepped in one call.

Given the same seeds, copy `i` does what the `i`-th of a list of single environments would do.
"""

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, Bool, Float, Int32, Num
from numpy.typing import ArrayLike

from windvane.batching import where
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.environment import Environment, require_pixels, require_renderable
from windvane.envs.episodes import EpisodeState, autoreset, is_truncated, reset_episode
from windvane.envs.gymnasium import (
    KeyStream,
    Structure,
    WindvaneEnv,
    check_render_mode,
    native_minecart,
    observation_space,
    reward_space,
)
from windvane.errors import LARGEST_COUNT, InputError, require_int, require_positive_int
from windvane.machine import usable_cores

AUTORESET_MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)

MIN_SHARE = 128
"""Fewest copies that are worth a core of their own."""


class VectorState(NamedTuple):
    """State of the copies between two steps; every array has a leading axis of copies."""

    state: Any
    time: Int32[Array, ""]
    ended: Bool[Array, ""]
    stream: KeyStream
    observation: Num[Array, "..."]


class StepResult(NamedTuple):
    """Result of a step of the copies, before any reset."""

    state: Any
    reward: Float[Array, " objectives"]
    terminated: Bool[Array, ""]


class WindvaneVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` copies with vector rewards.

    `autoreset_mode` says when a copy whose episode ended begins the next: on the step after
    (`NEXT_STEP`, which ignores that step's action) or in the same step (`SAME_STEP`, with the last
    observation in `infos["final_obs"]`). The caller may edit what `reset` and `step` return.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": WindvaneEnv.metadata["render_fps"],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        native: Environment[Any],
        num_envs: int,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        render_size: int = 480,
    ):
        """Make `num_envs` copies, truncated after `max_episode_steps` (or `time_limit`)."""
        self.native = native
        self.num_envs = require_positive_int("num_envs", num_envs)
        steps = native.time_limit if max_episode_steps is None else max_episode_steps
        self.max_episode_steps = require_positive_int("max_episode_steps", steps, LARGEST_COUNT)
        self.autoreset_mode = check_autoreset_mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = check_render_mode(native, render_mode)
        if render_mode == "human":
            raise InputError('a vector environment has no render_mode "human"; use "rgb_array"')
        self.render_size = require_positive_int("render_size", render_size)
        self.single_observation_space = observation_space(native)
        self.single_action_space = Discrete(native.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.reward_space = reward_space(native)
        self.reward_dim = native.num_objectives
        self._leaves, structure = Structure.partition(native)
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        self._programs = _compile(structure, self.max_episode_steps, same_step)
        self._shares = _shares(self.num_envs)
        self._states: list[VectorState] = []

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in every copy.

        A number seeds copy `i` with `seed + i`, a list seeds each copy; a copy without a seed
        continues its key stream.
        """
        del options
        streams = self._streams(seed)
        self._states = [
            self._programs.reset(self._leaves, KeyStream(streams.seed[share], streams.used[share]))
            for share in self._shares
        ]
        return _concatenate([state.observation for state in self._states]), {}

    def step(
        self, actions: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one action per copy; rewards are a (num_envs, objectives) array."""
        if not self._states:
            raise ResetNeeded("call reset before the first step")
        chosen = self._check(actions)
        before, results = self._states, []
        # JAX dispatches calls asynchronously, so the shares run in parallel.
        for share, state in zip(self._shares, before, strict=True):
            stepped = self._programs.step(self._leaves, state, chosen[share])
            results.append(self._programs.finish(self._leaves, state, stepped))
        self._states = [after for after, *_ in results]
        observation = _concatenate([state.observation for state in self._states])
        reward, terminated, truncated = (
            _concatenate(parts) for parts in zip(*(part for _, part, _ in results), strict=True)
        )
        infos = {}
        if results[0][2] is not None and (ended := terminated | truncated).any():
            infos = self._final_infos(before, _concatenate([last for *_, last in results]), ended)
        return observation, reward, terminated, truncated, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One frame per copy."""
        if self.render_mode is None:
            return None
        states = self.state
        each = [jax.tree.map(lambda x, i=i: x[i], states) for i in range(self.num_envs)]
        return tuple(np.array(self._render(state)) for state in each)

    @property
    def state(self) -> Any:
        """The copies' native states, with a leading axis of copies."""
        if not self._states:
            raise ResetNeeded("call reset before reading the state")
        states = [share.state for share in self._states]
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *states)

    def _streams(self, seed: Any) -> KeyStream:
        """The copies' key streams, restarted where there is a seed."""
        if seed is None:
            seed = [None] * self.num_envs
        elif not np.iterable(seed):
            first = require_int("a seed", seed, 0)
            seed = range(first, first + self.num_envs)
        seeds = [None if one is None else require_int("a seed", one, 0) for one in seed]
        if len(seeds) != self.num_envs:
            raise InputError(f"a list of seeds must have {self.num_envs} entries, not {len(seeds)}")
        if not self._states:
            first = int(self.np_random.integers(2**63))
            seeds = [first + i if one is None else one for i, one in enumerate(seeds)]
        new = {i: KeyStream.from_seed(one) for i, one in enumerate(seeds) if one is not None}
        if len(new) == self.num_envs:
            return KeyStream(*map(np.stack, zip(*new.values(), strict=True)))  # type: ignore[arg-type]
        parts = zip(*(state.stream for state in self._states), strict=True)
        streams = KeyStream(*map(np.concatenate, parts))  # type: ignore[arg-type]
        for i, stream in new.items():
            streams.seed[i], streams.used[i] = stream  # type: ignore[index]
        return streams

    def _check(self, actions: ArrayLike) -> np.ndarray:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            got = f"{chosen.dtype} of shape {chosen.shape}"
            raise InputError(f"actions must be {self.num_envs} whole numbers, not {got}")
        if chosen.min() < 0 or chosen.max() >= self.native.num_actions:
            wrong = chosen[(chosen < 0) | (chosen >= self.native.num_actions)][0]
            raise InputError(
                f"an action must be from 0 to {self.native.num_actions - 1}, and one is {wrong}"
            )
        return chosen.astype(np.int32)

    def _final_infos(
        self, before: list[VectorState], final: np.ndarray, ended: np.ndarray
    ) -> dict[str, Any]:
        """The final observations, in the form of Gymnasium's own vector environments."""
        last = final[ended]
        if self.native.observation == "pixels":
            shares = zip(self._shares, before, strict=True)
            frames = [np.asarray(state.observation)[ended[share], 1] for share, state in shares]
            last = np.stack((np.concatenate(frames), last), axis=1)
        observations = np.full(self.num_envs, None, object)
        for i, observation in zip(np.flatnonzero(ended), last, strict=True):
            observations[i] = observation
        return {
            "final_obs": observations,
            "_final_obs": ended.copy(),
            "final_info": {},
            "_final_info": ended.copy(),
        }

    @functools.cached_property
    def _render(self) -> Callable[[Any], Array]:
        native = require_renderable(self.native)
        return jax.jit(lambda state: native.render(state, self.render_size))


class _Programs(NamedTuple):
    """Compiled functions that all environments of one structure share."""

    reset: Callable[..., VectorState]
    step: Callable[..., StepResult]
    finish: Callable[..., tuple[VectorState, tuple[Array, Array, Array], Array | None]]


@functools.lru_cache(maxsize=64)
def _compile(structure: Structure, time_limit: int, same_step: bool) -> _Programs:
    """Compile functions that reset, step, and finish a step: observe, truncate and autoreset.

    Stepping and finishing are two programs, because XLA would repeat much of the step's work in
    each of the many uses of its result. A reset that does not depend on its key is computed, and
    its frame rendered, once for all copies.
    """

    def observe_newest(env: Environment[Any], state: Any) -> Array:
        """The new part of an observation: for pixels, the frame that was not rendered yet."""
        if env.observation == "features":
            return env.features(state)
        pixels = require_pixels(env)
        return pixels.frame(pixels.views(state)[1])

    def reset(env: Environment[Any], stream: KeyStream) -> VectorState:
        key, stream = stream.next()
        episode = reset_episode(env, key)
        ended = jnp.asarray(False)
        observation = env.observe(episode.state)
        return VectorState(episode.state, episode.time, ended, stream, observation)

    def step(env: Environment[Any], copy: VectorState, action: Array) -> StepResult:
        return StepResult(*env.step(copy.state, action, copy.stream.next()[0]))

    def finish(env: Environment[Any], copy: VectorState, result: StepResult) -> Any:
        terminated = result.terminated
        truncated = is_truncated(terminated, copy.time, time_limit)
        reward = result.reward.astype(jnp.float32)
        pixels = env.observation == "pixels"
        next_stream = KeyStream(copy.stream.seed, copy.stream.used + 1)
        if same_step:
            ended = terminated | truncated
            final, new = observe_newest(env, result.state), reset(env, next_stream)
            observation = jnp.stack([copy.observation[1], final]) if pixels else final
            before, fresh = EpisodeState(copy.state, copy.time), EpisodeState(new.state, new.time)
            episode = autoreset(ended, before, result.state, fresh)
            stream, observation = where(
                ended, (new.stream, new.observation), (next_stream, observation)
            )
            after = VectorState(episode.state, episode.time, new.ended, stream, observation)
            return after, (reward, terminated, truncated), final
        # `autoreset` is of no use in NEXT_STEP mode: the call *after* the end of an episode resets,
        # and ignores its action.
        restart, new = copy.ended, reset(env, copy.stream)
        state = where(restart, new.state, result.state)
        observation = observe_newest(env, state)
        if pixels:
            previous = jnp.where(restart, new.observation[0], copy.observation[1])
            observation = jnp.stack([previous, observation])
        reward = jnp.where(restart, 0, reward)
        terminated, truncated = terminated & ~restart, truncated & ~restart
        time = jnp.where(restart, 0, copy.time + 1)
        after = VectorState(state, time, terminated | truncated, next_stream, observation)
        return after, (reward, terminated, truncated), None

    def batched(function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(
            lambda leaves, *args: jax.vmap(functools.partial(function, structure.combine(leaves)))(
                *args
            )
        )

    return _Programs(batched(reset), batched(step), batched(finish))


def _shares(num_envs: int) -> list[slice]:
    """Divide the copies among cores: XLA runs a program of this kind on one core."""
    count = min(usable_cores(), num_envs // MIN_SHARE) if jax.default_backend() == "cpu" else 1
    ends = np.linspace(0, num_envs, max(count, 1) + 1).round().astype(int).tolist()
    return [slice(*pair) for pair in pairwise(ends)]


def _concatenate(parts: Sequence[Array]) -> np.ndarray:
    """One new host array from those of the shares."""
    return np.array(parts[0]) if len(parts) == 1 else np.concatenate(parts)


def check_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode, given as itself or by its value, if it is supported."""
    names = {m.value: m for m in AUTORESET_MODES}
    chosen = names.get(mode.value if isinstance(mode, AutoresetMode) else mode)
    if chosen is None:
        raise InputError(f"autoreset_mode must be one of {', '.join(names)}, not {mode}")
    return chosen


def make_minecart(
    num_envs: int = 1,
    max_episode_steps: int | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    render_size: int = 480,
    **kwargs: Any,
) -> WindvaneVectorEnv:
    """Vector entry point of `windvane/Minecart-v0`; other arguments go to `native_minecart`."""
    return WindvaneVectorEnv(
        native_minecart(**kwargs),
        num_envs,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        render_mode=render_mode,
        render_size=render_size,
    )


def make_deep_sea_treasure(
    num_envs: int = 1,
    max_episode_steps: int | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    render_size: int = 480,
    sea_map: str | ArrayLike = "dcrac",
    observation: str = "features",
) -> WindvaneVectorEnv:
    """Vector entry point of `windvane/DeepSeaTreasure-v0`."""
    return WindvaneVectorEnv(
        DeepSeaTreasure(sea_map, observation=observation),
        num_envs,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        render_mode=render_mode,
        render_size=render_size,
    )
