"""The interface of native environments: frozen parameters and pure functions on a state.

An environment of one's own derives from `Environment`, declares its actions, objectives and
features and has three methods: `reset`, `step` and `features`. The paper's frames and pictures for
people are options: derive from `PixelObservations` or `Renderable` as well.

What may not live here: anything about a particular problem, about episodes (see `episodes`) or
about Gymnasium (see `gymnasium`).
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Num, UInt8

from windvane.errors import InputError, choose
from windvane.spec import EnvSpec, FrameSpec

State = TypeVar("State")
Value = TypeVar("Value")
ObservationKind = Literal["features", "pixels"]

FRAME_SIZE = 48
"""Side of the paper's input frames, in pixels."""
FRAME_STACK = 2
"""Frames of a pixel observation: the previous one and the current one."""


class _Declared:
    """What an environment declares, or else a value made from what it does declare.

    Unlike a property it lets a subclass put a field in its place.
    """

    def __init__(self, default: Callable[[Any], Any]):
        self.default = default

    def __get__(self, env: Any, owner: type) -> Any:
        if env is None:  # a field without a default must not take this for one
            raise AttributeError
        return self.default(env)


def _declared(default: Callable[[Any], Value]) -> Value:
    return _Declared(default)  # type: ignore[return-value]


def _no_names(env: Any) -> tuple[str, ...]:
    del env
    return ()


def _objective_names(env: Any) -> tuple[str, ...]:
    raise InputError(f"{type(env).__name__} must declare its objective_names")


def _feature_bounds(env: Any) -> tuple[np.ndarray, np.ndarray]:
    raise InputError(f"{type(env).__name__} must declare its feature_bounds, lowest and highest")


def _unbounded(env: Any) -> tuple[np.ndarray, np.ndarray]:
    high = np.full(env.num_objectives, np.inf, np.float32)
    return -high, high


class Environment(eqx.Module, Generic[State]):
    """A multi-objective Markov decision process with a finite number of actions.

    A subclass is a frozen pytree: its arrays may be batched with `jax.vmap`, its static fields
    choose the compiled program. Every method is pure. A state is any pytree of arrays whose shapes
    and types never change.

    A subclass declares, each as a class attribute, a static field or a property:

    - `num_actions`, or `action_names`, from which the number follows;
    - `objective_names`, in the order of the reward vector;
    - `feature_bounds`, the smallest and the largest feature vector, whose dtype is the features';
    - `time_limit`, the number of steps after which a driver *truncates* an episode (default 1000).
      The environment itself never looks at it: truncation is not a property of the problem;
    - `reward_bounds`, where they are known.
    """

    # Without annotations, so that a subclass may have a class attribute, a field or a property.
    action_names = _declared(_no_names)
    num_actions = _declared(lambda env: len(env.action_names))
    objective_names = _declared(_objective_names)
    feature_bounds = _declared(_feature_bounds)
    reward_bounds = _declared(_unbounded)
    time_limit = 1000
    observation = "features"

    @property
    def num_objectives(self) -> int:
        """Length of the reward vector."""
        return len(self.objective_names)

    @property
    def spec(self) -> EnvSpec:
        """All that an agent knows of the environment; InputError if that is malformed."""
        return EnvSpec(self.num_actions, self.objective_names, self._frame_spec())

    @abstractmethod
    def reset(self, key: Key[Array, ""]) -> State:
        """Return the first state of an episode."""

    @abstractmethod
    def step(
        self, state: State, action: Int[Array, ""], key: Key[Array, ""]
    ) -> tuple[State, Float[Array, " objectives"], Bool[Array, ""]]:
        """Return the next state, the reward vector and whether the episode terminated."""

    @abstractmethod
    def features(self, state: State) -> Num[Array, " features"]:
        """The state as a vector of numbers within `feature_bounds`."""

    def observe(self, state: State) -> Num[Array, "*shape"]:
        """What an agent sees."""
        return self.features(state)

    def __check_init__(self) -> None:
        _ = self.objective_names, self.feature_bounds  # complain now where they are missing
        if self.observation != "features":
            require_pixels(self)

    def _frame_spec(self) -> FrameSpec:
        name = type(self).__name__
        try:
            low, high = (np.asarray(bound) for bound in self.feature_bounds)
        except (TypeError, ValueError):
            raise InputError(f"the feature_bounds of {name} must be two vectors") from None
        if low.ndim != 1 or low.shape != high.shape or low.dtype != high.dtype:
            raise InputError(
                f"the feature_bounds of {name} must be two vectors of one length and dtype, not "
                f"{low.dtype} of shape {low.shape} and {high.dtype} of shape {high.shape}"
            )
        # Numbers of Python or NumPy are 64 bits wide, and JAX's features usually are not.
        dtype = jax.dtypes.canonicalize_dtype(low.dtype)
        return FrameSpec(low.shape, dtype.name, tuple(low.tolist()), tuple(high.tolist()))


class PixelObservations(Environment[State]):
    """An environment that can also be seen as the paper's two 48x48 RGB frames.

    `observation`, a static field, chooses between "features" and "pixels".
    """

    observation: eqx.AbstractVar[ObservationKind]

    @abstractmethod
    def views(self, state: State) -> tuple[Any, Any]:
        """The visible parts of the previous and of the current moment."""

    @abstractmethod
    def frame(self, view: Any) -> UInt8[Array, "48 48 3"]:
        """One moment as the paper's 48x48 RGB frame."""

    @property
    def spec(self) -> EnvSpec:
        """All that an agent knows of the environment."""
        if self.observation == "features":
            return super().spec
        frame = FrameSpec((FRAME_SIZE, FRAME_SIZE, 3), "uint8")
        return EnvSpec(self.num_actions, self.objective_names, frame, FRAME_STACK)

    def observe(self, state: State) -> Num[Array, "*shape"]:
        """What an agent sees: two frames (previous, current) or the feature vector."""
        if self.observation == "features":
            return self.features(state)
        previous, current = self.views(state)
        return jnp.stack([self.frame(previous), self.frame(current)])


class Renderable(Environment[State]):
    """An environment with pictures for people."""

    @abstractmethod
    def render(self, state: State, size: int) -> UInt8[Array, "height width 3"]:
        """The current moment as an RGB picture, `size` pixels high."""


def check_observation(observation: str) -> ObservationKind:
    """Return `observation` if it names a kind of observation."""
    choose("observation", observation, get_args(ObservationKind))
    return observation  # type: ignore[return-value]


def require_pixels(env: Environment[State]) -> PixelObservations[State]:
    """Return `env` if it can be seen as frames."""
    if not isinstance(env, PixelObservations):
        raise InputError(
            f"{type(env).__name__} has no pixel observations: it must derive from PixelObservations"
        )
    return env


def require_observation(env: Environment[State], observation: str) -> Environment[State]:
    """Return `env` if it is what `observation` asks for."""
    if check_observation(observation) == "pixels":
        require_pixels(env)
    if env.observation != observation:
        raise InputError(
            f"this {type(env).__name__} shows {env.observation}, not {observation}: build it with "
            f"observation={observation!r}"
        )
    return env


def require_renderable(env: Environment[State]) -> Renderable[State]:
    """Return `env` if there are pictures of it."""
    if not isinstance(env, Renderable):
        raise InputError(f"{type(env).__name__} has no pictures: it must derive from Renderable")
    return env
