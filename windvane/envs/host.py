"""Copies of a Gymnasium environment, stepped together, that autoreset in the same step.

Errors of the environment become an `InputError` of one sentence that says what to change. What may
not live here: anything about learning.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from windvane.envs.frames import FrameReader, frame_reader
from windvane.envs.resolve import GymnasiumEnv
from windvane.errors import InputError, in_one_line
from windvane.spec import EnvSpec


class HostStep(NamedTuple):
    """Result of a step of all copies. `reached` holds the observations that the step led to, also
    where an episode ended; there `observations` holds the first ones of the next episode.
    """

    reached: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observations: np.ndarray


class HostEnvs:
    """`num_envs` copies of an environment with vector rewards and discrete actions."""

    def __init__(
        self,
        world: GymnasiumEnv,
        num_envs: int,
        *,
        vector_mode: str = "sync",
        frame_stack: int = 1,
        frame_size: int | None = None,
        one_hot: int = 0,
        time_limit: int | None = None,
    ):
        """Make the copies; raise InputError if an agent cannot be trained on them."""
        self.name, self.num_envs = world.name, num_envs
        self._copies = _make_copies(world, num_envs, vector_mode, time_limit)
        self._time_limit = time_limit
        action_space = self._copies.action_space
        self._first_action = _check_actions(world.name, action_space)
        self._reader: FrameReader = frame_reader(
            self._copies.observation_space, frame_size, one_hot
        )
        objectives = _objectives(world.name, self._copies.template)
        self.spec = EnvSpec(int(action_space.n), objectives, self._reader.spec, frame_stack)
        shape, dtype = self._reader.spec.shape, self._reader.spec.dtype
        self._stacks = np.zeros((num_envs, frame_stack, *shape), dtype)
        self._lengths = np.zeros(num_envs, int)

    @property
    def template(self) -> Any:
        """One environment, for what all have in common: metadata, a known front, rendering."""
        return self._copies.template

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Begin an episode in every copy and return the first observations."""
        for index, observation in enumerate(self._guard("reset", self._copies.reset, list(seeds))):
            self._begin(index, observation)
        return self._observations()

    def step(self, actions: np.ndarray) -> HostStep:
        """Take one action in every copy; where an episode ends, the next begins."""
        limit = self._time_limit
        self._lengths += 1
        at_limit = None if limit is None else self._lengths >= limit
        result = self._guard("step", self._copies.step, actions + self._first_action, at_limit)
        reached_frames, rewards, terminated, truncated, starts = result
        rewards = self._check_rewards(rewards)
        for index, frame in enumerate(reached_frames):
            self._push(index, frame)
        reached = self._observations()
        if not starts:
            return HostStep(reached, rewards, terminated, truncated, reached)
        for index, observation in starts.items():
            self._begin(index, observation)
        return HostStep(reached, rewards, terminated, truncated, self._observations())

    def close(self) -> None:
        """Close the copies."""
        self._copies.close()

    def _begin(self, index: int, observation: Any) -> None:
        self._stacks[index] = self._read(observation)
        self._lengths[index] = 0

    def _push(self, index: int, observation: Any) -> None:
        stack = self._stacks[index]
        if len(stack) > 1:
            stack[:-1] = stack[1:]
        stack[-1] = self._read(observation)

    def _observations(self) -> np.ndarray:
        return self._stacks.reshape(self.num_envs, *self.spec.observation_shape).copy()

    def _read(self, observation: Any) -> np.ndarray:
        try:
            frame = self._reader.read(observation)
        except InputError as error:
            raise InputError(f"the env {self.name}: {error}") from None
        except Exception as error:
            raise InputError(
                f"the env {self.name} returned an observation that is not of its observation "
                f"space: {in_one_line(error)}"
            ) from error
        if frame.dtype.kind == "f" and not np.isfinite(frame).all():
            raise InputError(
                f"the env {self.name} returned an observation that is not finite: make its "
                "observations finite numbers"
            )
        return frame

    def _check_rewards(self, rewards: Any) -> np.ndarray:
        objectives = self.spec.num_objectives
        try:
            array = np.array(rewards, np.float32)  # the environment may use its own again
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the env {self.name} returned rewards that are not vectors of {objectives} "
                f"numbers: {in_one_line(error)}"
            ) from error
        if array.shape != (self.num_envs, objectives):
            raise InputError(
                f"the env {self.name} returned a reward of shape {array.shape[1:]}: an agent here "
                f"needs a vector of {objectives} numbers, one per objective"
            )
        if not np.isfinite(array).all():
            shown = array[~np.isfinite(array).all(1)][0].tolist()
            raise InputError(
                f"the env {self.name} returned the reward {shown}: make its rewards finite numbers"
            )
        return array

    def _guard(self, what: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except InputError:
            raise
        except Exception as error:  # an environment may raise anything
            raise InputError(
                f"the env {self.name} raised {type(error).__name__} in {what}: "
                f"{in_one_line(error)}; fix it and resume"
            ) from error


class _EnvList:
    """Environments in this process, stepped one after another."""

    def __init__(self, world: GymnasiumEnv, num_envs: int):
        first = world.make() if world.first is None else world.first
        self.envs = [first, *(world.make() for _ in range(num_envs - 1))]
        self.template = first
        self.observation_space, self.action_space = first.observation_space, first.action_space

    def reset(self, seeds: list[int]) -> list[Any]:
        return [env.reset(seed=seed)[0] for env, seed in zip(self.envs, seeds, strict=True)]

    def step(self, actions: np.ndarray, at_limit: np.ndarray | None) -> tuple[Any, ...]:
        num_envs = len(self.envs)
        frames, rewards = [], []
        terminated, truncated = np.zeros(num_envs, bool), np.zeros(num_envs, bool)
        starts = {}
        for index, env in enumerate(self.envs):
            frame, reward, ended, limited, _ = env.step(int(actions[index]))
            limited = bool(limited) or (at_limit is not None and at_limit[index])
            terminated[index], truncated[index] = bool(ended), limited and not ended
            frames.append(frame)
            rewards.append(reward)
            if terminated[index] or truncated[index]:
                starts[index] = env.reset()[0]
        return frames, rewards, terminated, truncated, starts

    def close(self) -> None:
        for env in self.envs:
            env.close()


class _VectorEnv:
    """A Gymnasium vector environment in the autoreset mode SAME_STEP."""

    def __init__(self, env: Any, num_envs: int, name: str, template: Any = None):
        from gymnasium.vector import AutoresetMode

        if env.num_envs != num_envs:
            raise InputError(
                f"the vector env {name} has {env.num_envs} copies, and {num_envs} are needed: "
                "num_envs per run times the number of runs"
            )
        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise InputError(
                f"the vector env {name} must be made with autoreset_mode=AutoresetMode.SAME_STEP, "
                f"not {mode}"
            )
        self.env, self.template = env, env if template is None else template
        self.observation_space = env.single_observation_space
        self.action_space = env.single_action_space

    def reset(self, seeds: list[int]) -> Any:
        return _rows(self.env.reset(seed=seeds)[0], len(seeds))

    def step(self, actions: np.ndarray, at_limit: np.ndarray | None) -> tuple[Any, ...]:
        if at_limit is not None and at_limit.any():
            raise InputError("time_limit is for copies in this process: vector_mode must be sync")
        frames, rewards, terminated, truncated, infos = self.env.step(actions)
        frames = _rows(frames, len(actions))
        starts = {}
        ended = np.asarray(terminated) | np.asarray(truncated)
        for index in np.flatnonzero(ended).tolist():
            starts[index] = frames[index]
            frames[index] = infos["final_obs"][index]
        truncated = np.asarray(truncated) & ~np.asarray(terminated)
        return frames, rewards, np.array(terminated), truncated, starts

    def close(self) -> None:
        self.env.close()


def _rows(observations: Any, number: int) -> list[Any]:
    """One observation per copy."""
    if isinstance(observations, dict):
        parts = {name: _rows(part, number) for name, part in observations.items()}
        return [{name: part[index] for name, part in parts.items()} for index in range(number)]
    if isinstance(observations, tuple):
        parts_list = [_rows(part, number) for part in observations]
        return [tuple(part[index] for part in parts_list) for index in range(number)]
    return list(observations)


def _make_copies(
    world: GymnasiumEnv, num_envs: int, vector_mode: str, time_limit: int | None
) -> Any:
    if world.first is not None and hasattr(world.first, "num_envs"):
        return _VectorEnv(world.first, num_envs, world.name)
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    if vector_mode == "sync":
        # A vector environment of its own cannot be truncated from outside.
        if num_envs > 1 and world.make_vector is not None and time_limit is None:
            return _VectorEnv(world.make_vector(num_envs), num_envs, world.name, world.first)
        return _EnvList(world, num_envs)

    if world.first is not None:
        world.first.close()
    try:
        # A process that runs JAX must not be forked.
        env = AsyncVectorEnv(
            [world.make] * num_envs,
            context="spawn",
            shared_memory=False,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    except Exception as error:
        raise InputError(
            f"the env {world.name} cannot run in processes of its own: {in_one_line(error)}"
        ) from error
    return _VectorEnv(env, num_envs, world.name, world.make())


def _check_actions(name: str, space: Any) -> int:
    """The first action of a Discrete action space."""
    from gymnasium.spaces import Discrete

    if not isinstance(space, Discrete):
        raise InputError(
            f"the actions of {name} are {space}: agents here need discrete actions, so wrap "
            "the environment to have a Discrete action space"
        )
    return int(space.start)


def _objectives(name: str, env: Any) -> tuple[str, ...]:
    """Names of the objectives, one per entry of the reward."""
    inner = getattr(env, "unwrapped", env)
    space = _attribute(env, inner, "reward_space")
    number = _attribute(env, inner, "reward_dim")
    if space is not None and len(getattr(space, "shape", None) or ()) == 1:
        number = space.shape[0]
    if number is None:
        raise InputError(
            f"the rewards of {name} are scalars, and agents here need vectors: give the "
            "environment a reward_space, a Box with one entry per objective"
        )
    for attribute in ("objective_names", "reward_names"):
        names = _attribute(env, inner, attribute)
        if names is not None and len(names) == number:
            return tuple(str(name) for name in names)
    native = _attribute(env, inner, "native")
    if native is not None:
        return tuple(native.objective_names)
    return tuple(f"objective {index + 1}" for index in range(int(number)))


def _attribute(env: Any, inner: Any, name: str) -> Any:
    for owner in (env, inner):
        value = getattr(owner, name, None)
        if value is not None:
            return value
    return None
