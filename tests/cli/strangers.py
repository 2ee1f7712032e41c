"""An environment of somebody else, without a name that Windvane knows."""

from typing import Any

import gymnasium
import numpy as np


class Corridor(gymnasium.Env):
    """Every step pays for the action that was chosen; after `length` of them it is over."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    reward_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)

    def __init__(self, length: int = 6, render_mode: str | None = None):
        self.length, self.render_mode, self.time = length, render_mode, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict]:
        self.time += 1
        reward = np.asarray([action, 1 - action], np.float32)
        seen = np.full(2, self.time / 10, np.float32)
        return seen, reward, self.time >= self.length, False, {}

    def render(self) -> Any:
        return np.full((20, 30, 3), 20 * self.time, np.uint8)


class Invisible(Corridor):
    def __init__(self, length: int = 6):
        super().__init__(length)
