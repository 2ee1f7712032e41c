"""Episodes that are played step by step, each step as the weights of the moment say.

A `Stage` is a policy in its environment, native or Gymnasium's; a `Lane` counts its episodes and
says in messages what happens. What may not live here: anything that waits, or knows of browsers.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane.envs.camera import Camera
from windvane.envs.environment import Environment, Renderable
from windvane.envs.host import HostEnvs
from windvane.envs.resolve import GymnasiumEnv
from windvane.errors import InputError
from windvane.evaluation import MAX_STEPS
from windvane.policy import Policy
from windvane.rendering import env_with_pictures, rgb_picture, scaled_picture
from windvane.studio.scenes import SIZE, Scene, chart, encode, scene_of

Message = dict[str, Any] | bytes
"""What is sent to a browser: JSON, or a picture."""


class Decision(NamedTuple):
    """What a policy does in the state it is in, and the Q-values that say so."""

    action: int
    q: np.ndarray


class Moment(NamedTuple):
    """How the environment looks now: numbers for the browser to draw, or a picture."""

    numbers: dict[str, Any]
    picture: bytes | None = None


class Taken(NamedTuple):
    """One step."""

    decision: Decision
    reward: np.ndarray
    terminated: bool
    truncated: bool
    moment: Moment


class Stage(ABC):
    """A policy in its environment."""

    policy: Policy
    scenery: dict[str, Any]
    """What does not move, for the browser."""
    seconds_per_step: float
    """How long a step is shown unless the viewer chooses otherwise."""

    @abstractmethod
    def reset(self, seed: int, episode: int) -> Moment:
        """Begin an episode; the same one for the same two numbers."""

    @abstractmethod
    def decide(self, weights: np.ndarray) -> Decision:
        """What the policy would do now."""

    @abstractmethod
    def step(self, weights: np.ndarray) -> Taken:
        """Do it."""

    def use(self, policy: Policy) -> None:
        """Continue with another network of the same form."""
        self.policy = policy

    def close(self) -> None:
        """Free the environment."""
        return


class NativePrograms:
    """Compiled functions of a policy's native environment, for all stages with that policy."""

    def __init__(self, policy: Policy):
        """Compile nothing yet."""
        env, agent = policy.env, policy.agent
        self.scene: Scene | None = scene_of(env)
        arrays, static = eqx.partition(policy.network, eqx.is_array)
        structure = jax.tree.structure(arrays)
        scene = self.scene

        def choose(leaves: Any, state: Any, weights: Any) -> tuple[Any, Any]:
            network = eqx.combine(jax.tree.unflatten(structure, leaves), static)
            observation = env.observe(state)
            return agent.act(network, observation, weights), network(observation, weights)

        def picture(before: Any, action: Any, after: Any) -> Any:
            if scene is not None:
                return scene.moment(env, before, action, after)
            if isinstance(env, Renderable):
                return env.render(after, SIZE)
            return env.observe(after)

        def step(leaves: Any, state: Any, weights: Any, key: Any, time: Any) -> Any:
            action, q = choose(leaves, state, weights)
            after, reward, ended = env.step(state, action, jax.random.fold_in(key, time))
            return action, q, after, reward, ended, picture(state, action, after)

        def reset(key: Any) -> Any:
            first, later = jax.random.split(key)
            state = env.reset(first)
            return state, later, picture(state, None, state)

        self.choose, self.step, self.reset = jax.jit(choose), jax.jit(step), jax.jit(reset)
        self._env = env

    def moment(self, computed: Any) -> Moment:
        """What was computed for a moment, for the browser."""
        if self.scene is not None:
            return Moment(self.scene.to_json(computed))
        array = np.asarray(computed)
        if not isinstance(self._env, Renderable):
            array = chart(array, self._env.spec)
        return Moment({}, encode(array))


@final
class NativeStage(Stage):
    """A native environment: all of a step is one compiled call."""

    def __init__(self, policy: Policy, programs: NativePrograms):
        """Nothing is played yet."""
        env = policy.env
        self._programs, self._limit = programs, env.time_limit
        scene = programs.scene
        self.scenery = {"kind": "picture"} if scene is None else scene.scenery(env)
        self.seconds_per_step = {"minecart": 0.125, "dst": 0.25}.get(self.scenery["kind"], 0.125)
        self._state: Any = None
        self._key: Any = None
        self._time = 0
        self.use(policy)

    def use(self, policy: Policy) -> None:
        """Continue with another network of the same form."""
        self.policy, self._leaves = policy, network_leaves(policy)

    def reset(self, seed: int, episode: int) -> Moment:
        """Begin an episode."""
        key = jax.random.fold_in(jax.random.key(seed), episode)
        self._state, self._key, computed = self._programs.reset(key)
        self._time = 0
        return self._programs.moment(computed)

    def decide(self, weights: np.ndarray) -> Decision:
        """What the policy would do now."""
        action, q = self._programs.choose(self._leaves, self._state, _float32(weights))
        return Decision(int(action), np.asarray(q))

    def step(self, weights: np.ndarray) -> Taken:
        """Do it."""
        time = jnp.asarray(self._time, jnp.int32)
        action, q, self._state, reward, ended, computed = self._programs.step(
            self._leaves, self._state, _float32(weights), self._key, time
        )
        self._time += 1
        terminated = bool(ended)
        truncated = not terminated and self._time >= self._limit
        decision = Decision(int(action), np.asarray(q))
        moment = self._programs.moment(computed)
        return Taken(decision, np.asarray(reward), terminated, truncated, moment)


@final
class GymnasiumStage(Stage):
    """A Gymnasium environment of its own, which draws itself if it can."""

    def __init__(self, policy: Policy):
        """Make the environment."""
        config = policy.config
        self.policy, self.scenery, self.seconds_per_step = policy, {"kind": "picture"}, 0.125
        self._drawn: bytes | None = None
        world = policy.world
        assert isinstance(world, GymnasiumEnv)
        try:
            env, take = env_with_pictures(policy), self._take
        except InputError:  # it draws no pictures
            env, take = world.make(), None
        self._draws = take is not None
        camera = Camera(env, take)
        self._envs = HostEnvs(
            GymnasiumEnv(world.name, lambda: env, first=camera), 1,
            frame_stack=config.frame_stack, frame_size=config.frame_size, one_hot=config.one_hot,
            time_limit=config.time_limit or MAX_STEPS,
        )  # fmt: skip
        self._observations: Any = None

    def _take(self, env: Any) -> None:
        name = self.policy.config.env
        self._drawn = encode(scaled_picture(rgb_picture(name, env), SIZE))

    def _moment(self, observations: np.ndarray) -> Moment:
        if not self._draws:
            return Moment({}, encode(chart(observations[0], self.policy.spec)))
        return Moment({}, self._drawn)

    def reset(self, seed: int, episode: int) -> Moment:
        """Begin an episode."""
        own = int(np.random.SeedSequence([seed, episode]).generate_state(1)[0])
        self._observations = self._envs.reset([own])
        return self._moment(self._observations)

    def decide(self, weights: np.ndarray) -> Decision:
        """What the policy would do now."""
        observation = self._observations[0]
        q = self.policy.q_values(observation, weights)
        return Decision(self.policy.act(observation, weights), q)

    def step(self, weights: np.ndarray) -> Taken:
        """Do it."""
        decision = self.decide(weights)
        # The copies begin the next episode in the same step: what it looks like is not shown.
        outcome = self._envs.step(np.asarray([decision.action]))
        self._observations = outcome.observations
        drawn, truncated = self._moment(outcome.reached), bool(outcome.truncated[0])
        return Taken(decision, outcome.rewards[0], bool(outcome.terminated[0]), truncated, drawn)

    def close(self) -> None:
        """Close the environment."""
        self._envs.close()


def make_stage(policy: Policy, programs: NativePrograms | None) -> Stage:
    """A stage for a policy; `programs` are for native environments."""
    if isinstance(policy.world, Environment):
        return NativeStage(policy, programs or NativePrograms(policy))
    return GymnasiumStage(policy)


def network_leaves(policy: Policy) -> tuple[Any, ...]:
    """The network's arrays, which are the cheapest to hand to a compiled function."""
    return tuple(jax.tree.leaves(eqx.filter(policy.network, eqx.is_array)))


def _float32(weights: np.ndarray) -> np.ndarray:
    return weights.astype(np.float32)
