"""The clock of `benchmarks.time_to_utility`, and looks at greedy policies while it stands still."""

import json
import os
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.utility_games import (
    FEW,
    GAMES,
    WEIGHTS,
    Act,
    Arena,
    make,
    optimal_utilities,
    weight_vectors,
)
from windvane.machine import usable_cores

FIRST, LOOKS = 2.0, 15
"""Seconds of the first look, and how many are spread geometrically until time is over."""
CLOSE, ENOUGH = 0.8, 0.995
"""Share of the optimum from which looks are at all weights; and where peers stop, reached twice."""
TICK, HISTORY = 0.05, 12_000
"""Seconds between two readings of both clocks, and how many are kept: ten minutes."""
PACKAGES = ("morl-baselines", "mo-gymnasium", "gymnasium", "torch", "jax", "numpy")


class Clock:
    """Seconds of training: without looks, and without compilation unless asked for.

    They are seconds of the processor. A contender has one core and one thread, so that on an idle
    machine these are the seconds that pass, and other work on the machine counts for nobody.
    """

    def __init__(
        self,
        passed: Callable[[], float] = time.perf_counter,
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self.looking = False
        self._passed, self.used = passed, used
        self._begun = used()
        self._looks = 0.0
        self._compilations: list[tuple[float, float]] = []
        self.compilation = 0.0
        self._history = deque([(passed(), self._begun)], HISTORY)

    def start(self) -> None:
        """Training begins now."""
        self._begun, self._compilations, self.compilation = self.used(), [], 0.0
        threading.Thread(target=self._remember, daemon=True).start()

    @property
    def seconds(self) -> float:
        """Of training alone."""
        return self.with_compilation - self.compilation

    @property
    def with_compilation(self) -> float:
        """Of training, as its user waits for it."""
        return self.used() - self._begun - self._looks

    def compiled(self, seconds: float) -> None:
        """Something has just been compiled, in so many seconds that passed. What happened within is
        part of it, not more.
        """
        if self.looking:
            return
        now, end = self._passed(), self.used()
        passed, used = np.transpose([*tuple(self._history), (now, end)])
        begin = max(float(np.interp(now - seconds, passed, used)), self._begun)
        while self._compilations and self._compilations[-1][1] > begin:
            first, last = self._compilations.pop()
            begin, self.compilation = min(begin, first), self.compilation - (last - first)
        self._compilations.append((begin, end))
        self.compilation += end - begin

    def looked(self, seconds: float) -> None:
        """So long it stood still."""
        self._looks += seconds

    def _remember(self) -> None:
        """Both clocks side by side, as compilers tell their seconds by the one on the wall."""
        while True:
            self._history.append((self._passed(), self.used()))
            time.sleep(TICK)


class Looks:
    """Looks at the greedy policy of one contender, in a file that is complete after each."""

    def __init__(self, env: str, minutes: float, out: Path, about: dict[str, Any]):
        self.env, self.clock, self._out = env, Clock(), out
        self.budget = 60 * minutes
        self._times = np.geomspace(FIRST, max(self.budget, 2 * FIRST), LOOKS).tolist()
        weights = weight_vectors(env)
        self._optimal = optimal_utilities(env, weights)
        self._arena = Arena(env, weights)
        self._report = about | {
            "env": env, "gamma": GAMES[env].gamma, "optimum": float(self._optimal.mean()),
            "optimum_from": GAMES[env].optimum, "random": self._random(), "minutes": minutes,
            "finished": "", "rows": [], "versions": _versions(), "cores": usable_cores(),
            "processor": _processor(), "load_at_start": os.getloadavg(),
        }  # fmt: skip

    @property
    def due(self) -> bool:
        """Whether it is time to look."""
        return bool(self._times) and self.clock.seconds >= self._times[0]

    @property
    def over(self) -> bool:
        """Whether all time is used."""
        return self.clock.seconds >= self.budget

    @property
    def enough(self) -> bool:
        """Whether two looks running have found all that there is to learn."""
        rows = self._report["rows"][-2:]
        return len(rows) == 2 and min(row["share"] for row in rows) >= ENOUGH

    def look(self, act: Act, steps: int, finished: str = "") -> None:
        """Judge the policy of this moment; the last look, which says why, is at all weights."""
        clock = self.clock
        moment = {
            "seconds": clock.seconds, "with_compilation": clock.with_compilation, "steps": steps,
        }  # fmt: skip
        clock.looking, began = True, clock.used()
        while self._times and self._times[0] <= moment["seconds"]:
            self._times.pop(0)
        row = self._judge(act, WEIGHTS if finished else FEW)
        if not finished and row["share"] >= CLOSE:
            row = self._judge(act, WEIGHTS)
        row = moment | row | {"look_seconds": clock.used() - began, "load": os.getloadavg()}
        self._report["rows"].append(row)
        self._report |= {"finished": finished, "compilation": clock.compilation}
        self._out.parent.mkdir(parents=True, exist_ok=True)
        part = self._out.with_suffix(".part")
        part.write_text(json.dumps(self._report, indent=1) + "\n")
        part.replace(self._out)
        shown = {key: round(value, 4) for key, value in row.items() if key != "load"}
        print(shown, finished, file=sys.stderr, flush=True)
        clock.looked(clock.used() - began)
        clock.looking = False

    def _judge(self, act: Act, size: int) -> dict[str, Any]:
        utilities, truncated = self._arena.play(act, size)
        optimal = self._optimal[:size]
        return {
            "weights": size, "utility": float(utilities.mean()), "worst": float(utilities.min()),
            "worst_regret": float((optimal - utilities).max()), "truncated": truncated,
            "share": float(utilities.mean() / optimal.mean()),
        }  # fmt: skip

    def _random(self) -> float:
        """The mean utility of random play."""
        rng = np.random.default_rng(0)
        actions = make(self.env).action_space.n  # type: ignore[attr-defined]
        played, _ = self._arena.play(lambda seen, _: rng.integers(actions, size=len(seen)), FEW)
        return float(played.mean())


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
