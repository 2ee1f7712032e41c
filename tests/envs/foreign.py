"""Gymnasium environments that are refused, or go wrong in the middle of an episode."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

REWARDS = Box(-1, 1, (2,), np.float32)


class Walk(gymnasium.Env[Any, Any]):
    """Ten steps in a row; subclasses go wrong at the fifth of the third episode."""

    observation_space: Any = Box(0, 10, (2,), np.float32)
    action_space: Any = Discrete(2)
    reward_space: Any = REWARDS

    def __init__(self) -> None:
        self.episode, self.time = 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        self.time += 1
        reward = np.asarray([1.0, 0.0] if action else [0.0, 1.0], np.float32)
        return self.seen(), self.reward(reward), self.time >= 10, False, {}

    @property
    def wrong(self) -> bool:
        return self.episode == 3 and self.time == 5

    def seen(self) -> Any:
        return np.asarray([self.time, 1], np.float32)

    def reward(self, reward: Any) -> Any:
        return reward


class ScalarReward(Walk):
    reward_space = None


class Continuous(Walk):
    action_space = Box(-1, 1, (1,), np.float32)


class InfiniteReward(Walk):
    def reward(self, reward: Any) -> Any:
        return np.full(2, np.inf, np.float32) if self.wrong else reward


class ShortReward(Walk):
    def reward(self, reward: Any) -> Any:
        return reward[:1] if self.wrong else reward


class ChangingShape(Walk):
    def seen(self) -> Any:
        return np.zeros(3, np.float32) if self.wrong else super().seen()


class NotFinite(Walk):
    def seen(self) -> Any:
        return np.full(2, np.nan, np.float32) if self.wrong else super().seen()


class Raising(Walk):
    def seen(self) -> Any:
        if self.wrong:
            raise ZeroDivisionError("the sensor\nis broken")
        return super().seen()


class ListObservation(Walk):
    observation_space = gymnasium.spaces.Sequence(Discrete(2))


class BrokenCopy(Walk):
    """Works, but no copy of it does."""

    broken = False

    def __deepcopy__(self, memo: Any) -> "BrokenCopy":
        copy = type(self)()
        copy.broken = True
        return copy

    def step(self, action: Any) -> Any:
        if self.broken:
            raise RuntimeError("the copy is broken")
        return super().step(action)
