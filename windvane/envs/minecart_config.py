"""Instances of the Minecart problem: mines, ores and capacity, from Python, from JSON or at random.

The JSON form is the one of the authors' program and of MO-Gymnasium, so files can be exchanged.
What may not live here: dynamics or drawing.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from windvane.errors import InputError, is_number, require_positive_int, shown
from windvane.files import atomic_write, faults_of, read_json

MINE_RADIUS = 0.14
BASE_RADIUS = 0.15

MAX_MINES = 256
MAX_ORES = 63
"""With the fuel, as many objectives as an environment may have."""
SMALLEST, LARGEST = 1e-30, 1e30
"""Bounds of an instance's numbers: in 32 bits much smaller ones are 0 and larger ones infinite."""

DEFAULT_COLOURS = ((57, 112, 252), (137, 48, 182), (230, 126, 34), (39, 174, 96), (241, 196, 15))
"""Ore colours of the authors' program for two ores, continued for more."""


@dataclass(frozen=True)
class Mine:
    """A mine at (x, y); a frame of mining there yields ores of these means and deviations."""

    x: float
    y: float
    distributions: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        name = f"the mine at ({shown(self.x)}, {shown(self.y)})"
        for axis, place in (("x", self.x), ("y", self.y)):
            if not (is_number(place) and 0 <= place <= 1):
                raise InputError(
                    f"{name} lies outside the map: {axis} is {shown(place)}, and must be from 0 to "
                    "1"
                )
        if not _are_rows(self.distributions, 2):
            raise InputError(
                f"{name} needs distributions of (mean, deviation) pairs, "
                f"not {shown(self.distributions)}"
            )
        if len(self.distributions) > MAX_ORES:
            raise InputError(
                f"{name} has {len(self.distributions)} ores, and at most {MAX_ORES} are possible"
            )
        for mean, deviation in self.distributions:
            if not (is_number(mean) and abs(mean) <= LARGEST):
                raise InputError(
                    f"{name} has an ore mean of {shown(mean)}, which is not a number from "
                    f"{-LARGEST:g} to {LARGEST:g}"
                )
            if not (is_number(deviation) and 0 <= deviation <= LARGEST):
                raise InputError(
                    f"{name} has a standard deviation of {shown(deviation)}; it must be 0 or more, "
                    f"and at most {LARGEST:g}"
                )


@dataclass(frozen=True)
class MinecartConfig:
    """An instance: `mines`, the cart's `capacity`, and a colour for each ore's bar."""

    mines: tuple[Mine, ...]
    capacity: float = 1.5
    ore_colours: tuple[tuple[float, ...], ...] = DEFAULT_COLOURS

    @property
    def num_ores(self) -> int:
        """Number of ores; the problem has one objective more, the fuel."""
        return len(self.mines[0].distributions)

    def __post_init__(self) -> None:
        listed = isinstance(self.mines, (tuple, list))
        if not (listed and all(isinstance(mine, Mine) for mine in self.mines)):
            raise InputError(
                f"the mines of an instance must be Mine objects, not {shown(self.mines)}"
            )
        if not self.mines:
            raise InputError("a Minecart instance needs at least one mine, and got none")
        if len(self.mines) > MAX_MINES:
            raise InputError(
                f"a Minecart instance has at most {MAX_MINES} mines, not {len(self.mines):,}"
            )
        if not (is_number(self.capacity) and self.capacity > 0):
            raise InputError(
                f"the cart's capacity must be a number above 0, not {shown(self.capacity)}"
            )
        if not SMALLEST <= self.capacity <= LARGEST:
            raise InputError(
                f"the cart's capacity must be from {SMALLEST:g} to {LARGEST:g}, "
                f"not {self.capacity:g}"
            )
        for index, mine in enumerate(self.mines):
            if len(mine.distributions) != self.num_ores:
                raise InputError(
                    f"mine {index} has distributions for {len(mine.distributions)} ores and mine 0 "
                    f"for {self.num_ores}; every mine needs the same number"
                )
        colours = self.ore_colours
        if not _are_rows(colours, 3) or not all(
            is_number(shade) and 0 <= shade <= 255 for colour in colours for shade in colour
        ):
            raise InputError(
                f"ore colours must be a list of three numbers of 0 to 255 each, "
                f"not {shown(colours)}"
            )

    def colours(self) -> np.ndarray:
        """One RGB colour per ore; colours repeat when there are more ores than colours."""
        chosen = [self.ore_colours[i % len(self.ore_colours)] for i in range(self.num_ores)]
        return np.asarray(chosen, np.float32)

    def deterministic(self) -> "MinecartConfig":
        """The same instance with every standard deviation 0."""
        mines = tuple(
            Mine(m.x, m.y, tuple((mean, 0.0) for mean, _ in m.distributions)) for m in self.mines
        )
        return MinecartConfig(mines, self.capacity, self.ore_colours)

    def to_dict(self) -> dict[str, Any]:
        """The instance as plain values, which `from_dict` and MO-Gymnasium understand."""
        return {
            "capacity": self.capacity,
            "mine_cnt": len(self.mines),
            "ore_cnt": self.num_ores,
            "ore_colors": self.colours().astype(int).tolist(),
            "mines": [
                {"x": m.x, "y": m.y, "distributions": [list(d) for d in m.distributions]}
                for m in self.mines
            ],
        }

    def to_json(self, path: str | Path) -> None:
        """Write the instance to a file that `from_json` and MO-Gymnasium read."""
        text = json.dumps(self.to_dict(), indent=2, default=float) + "\n"
        atomic_write(Path(path), lambda file: file.write(text.encode()))

    @staticmethod
    def from_json(path: str | Path) -> "MinecartConfig":
        """Read an instance from a JSON file."""
        data = read_json(path, "the Minecart instance")
        with faults_of(path, "the Minecart instance"):
            return MinecartConfig.from_dict(data)

    @staticmethod
    def from_dict(data: Any) -> "MinecartConfig":
        """Build an instance from the parsed JSON form."""
        if not isinstance(data, dict) or not isinstance(data.get("mines"), list):
            raise InputError('a Minecart instance must be an object with a list of "mines"')
        mines = []
        for index, entry in enumerate(data["mines"]):
            if not isinstance(entry, dict):
                raise InputError(
                    f"mine {index} of the Minecart instance must be an object, not {shown(entry)}"
                )
            missing = [k for k in ("x", "y", "distributions") if k not in entry]
            if missing:
                raise InputError(f"mine {index} of the Minecart instance lacks {missing[0]!r}")
            mines.append(Mine(entry["x"], entry["y"], _tuples(entry["distributions"])))
        colours = data.get("ore_colors") or DEFAULT_COLOURS
        return MinecartConfig(tuple(mines), data.get("capacity", 1.5), _tuples(colours))

    @staticmethod
    def random(
        key: Key[Array, ""], num_mines: int = 5, num_ores: int = 2, capacity: float = 1.5
    ) -> "MinecartConfig":
        """Draw an instance: mines clear of the base and of each other where there is room.

        Ore means are uniform below 0.25 with about a third of them 0, so that mines specialise;
        every standard deviation is the paper's 0.05.
        """
        require_positive_int("the number of mines", num_mines, MAX_MINES)
        require_positive_int("the number of ores", num_ores, MAX_ORES)
        seed = np.asarray(jax.random.bits(key, (4,)))
        generator = np.random.default_rng(seed)
        positions: list[np.ndarray] = []
        clearance = 2 * MINE_RADIUS
        while len(positions) < num_mines:
            candidate = generator.uniform(0.0, 1.0, 2)
            if np.hypot(*candidate) < BASE_RADIUS + MINE_RADIUS:
                continue
            if all(np.hypot(*(candidate - p)) >= clearance for p in positions):
                positions.append(candidate)
            else:
                clearance *= 0.99
        mines = []
        for position in positions:
            means = generator.uniform(0.05, 0.25, num_ores) * (generator.random(num_ores) > 0.35)
            if not means.any():
                means[generator.integers(num_ores)] = 0.2
            x, y = (round(float(p), 3) for p in position)
            mines.append(Mine(x, y, tuple((round(float(m), 3), 0.05) for m in means)))
        return MinecartConfig(tuple(mines), capacity)


def _are_rows(value: Any, width: int) -> bool:
    """Whether `value` lists at least one row, and every row `width` things."""
    return (
        isinstance(value, (tuple, list))
        and len(value) > 0
        and all(isinstance(row, (tuple, list)) and len(row) == width for row in value)
    )


def _tuples(value: Any) -> Any:
    """A list of lists as a tuple of tuples; anything else stays, to be refused by name."""
    if not isinstance(value, list):
        return value
    return tuple(tuple(row) if isinstance(row, list) else row for row in value)


PAPER = MinecartConfig(
    mines=(
        Mine(0.16, 0.84, ((0.20, 0.05), (0.00, 0.05))),
        Mine(0.50, 0.84, ((0.15, 0.05), (0.10, 0.05))),
        Mine(0.84, 0.84, ((0.20, 0.05), (0.20, 0.05))),
        Mine(0.84, 0.50, ((0.10, 0.05), (0.15, 0.05))),
        Mine(0.84, 0.16, ((0.00, 0.05), (0.20, 0.05))),
    )
)
"""The paper's default instance: mines (c) to (g) of its Figure 2, with the means of its table."""
