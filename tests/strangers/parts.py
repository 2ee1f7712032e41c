"""Somebody else's agent, replay rule, schedule and environments: each as a stranger would write it,
in one file outside the package.
"""

from typing import Any, ClassVar, final

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.agents.core import Agent, WeightHistory
from windvane.envs.environment import Environment
from windvane.replay.buffer import ReplayBuffer, Rows
from windvane.replay.setup import ReplaySetup
from windvane.schedules import Counter, ScheduleSetup, WeightSchedule


@final
class EvenWeights(Agent):
    """Trains on equal weights, besides past ones."""

    share: float = 0.5
    conditioned: ClassVar[bool] = True

    def training_weights(
        self,
        active: Float[Array, "envs objectives"],
        history: WeightHistory,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        past = history.sample(key, number)
        even = jnp.full_like(past, 1 / past.shape[1])
        return jnp.stack([past, self.share * even + (1 - self.share) * past], 1)


class EveryOtherState(eqx.Module):
    rows: Rows
    added: Int[Array, ""]


@final
class EveryOther(ReplayBuffer[EveryOtherState]):
    """Keeps every other transition of those that come, first in first out."""

    capacity: int = eqx.field(static=True)
    priority_exponent: float
    priority_offset: float

    @staticmethod
    def build(setup: ReplaySetup) -> "EveryOther":
        return EveryOther(setup.capacity, setup.priority_exponent, setup.priority_offset)

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> EveryOtherState:
        del key
        return EveryOtherState(self.empty_rows(example, self.capacity), jnp.zeros((), int))

    def add(
        self, state: EveryOtherState, transition: PyTree[Array], ended: Bool[Array, ""]
    ) -> EveryOtherState:
        del ended
        rows = state.rows.write(state.added // 2 % self.capacity, transition)
        return EveryOtherState(rows, state.added + 1)

    @property
    def ring_capacity(self) -> int:
        return self.capacity

    def write_index(self, state: EveryOtherState) -> Int[Array, ""]:
        return (state.added // 2) % self.capacity

    def size(self, state: EveryOtherState) -> Int[Array, ""]:
        return jnp.minimum((state.added + 1) // 2, self.capacity)


@final
class Pendulum(WeightSchedule):
    """Swings between the first objective and the last."""

    period: int = eqx.field(static=True)
    num_objectives: int = eqx.field(static=True)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        del key, step
        share = 0.5 + 0.5 * jnp.cos(2 * jnp.pi * jnp.asarray(episode, jnp.float32) / self.period)
        vector = jnp.zeros(self.num_objectives).at[0].set(share)
        return vector.at[-1].add(1 - share)


def make_schedule(setup: ScheduleSetup, period: int = 8) -> Pendulum:
    return Pendulum(period, setup.num_objectives)


class Corridor(Environment[Array]):
    """Walk left for one objective or right for the other; both ends end the episode."""

    length: int = eqx.field(static=True, default=5)

    action_names: ClassVar[tuple[str, ...]] = ("left", "right")
    objective_names: ClassVar[tuple[str, ...]] = ("west", "east")
    time_limit: ClassVar[int] = 30

    @property
    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(1, np.float32), np.full(1, self.length - 1, np.float32)

    def reset(self, key: Key[Array, ""]) -> Array:
        del key
        return jnp.asarray(self.length // 2, jnp.int32)

    def step(
        self, state: Array, action: Int[Array, ""], key: Key[Array, ""]
    ) -> tuple[Array, Float[Array, " objectives"], Bool[Array, ""]]:
        del key
        there = state + jnp.where(action == 1, 1, -1).astype(jnp.int32)
        west, east = there <= 0, there >= self.length - 1
        return there, jnp.stack([west, east]).astype(jnp.float32), west | east

    def features(self, state: Array) -> Float[Array, " features"]:
        return state[None].astype(jnp.float32)


def make_corridor(length: int = 5) -> Corridor:
    return Corridor(length)


class Shop(gymnasium.Env[Any, Any]):
    """Sell or wait: money now, or goodwill later."""

    observation_space = gymnasium.spaces.MultiDiscrete([4, 2])
    action_space = gymnasium.spaces.Discrete(2)
    reward_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, days: int = 4):
        self.days = days
        self.day = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.day = 0
        return np.asarray([0, 0]), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        self.day += 1
        reward = np.asarray([1.0, 0.0] if action == 0 else [0.0, 1.0], np.float32)
        seen = np.asarray([min(self.day, 3), int(action)])
        return seen, reward, self.day >= self.days, False, {}


def make_shop(days: int = 4) -> Shop:
    return Shop(days)
