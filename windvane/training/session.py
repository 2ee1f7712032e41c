"""What the runner asks of a driver: a training in progress, whatever its world is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from windvane.agents.core import Iteration, Networks
from windvane.training.fused import StepInfo


class Session(ABC):
    """Runs in progress. The fused and the host driver each have one."""

    resume_note: str | None = None
    """What a user must know about resuming, if it is not exact."""
    returns_early: bool = False
    """Whether `advance` returns where it is interrupted, instead of at the end of the chunk."""

    @abstractmethod
    def template(self) -> Any:
        """Shapes and types of `state`, for reading a checkpoint."""

    @abstractmethod
    def begin(self, state: Any | None, step: int, network: Any = None) -> None:
        """Start from a checkpoint's state, or from nothing: with random networks, or all runs with
        a copy of `network`.
        """

    @abstractmethod
    def advance(
        self, start: int, stop: int, learning: bool, interrupted: Callable[[], bool]
    ) -> StepInfo:
        """Take all runs from step `start` to step `stop`; axes of the result are steps and runs.

        It may return early, after fewer steps, where it is interrupted.
        """

    @property
    @abstractmethod
    def state(self) -> Any:
        """The complete state, as arrays with a leading axis of runs."""

    @property
    @abstractmethod
    def episodes(self) -> np.ndarray:
        """Episodes that ended, per run."""

    @property
    @abstractmethod
    def failed(self) -> np.ndarray:
        """Which runs diverged and stopped learning."""

    @abstractmethod
    def policy_network(self, run: int) -> Any:
        """What a run has learned so far."""

    @abstractmethod
    def networks(self, run: int) -> Networks:
        """What a run with a replay buffer trains, and what its agent keeps beside it: copies."""

    @abstractmethod
    def adopt(self, run: int, iteration: Iteration) -> None:
        """Continue a run with what its agent made of itself between two chunks."""

    @abstractmethod
    def replay_states(self) -> list[Any]:
        """The replay buffer of each run."""

    def close(self) -> None:
        """Free what the world holds."""
        return
