"""What a training tells the outside between two chunks, and how it is answered.

What may not live here: what is done with it (see `windvane.tracking`), or anything that trains.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from windvane.errors import InputError, shown
from windvane.training.config import TrainConfig


@dataclass(frozen=True)
class TrainingProgress:
    """What is new since the last call: steps after `start`, up to `step`. Nothing of it can be
    changed.

    After every chunk there is one. A training that is resumed begins with one more, `resumed`, of
    what was recorded before. So a callback sees every recorded episode and evaluation once,
    whenever the training was interrupted.
    """

    config: TrainConfig
    """All settings."""
    folder: Path | None
    """The run folder, or None where nothing is written."""
    objectives: tuple[str, ...]
    """Names of the objectives."""
    start: int
    """Steps that each run had taken at the last call."""
    step: int
    """Steps that each run has taken."""
    episodes: Mapping[str, np.ndarray]
    """One row per episode that ended: the columns of `windvane.read_records`."""
    evaluations: Mapping[str, np.ndarray] | None = None
    """One row per run and greedy evaluation: `run`, `seed`, `step`, `utility`, `worst_utility`,
    `regret`, `worst_regret` and `never_ending`. None if there was no evaluation."""
    resumed: bool = False
    """Whether this is what was recorded before the training was resumed."""

    @property
    def steps(self) -> int:
        """Steps that each run takes in all."""
        return self.config.steps

    @property
    def run_names(self) -> tuple[str, ...]:
        """Names of the runs; the column `run` counts them from 0 on."""
        return self.config.run_names


Callback = Callable[[TrainingProgress], Any]
"""Called between chunks. If it returns True, the training stops as if it was interrupted."""


class Answer(NamedTuple):
    """What callbacks made of a call."""

    stop: bool = False
    error: BaseException | None = None


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Functions of the progress, as a tuple."""
    given = tuple(callbacks) if isinstance(callbacks, Iterable) else (callbacks,)
    for callback in given:
        if not callable(callback):
            raise InputError(
                f"callbacks must be functions of the training's progress, not {shown(callback)}"
            )
    return given


def call_back(callbacks: Iterable[Callback], progress: TrainingProgress) -> Answer:
    """Call each; what one raises is returned, so that a checkpoint can be written first."""
    stop = False
    for callback in callbacks:
        try:
            answer = callback(progress)
        except (Exception, SystemExit) as error:
            return Answer(True, error)
        stop |= isinstance(answer, bool | np.bool_) and bool(answer)
    return Answer(stop)


def read_only(table: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The same columns, for whoever must not change them."""
    columns = {}
    for name, column in table.items():
        columns[name] = column.view()
        columns[name].flags.writeable = False
    return MappingProxyType(columns)
