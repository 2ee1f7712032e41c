"""The interface of native environments: frozen parameters and pure functions on a state.

What may not live here: anything about a particular problem, about time limits (see `episodes`) or
about Gymnasium (see `gymnasium`).
"""

from abc import abstractmethod
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Num, UInt8

from windvane.errors import choose

State = TypeVar("State")
ObservationKind = Literal["features", "pixels"]

FRAME_SIZE = 48
"""Side of the paper's input frames, in pixels."""


class Environment(eqx.Module, Generic[State]):
    """A multi-objective Markov decision process.

    A subclass is a frozen pytree: its arrays may be batched with `jax.vmap`, its static fields
    (`observation`, `time_limit`) choose the compiled program. Every method is pure.

    `time_limit` is the number of steps after which a driver should *truncate* an episode. The
    environment itself never looks at it: a cut is not a property of the problem.
    """

    observation: eqx.AbstractVar[ObservationKind]
    time_limit: eqx.AbstractVar[int]

    action_names: ClassVar[tuple[str, ...]]

    @property
    def num_actions(self) -> int:
        """Number of actions; actions are the integers below it."""
        return len(self.action_names)

    @property
    @abstractmethod
    def objective_names(self) -> tuple[str, ...]:
        """One name an objective, in the order of the reward vector."""

    @property
    def num_objectives(self) -> int:
        """Length of the reward vector."""
        return len(self.objective_names)

    @property
    @abstractmethod
    def reward_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest reward of one step, an objective each."""

    @property
    @abstractmethod
    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest feature vector; their dtype is the features' dtype."""

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
        """The state as MO-Gymnasium's feature vector."""

    @abstractmethod
    def views(self, state: State) -> tuple[Any, Any]:
        """The drawable parts of the previous and of the current moment."""

    @abstractmethod
    def frame(self, view: Any) -> UInt8[Array, "48 48 3"]:
        """One moment as the paper's 48x48 RGB frame."""

    @abstractmethod
    def draw(self, state: State, size: int) -> UInt8[Array, "height width 3"]:
        """The current moment as a picture for people, `size` pixels high."""

    def observe(self, state: State) -> Num[Array, "*shape"]:
        """What an agent sees: two frames (previous, current) or the feature vector."""
        if self.observation == "features":
            return self.features(state)
        previous, current = self.views(state)
        return jnp.stack([self.frame(previous), self.frame(current)])


def check_observation(observation: str) -> ObservationKind:
    """Return `observation` if it names a kind of observation."""
    choose("observation", observation, get_args(ObservationKind))
    return observation  # type: ignore[return-value]
