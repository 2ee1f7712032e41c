"""Deep Sea Treasure: a submarine dives for one treasure, and the richer ones lie further away.

State, dynamics, reward and the known maps. Pictures live in `deep_sea_treasure_drawing`.
"""

import warnings
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, Key, UInt8
from numpy.typing import ArrayLike

from windvane.deprecation import Renamed, current_name
from windvane.envs import deep_sea_treasure_drawing
from windvane.envs.environment import (
    ObservationKind,
    PixelObservations,
    Renderable,
    check_observation,
)
from windvane.errors import (
    LARGEST_COUNT,
    InputError,
    choose,
    in_one_line,
    require_positive_int,
    shown,
)
from windvane.files import faults_of, path_exists, read_text

MOVES = np.asarray([(-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)
"""What each action adds to (row, column)."""

FLOOR = -10.0
"""How the maps below mark sea floor; any negative number does."""

MAX_MAP_BYTES = 16 * 2**20
"""Size of a file that may hold a map."""
MAX_CELLS = 512 * 512
SMALLEST, LARGEST = 1e-6, 1e9
"""Bounds of a treasure's value, well within what 32 bits hold."""
MOST_PIXEL_CELLS = 4096
"""Pixel observations keep a frame of 7 kB for every cell."""


def _sea(rows: int, columns: int, treasures: dict[tuple[int, int], float]) -> np.ndarray:
    """Open sea with `treasures` lying on a floor that fills their columns downwards."""
    sea_map = np.zeros((rows, columns))
    for (row, column), value in treasures.items():
        sea_map[row, column] = value
        sea_map[row + 1 :, column] = FLOOR
    sea_map.setflags(write=False)
    return sea_map


MAPS = {
    "dcrac": _sea(12, 12, {
        (2, 0): 18, (2, 1): 26, (2, 2): 31, (4, 3): 44, (4, 4): 48.2,
        (5, 5): 56, (8, 6): 72, (8, 7): 76.3, (10, 8): 90, (11, 9): 100,
    }),
    "tenths": _sea(11, 11, {
        (1, 0): 5, (2, 1): 24.01, (3, 2): 34.82, (4, 3): 43.37, (4, 4): 47.15,
        (4, 5): 50.63, (7, 6): 65.05, (7, 7): 68.9, (9, 8): 81.15, (10, 9): 90.15,
    }),
    "convex": _sea(11, 11, {
        (1, 0): 0.7, (2, 1): 8.2, (3, 2): 11.5, (4, 3): 14.0, (4, 4): 15.1,
        (4, 5): 16.1, (7, 6): 19.6, (7, 7): 20.3, (9, 8): 22.4, (10, 9): 23.7,
    }),
    "concave": _sea(11, 11, {
        (1, 0): 1, (2, 1): 2, (3, 2): 3, (4, 3): 5, (4, 4): 8,
        (4, 5): 16, (7, 6): 24, (7, 7): 50, (9, 8): 74, (10, 9): 124,
    }),
}  # fmt: skip
"""The known maps; `SOURCES` says where each is from. The figure of the paper's own map is lost."""

FORMER_NAMES = {"paper": Renamed("dcrac", until="0.4")}
"""Names that maps had before; files may hold them."""

_LOST = "The figure of the paper's own map is lost, so that it is not known to be the paper's."
SOURCES = {
    "dcrac": "is that of the program published with DCRAC (Nian, Irissappane and Roijers, 2020), "
    f"and fits what the paper says of its own. {_LOST}",
    "tenths": "has the cells of Vamplew et al., with treasures each of which is the best for a "
    f"tenth of the weights, and fits what the paper says of its own, too. {_LOST}",
    "convex": "is that of Yang et al. (2019), not the paper's.",
    "concave": "is that of Vamplew et al., not the paper's.",
}
"""Where a map is from, after its name."""


class DeepSeaTreasureState(eqx.Module):
    """(row, column) of the submarine now and one step ago."""

    position: Int32[Array, "2"]
    previous_position: Int32[Array, "2"]


class DeepSeaTreasure(PixelObservations[DeepSeaTreasureState], Renderable[DeepSeaTreasureState]):
    """Two objectives: the treasure's value when it is reached, and -1 for every step.

    `sea_map` is the name of one of `MAPS`, or a table of numbers: 0 is open sea, a positive number
    a treasure of that value, a negative one sea floor. The submarine starts at (0, 0); a move off
    the map or into the floor leaves it in place; the first treasure ends the episode.
    """

    sea_map: Float[Array, "rows columns"]
    frames: UInt8[Array, "rows columns 48 48 3"] | None
    """Every possible frame, so that drawing one is a look-up; only kept for pixel observations."""
    observation: ObservationKind = eqx.field(static=True)
    time_limit: int = eqx.field(static=True)

    action_names: ClassVar[tuple[str, ...]] = ("up", "down", "left", "right")

    def __init__(
        self,
        sea_map: str | ArrayLike = "dcrac",
        *,
        observation: str = "features",
        time_limit: int = 100,
    ):
        """Build an instance.

        `observation` is "features" or "pixels"; `time_limit` is where drivers truncate an episode.
        """
        self.observation = check_observation(observation)
        self.time_limit = require_positive_int("time_limit", time_limit, LARGEST_COUNT)
        self.sea_map = jnp.asarray(check_map(sea_map))
        pixels = self.observation == "pixels"
        if pixels and self.sea_map.size > MOST_PIXEL_CELLS:
            raise InputError(
                f"pixels are for maps of at most {MOST_PIXEL_CELLS:,} cells, and this one has "
                f"{self.sea_map.size:,}"
            )
        self.frames = deep_sea_treasure_drawing.all_frames(self.sea_map) if pixels else None

    @property
    def objective_names(self) -> tuple[str, ...]:
        """The treasure's value, then time."""
        return ("treasure", "time")

    @property
    def reward_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Treasure from 0 to the richest; time is always -1."""
        richest = float(self.sea_map.max())
        return np.asarray([0, -1], np.float32), np.asarray([richest, -1], np.float32)

    @property
    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns, from 0."""
        return np.zeros(2, np.int32), np.asarray(self.sea_map.shape, np.int32) - 1

    def reset(self, key: Key[Array, ""]) -> DeepSeaTreasureState:
        """The submarine at the surface, top left. The key is not used."""
        del key
        start = jnp.zeros(2, jnp.int32)
        return DeepSeaTreasureState(start, start)

    def step(
        self, state: DeepSeaTreasureState, action: Int[Array, ""], key: Key[Array, ""]
    ) -> tuple[DeepSeaTreasureState, Float[Array, "2"], Bool[Array, ""]]:
        """Move by one cell. The key is not used."""
        del key
        here = state.position
        last = np.asarray(self.sea_map.shape, np.int32) - 1
        target = jnp.clip(here + jnp.asarray(MOVES)[action], 0, last)
        floor = self.sea_map[target[0], target[1]] < 0
        there = jnp.where(floor, here, target).astype(jnp.int32)
        treasure = jnp.maximum(self.sea_map[there[0], there[1]], 0)
        reward = jnp.stack([treasure, jnp.full_like(treasure, -1)])
        return DeepSeaTreasureState(there, here), reward, treasure > 0

    def features(self, state: DeepSeaTreasureState) -> Int32[Array, "2"]:
        """Row and column."""
        return state.position

    def views(self, state: DeepSeaTreasureState) -> tuple[Int32[Array, "2"], Int32[Array, "2"]]:
        """The position of one step ago and of now."""
        return state.previous_position, state.position

    def frame(self, view: Int32[Array, "2"]) -> UInt8[Array, "48 48 3"]:
        """The paper's input frame."""
        if self.frames is None:
            return deep_sea_treasure_drawing.frame(self.sea_map, view)
        return self.frames[view[0], view[1]]

    def render(self, state: DeepSeaTreasureState, size: int) -> UInt8[Array, "height width 3"]:
        """The same scene at any size, with the treasures' values where a cell has room.

        Digits need the numbers themselves, so `sea_map` must not be traced here: compile
        `lambda state: env.render(state, size)` rather than `env.render`.
        """
        with jax.ensure_compile_time_eval():
            scenery = deep_sea_treasure_drawing.scenery(np.asarray(self.sea_map), size)
        return deep_sea_treasure_drawing.draw_submarine(
            scenery, self.sea_map.shape[0], state.position, state.previous_position
        )


def read_map(name: str) -> "str | np.ndarray":
    """The name of a known map, or the table of numbers that a text file holds."""
    name = current_name("map", name, FORMER_NAMES, typed=False)
    if name in MAPS:
        return name
    path = Path(name)
    if not path_exists(path):
        raise InputError(f"unknown map {shown(name)}; choose {', '.join(MAPS)} or name a text file")
    text = read_text(path, "the map", MAX_MAP_BYTES)
    try:
        with warnings.catch_warnings(action="ignore"):  # of an empty file, which is refused below
            table = np.loadtxt(text.splitlines(), ndmin=2)
    except ValueError as error:
        raise InputError(
            f"the map {path} is not a table of numbers: {in_one_line(error)}"
        ) from error
    if table.size == 0:
        raise InputError(f"the map {path} is not a table of numbers: it is empty")
    with faults_of(path, "the map"):
        return check_map(table)


def source(args: Mapping[str, Any]) -> str:
    """Where the map of an environment with these arguments is from."""
    given = args.get("map", "dcrac")
    name = None
    if isinstance(given, str):
        name = current_name("map", given, FORMER_NAMES, typed=False)
    return f'The map "{name}" {SOURCES[name]}' if name in SOURCES else "The map is a custom one."


def check_map(sea_map: str | ArrayLike) -> Float[np.ndarray, "rows columns"]:
    """Return the map as an array of numbers, or say what is wrong with it."""
    if isinstance(sea_map, str):
        return MAPS[choose("map", current_name("map", sea_map, FORMER_NAMES), tuple(MAPS))]
    try:
        given = np.asarray(sea_map)
    except (TypeError, ValueError, RecursionError):
        given = np.asarray(None)
    if given.dtype.kind not in "iuf":
        raise InputError("a map must be a table of numbers with rows of one length")
    if given.ndim != 2 or given.size == 0:
        raise InputError(f"a map must be a table of rows and columns, not of shape {given.shape}")
    if given.size > MAX_CELLS:
        raise InputError(
            f"a map has at most {MAX_CELLS:,} cells, and this one has {given.size:,} "
            f"({given.shape[0]:,} x {given.shape[1]:,})"
        )
    table = given.astype(float)
    if not np.isfinite(table).all():
        raise InputError(f"a map must hold finite numbers, not {table[~np.isfinite(table)][0]}")
    absurd = (np.abs(table) > LARGEST) | ((table > 0) & (table < SMALLEST))
    if absurd.any():
        raise InputError(
            f"treasures of a map must be from {SMALLEST:g} to {LARGEST:g}, "
            f"and one number is {table[absurd][0]:g}"
        )
    if table[0, 0] != 0:
        raise InputError(f"the start of a map, its first cell, must be 0, not {table[0, 0]:g}")
    if not (table > 0).any():
        raise InputError("a map needs a treasure, a number above 0, and this one has none")
    if not (reachable_distances(table)[table > 0] >= 0).any():
        raise InputError("a map needs a treasure that the start can reach past the sea floor")
    return table


def reachable_distances(sea_map: Float[np.ndarray, "rows columns"]) -> np.ndarray:
    """Fewest steps from the start to every cell, or -1 where no path leads.

    A path may end on a treasure but not cross one, since the first treasure ends the episode.
    """
    # Python's own lists: reading single cells of an array would take ten times as long.
    cells, moves = sea_map.tolist(), MOVES.tolist()
    rows, columns = sea_map.shape
    distances = [[-1] * columns for _ in range(rows)]
    distances[0][0] = 0
    queue = deque([(0, 0)])
    while queue:
        row, column = queue.popleft()
        if cells[row][column] > 0:
            continue
        for down, right in moves:
            to_row, to_column = row + down, column + right
            inside = 0 <= to_row < rows and 0 <= to_column < columns
            if inside and cells[to_row][to_column] >= 0 and distances[to_row][to_column] < 0:
                distances[to_row][to_column] = distances[row][column] + 1
                queue.append((to_row, to_column))
    return np.asarray(distances)
