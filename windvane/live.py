"""Weights from outside: set by another thread, a function or a file while an agent trains or acts.

A driver reads them when an episode begins or, with `immediately`, at every step.
"""

import json
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from windvane.errors import InputError, shown
from windvane.files import check_name, faults_of, read_text
from windvane.schedules import Counter, WeightSchedule
from windvane.weights import check_weights

POLL_SECONDS = 0.1
"""Least seconds between two polls of a watched file."""
MAX_FILE_BYTES = 65_536


class LiveWeights:
    """Weights that are set from outside, at any time.

    `set` may be called from any thread. New weights hold from the next episode on or, with
    `immediately`, from the next step on. The fused driver reads them between two chunks.
    """

    def __init__(self, weights: Any, *, immediately: bool = False):
        """Begin with `weights`, a point of the simplex."""
        self._lock = threading.Lock()
        self._vector = check_weights(weights).astype(np.float32)
        self.immediately = bool(immediately)

    @property
    def num_objectives(self) -> int:
        """Length of the weight vector."""
        return self._vector.size

    def set(self, weights: Any) -> None:
        """Change the weights."""
        vector = check_weights(weights, self.num_objectives).astype(np.float32)
        with self._lock:
            self._vector = vector

    def current(self) -> Float[np.ndarray, " objectives"]:
        """The current weights."""
        with self._lock:
            return self._vector.copy()

    def snapshot(self) -> "WeightSnapshot | ImmediateSnapshot":
        """The current weights as a schedule for compiled loops."""
        kind = ImmediateSnapshot if self.immediately else WeightSnapshot
        return kind(vector=jnp.asarray(self.current()), num_objectives=self.num_objectives)

    @staticmethod
    def from_function(
        function: Callable[[], Any], *, immediately: bool = False
    ) -> "FunctionWeights":
        """Weights that a function returns; drivers call it."""
        return FunctionWeights(function, immediately=immediately)

    @staticmethod
    def from_file(path: str | Path, *, immediately: bool = False) -> "FileWeights":
        """Weights that a file holds, such as `0.3,0.7` or `[0.3, 0.7]`; changes are noticed."""
        return FileWeights(path, immediately=immediately)


@final
class FunctionWeights(LiveWeights):
    """Weights that a function returns."""

    def __init__(self, function: Callable[[], Any], *, immediately: bool = False):
        """Call the function once, for the first weights."""
        self._function = function
        super().__init__(function(), immediately=immediately)

    def current(self) -> Float[np.ndarray, " objectives"]:
        """What the function returns now."""
        self.set(self._function())
        return super().current()


@final
class FileWeights(LiveWeights):
    """Weights in a watched file.

    A file without valid weights, such as one that is half written, leaves the weights as they are
    and causes one warning.
    """

    def __init__(self, path: str | Path, *, immediately: bool = False):
        """Read the file, which must hold weights."""
        check_name(path)
        self.path = Path(path)
        self._stamp, self._polled = self._stat(), time.monotonic()
        super().__init__(_read_weights(self.path), immediately=immediately)

    def current(self) -> Float[np.ndarray, " objectives"]:
        """The weights in the file, or the last valid ones."""
        now = time.monotonic()
        if now - self._polled >= POLL_SECONDS:
            self._polled = now
            stamp = self._stat()
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    vector = _read_weights(self.path)
                    with faults_of(self.path, "the weights in"):
                        self.set(vector)
                except InputError as error:
                    warnings.warn(f"the weights stay as they are: {error}", stacklevel=2)
        return super().current()

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except (OSError, ValueError):
            return None
        return status.st_mtime_ns, status.st_size


class WeightSnapshot(WeightSchedule):
    """The same weights until the driver replaces them."""

    vector: Float[Array, " objectives"]
    num_objectives: int = eqx.field(static=True)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The weights of the snapshot."""
        del key, episode, step
        return self.vector


class ImmediateSnapshot(WeightSnapshot):
    """As `WeightSnapshot`, for weights that hold from the next step on."""

    changes_within_episodes: ClassVar[bool] = True


def _read_weights(path: Path) -> Float[np.ndarray, " objectives"]:
    text = read_text(path, "weights such as 0.3,0.7 from", MAX_FILE_BYTES)
    with faults_of(path, "the weights in"):
        return parse_weights_text(text)


def parse_weights_text(text: str) -> Float[np.ndarray, " objectives"]:
    """Weights as a watched file holds them."""
    text = text.strip()
    try:
        numbers = json.loads(text if text.startswith("[") else f"[{text}]")
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"they must be written as 0.3,0.7 or [0.3, 0.7], not {shown(text)}"
        ) from error
    return check_weights(numbers)
