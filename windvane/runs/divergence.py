"""Which runs diverged although their loss stayed finite: a rule about what records hold.

A Q-value is an expected return, so no error is larger than the returns that can be reached lie
apart. Records have the returns of episodes from their start: the values of later states may exceed
them, as a reward that is t steps nearer is discounted t times less, but a factor of 10 covers
rewards as far away as 2.3 horizons of 1 / (1 - gamma) steps. And a network that has learned nothing
yet has any values, whose first loss is no sign of divergence either. So a run has diverged where a
recorded loss is above

    10 max(range of returns, first loss),

with the range of an objective's discounted and scaled returns, 0 included, in the objective where
it is widest. Agents whose loss is of squared errors are judged by its square root.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from windvane.agents import AGENTS
from windvane.training.config import TrainConfig

FACTOR = 10.0
"""How many times the range of recorded returns an error may be."""


class LossCheck(NamedTuple):
    """The largest loss of a run and the largest that its returns allow; NaN if not known."""

    largest: float
    limit: float

    @property
    def exploded(self) -> bool:
        """Whether the run diverged, by the rule above."""
        return self.largest > self.limit


def check_loss(episodes: Mapping[str, Any], config: TrainConfig) -> LossCheck:
    """Check the losses of the episodes of one run, in the order of its steps."""
    losses = np.asarray(episodes.get("loss", ()), float)
    losses = losses[np.isfinite(losses) & (losses > 0)]  # it is 0 until learning starts
    returns = [np.asarray(x, float) for name, x in episodes.items() if name.startswith("return_")]
    if not losses.size or not returns:
        return LossCheck(np.nan, np.nan)
    width = max(float(max(x.max(), 0.0) - min(x.min(), 0.0)) for x in returns)
    with np.errstate(over="ignore"):
        errors = [(np.maximum(width, losses[0] ** (1 / p)), p) for p in _powers(config.agent)]
        limits = [(FACTOR * error) ** p for error, p in errors]
    return LossCheck(float(losses.max()), float(max(limits)))


def exploded_runs(records: Mapping[str, Any], config: TrainConfig) -> tuple[int, ...]:
    """The runs of a training, from 0 on, that diverged although their loss stayed finite."""
    found = []
    for number, run in enumerate(config.runs):
        mask = records["run"] == number
        episodes = {name: column[mask] for name, column in records.items()}
        if check_loss(episodes, run).exploded:
            found.append(number)
    return tuple(found)


def _powers(agent: str) -> tuple[int, ...]:
    """The powers of errors that the loss of an agent may be of; one of its own may be of either."""
    power = getattr(AGENTS[agent].factory(), "loss_power", None) if agent in AGENTS else None
    return (1, 2) if power is None else (power,)
