"""Weights that move by themselves while somebody watches: by the paper's schedules, or as they were
recorded.
"""

import itertools
from abc import ABC, abstractmethod
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane.errors import InputError, choose, is_number, shown
from windvane.schedules import RegularChanges, SparseChanges
from windvane.weights import check_weights

KINDS = ("off", "sparse", "regular")
EVERY = 120
"""Steps between two changes, or between two targets."""
MOST_ROWS = 10_000


class WeightsOverTime(ABC):
    """Weights by step."""

    name: str

    @abstractmethod
    def at(self, step: int) -> np.ndarray:
        """The weights of a step, counted from when they began to play."""


@final
class Market(WeightsOverTime):
    """The paper's schedules, with steps in the place of episodes, since what is watched should move
    within minutes.
    """

    def __init__(self, kind: str, num_objectives: int, seed: int):
        """Prepare a schedule; `kind` is sparse or regular."""
        self.name = kind
        if kind == "sparse":
            schedule: Any = SparseChanges(num_objectives, EVERY)
        else:
            schedule = RegularChanges(num_objectives, EVERY)
        key = jax.random.key(seed)

        def weights(step: Any) -> Any:
            return schedule.weights(key, step, step)

        self._weights = eqx.filter_jit(weights)

    def at(self, step: int) -> np.ndarray:
        """The schedule's weights, which are made to sum to 1 in 64 bits."""
        vector = np.asarray(self._weights(jnp.asarray(step, jnp.int32)), float)
        return vector / vector.sum()


@final
class Sequence(WeightsOverTime):
    """Recorded rows: each holds from its step until that of the next one, the last for good."""

    name = "sequence"

    def __init__(self, rows: Any, num_objectives: int):
        """Check rows of a step and weights, in the order of their steps."""
        if not (isinstance(rows, list) and 0 < len(rows) <= MOST_ROWS):
            raise InputError(f"a sequence must be 1 to {MOST_ROWS:,} rows of a step and weights")
        steps, vectors = [], []
        for row in rows:
            if not (isinstance(row, list) and row and is_number(row[0]) and 0 <= row[0] <= 2**31):
                raise InputError(
                    f"a row of a sequence must begin with its step, 0 or more, not {shown(row)}"
                )
            steps.append(float(row[0]))
            vectors.append(check_weights(row[1:], num_objectives))
        if any(later < earlier for earlier, later in itertools.pairwise(steps)):
            raise InputError("the rows of a sequence must be in the order of their steps")
        self._steps, self._vectors = np.asarray(steps), np.stack(vectors)

    def at(self, step: int) -> np.ndarray:
        """The row of a step; before the first row, that one."""
        index = int(np.searchsorted(self._steps, step, side="right")) - 1
        return self._vectors[max(index, 0)]


def make_market(kind: Any, num_objectives: int, seed: int) -> Market | None:
    """The market of a kind; None for none."""
    if not isinstance(kind, str):
        raise InputError(f"the kind of a market must be one of {', '.join(KINDS)}")
    choose("kind of market", kind, KINDS)
    return None if kind == "off" else Market(kind, num_objectives, seed)
