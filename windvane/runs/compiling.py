"""What is said before the programs of a training are compiled: how long it takes, or that it was
done before.

How long is what this machine took last time for a training of the same kind, else what was measured
on two cores that did nothing else. The times lie in JAX's cache of compiled programs, so that they
go with it.
"""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import jax

from windvane.envs.environment import Environment
from windvane.errors import InputError
from windvane.files import atomic_write, read_json
from windvane.training.build import Training
from windvane.version import __version__

TYPICAL = {"replay": 20, "pixels": 35, "rollouts": 10, "accelerator": 60}
"""Seconds until the first numbers are there, by what is compiled."""
FILE = "windvane-times.json"
MOST = 1_000
"""Entries of the file."""


class Compiling:
    """Compiling of one training, from its beginning to the first numbers."""

    def __init__(self, training: Training):
        """Look up what is known of such programs."""
        config = training.config
        self.programs = 1 if config.rollout else 2
        """A training with replay has one program before learning starts, and another after."""
        native = isinstance(training.world, Environment)
        self._typical = TYPICAL[_typical(training, native)]
        self._kind = f"{jax.default_backend()} {native} {config.agent} {config.observation}"
        self._key = _fingerprint(config.to_json(), len(config.runs))
        cache = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        self._path = Path(cache) / FILE if cache else None
        self._began = time.monotonic()

    @property
    def sentence(self) -> str:
        """What there is to wait for."""
        times = self._times()
        if self._key in times:
            return "loading programs that were compiled before"
        if self._kind in times:
            return f"compiling, which took {times[self._kind]:.0f} s the last time"
        return f"compiling, about {self._typical} s on an idle machine"

    def done(self) -> None:
        """Take note of how long it took."""
        times, seconds = self._times(), round(time.monotonic() - self._began, 1)
        if self._path is None or self._key in times:
            return
        times = dict(list(times.items())[-MOST:]) | {self._key: seconds, self._kind: seconds}
        try:
            atomic_write(self._path, lambda file: file.write(json.dumps(times).encode()))
        except (OSError, InputError):  # it is only an estimate
            return

    def _times(self) -> dict[str, float]:
        try:
            found = {} if self._path is None else read_json(self._path)
        except (OSError, InputError):  # not there yet, or damaged
            return {}
        known = found.items() if isinstance(found, dict) else ()
        return {name: float(value) for name, value in known if type(value) in (int, float)}


def _typical(training: Training, native: bool) -> str:
    if jax.default_backend() != "cpu":
        return "accelerator"
    if training.config.rollout:
        return "rollouts"
    return "pixels" if native and len(training.spec.frame.shape) > 1 else "replay"


def _fingerprint(settings: dict[str, Any], runs: int) -> str:
    """Of all that a program depends on: seeds are given to it, and of names it knows nothing."""
    apart = ("seeds", "checkpoint_seconds", "start_from", "start_checksum", "evaluate_every")
    kept = {name: value for name, value in settings.items() if name not in apart}
    text = json.dumps([__version__, runs, jax.device_count(), kept], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
