"""MN's set of policies, slow and obvious."""

from typing import Any

import numpy as np


class Model:
    """Algorithm 2's set in plain Python: `places` hold values or None."""

    def __init__(self, room: int, kappa: float):
        self.places: list[Any] = [None] * room
        self.kappa = kappa

    def held(self) -> list[int]:
        return [index for index, value in enumerate(self.places) if value is not None]

    def best(self, weights: np.ndarray) -> float:
        return max((self.places[i] @ weights for i in self.held()), default=-np.inf)

    def beats_all(self, value: np.ndarray, weights: np.ndarray) -> bool:
        return value @ weights > self.best(weights) - self.kappa

    def best_for(self, index: int, value: np.ndarray, past: list[np.ndarray]) -> int:
        """For how many weights a policy is still the best beside a newcomer."""
        rest = [w for w in past if not self.beats_all(value, w)]
        return sum(self.places[index] @ w == self.best(w) for w in rest)

    def change(self, value: np.ndarray, past: list[np.ndarray], new: np.ndarray) -> int:
        """The place of the policy to go on with."""
        if any(self.beats_all(value, w) for w in past):
            self.add(value, past)
        return max(self.held(), key=lambda index: (self.places[index] @ new, -index))

    def add(self, value: np.ndarray, past: list[np.ndarray]) -> None:
        uses = {index: self.best_for(index, value, past) for index in self.held()}
        for index, number in uses.items():
            if number == 0:
                self.places[index] = None
        free = [index for index, old in enumerate(self.places) if old is None]
        place = free[0] if free else min(uses, key=lambda index: (uses[index], index))
        self.places[place] = value
