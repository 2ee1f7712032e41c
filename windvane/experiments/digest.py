"""A finished run in a few numbers: who it was, its regret, its curve. Reports are made of these."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Float

from windvane.training.config import TrainConfig
from windvane.training.records import Records
from windvane.training.result import regret_of

POINTS = 200
"""Points of a curve."""


@dataclass(frozen=True)
class Digest:
    """One run: one seed of one cell of a table."""

    config: TrainConfig
    """Of this run alone: one seed, one kind of weight changes."""
    failed: bool
    """Whether its loss or gradient was not finite, so that it stopped learning."""
    episodes: int
    overall: float
    """Mean regret of all episodes."""
    last: float
    """Mean regret of the episodes that ended in the last quarter of the steps."""
    curve: Float[np.ndarray, " points"]
    """Regret added up over the episodes that ended in the first k/POINTS of the steps, for k from
    1 to POINTS."""
    origin: dict[str, Any]
    """How it came about: version, commit, device, jax, date, seconds."""

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.config.seed_numbers[0]

    @property
    def cell(self) -> tuple[str, str, str]:
        """The cell of a table: agent, replay, weights."""
        return self.config.agent, self.config.replay, str(self.config.weights)


def digest(config: TrainConfig, records: Records, failed: bool, origin: dict[str, Any]) -> Digest:
    """Digest the records of one run."""
    steps, regrets = records["step"], records["regret"]
    alone = records | {"run": np.zeros(len(steps), np.int32)}
    regret = regret_of(alone, 1, config.steps)
    ends = np.arange(1, POINTS + 1) * config.steps / POINTS
    total = np.concatenate([[0.0], np.cumsum(regrets)])
    return Digest(
        config=config,
        failed=failed,
        episodes=len(steps),
        overall=float(regret.overall[0]),
        last=float(regret.last_quarter[0]),
        curve=total[np.searchsorted(steps, ends, side="right")],
        origin=origin,
    )


def setting(config: TrainConfig) -> dict[str, Any]:
    """All that runs must share to stand in one table: every setting but those that tell cells and
    seeds apart, and those that change nothing.
    """
    apart = {"agent", "replay", "weights", "seeds", "chunk", "checkpoint_seconds"}
    return {f.name: getattr(config, f.name) for f in fields(config) if f.name not in apart}
