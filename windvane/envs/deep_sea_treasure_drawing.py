"""Pictures of Deep Sea Treasure: blue sea, black floor, yellow treasures, and the submarine.

The 48x48 frame shows it as a white circle, as the paper does; pictures for people show a boat and
the treasures' values on the same scene.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from windvane.envs.drawing import Canvas, Grid, disc, paint, rectangle, span, text, to_uint8
from windvane.errors import InputError

FRAME = 48

SEA = (30.0, 105.0, 200.0)
FLOOR = (0.0, 0.0, 0.0)
TREASURE = (250.0, 210.0, 40.0)
AGENT = (255.0, 255.0, 255.0)
TREASURE_RIM = (196.0, 152.0, 12.0)
DIGITS = (70.0, 45.0, 0.0)
TOWER = (225.0, 225.0, 225.0)
SCREW = (205.0, 205.0, 205.0)
PORTHOLE = (25.0, 60.0, 110.0)

ROOM_FOR_DIGITS = 14
"""Smallest cell, in pixels, whose value is written on it."""


MAX_PIXELS = 2**24
"""Of a picture for people, and numbers of the shares that its pixels have of rows and columns."""


def drawable(rows: int, columns: int, size: int) -> bool:
    """Whether a map can be drawn `size` pixels high without taking much memory."""
    width = round(size * columns / rows)
    return max(size * width, width * columns, size * rows) <= MAX_PIXELS


def cells(sea_map: Float[Array | np.ndarray, "rows columns"], grid: Grid, cell: float) -> Canvas:
    """Every cell as a square of its colour, the map in the middle and sea floor around it.

    A pixel on a border gets each side's colour by the share of it that the side covers.
    """
    rows, columns = sea_map.shape
    table = jnp.asarray(sea_map, jnp.float32)[..., None]
    sea, treasure, floor = (jnp.asarray(c, jnp.float32) for c in (SEA, TREASURE, FLOOR))
    colour = jnp.where(table > 0, treasure, sea)
    # Relative to the floor, so that what lies outside the map is floor as well.
    colour = jnp.where(table < 0, 0.0, colour - floor)
    left, top = _corner(grid, rows, columns, cell)
    left_edges = left + cell * np.arange(columns, dtype=np.float32)
    top_edges = top + cell * np.arange(rows, dtype=np.float32)[:, None]
    across = span(jnp.asarray(grid.x.T), left_edges, left_edges + cell, grid.pixel)
    down = span(jnp.asarray(grid.y.T), top_edges, top_edges + cell, grid.pixel)
    exact = jax.lax.Precision.HIGHEST
    return jnp.einsum("rh,rck,wc->hwk", down, colour, across, precision=exact) + floor


def frame(
    sea_map: Float[Array, "rows columns"], position: Int[Array, "2"]
) -> UInt8[Array, "48 48 3"]:
    """The paper's input frame; a map that is not square is letterboxed."""
    rows, columns = sea_map.shape
    grid, cell = Grid.of(FRAME), 1 / max(rows, columns)
    left, top = _corner(grid, rows, columns, cell)
    row, column = position.astype(jnp.float32)
    agent = disc(grid, left + (column + 0.5) * cell, top + (row + 0.5) * cell, 0.45 * cell)
    return to_uint8(paint(cells(sea_map, grid, cell), AGENT, agent))


def all_frames(sea_map: Float[Array, "rows columns"]) -> UInt8[Array, "rows columns 48 48 3"]:
    """The frame of every position."""
    rows, columns = sea_map.shape
    positions = jnp.stack(jnp.meshgrid(jnp.arange(rows), jnp.arange(columns), indexing="ij"), -1)
    return jax.jit(jax.vmap(jax.vmap(frame, (None, 0)), (None, 0)))(sea_map, positions)


def scenery(sea_map: Float[np.ndarray, "rows columns"], size: int) -> Canvas:
    """All that does not move, `size` pixels high, with values written on the treasures."""
    rows, columns = sea_map.shape
    cell = 1 / rows
    width = max(round(size * columns / rows), 1)
    if not drawable(rows, columns, size):
        raise InputError(
            f"a map of {rows:,} x {columns:,} cells is too large to be drawn {size:,} pixels high"
        )
    grid = Grid.of(size, width)
    picture = cells(sea_map, grid, cell)
    sea = cells(np.where(sea_map < 0, sea_map, 0), grid, cell)[..., 2:] / SEA[2]
    picture = picture * (1 - 0.45 * grid.y[..., None] * sea)
    if size * cell < ROOM_FOR_DIGITS:
        return picture
    treasures = np.argwhere(sea_map > 0)
    labels = [f"{sea_map[row, column]:.1f}".removesuffix(".0") for row, column in treasures]
    height = min(0.36, 0.82 * 5 / (4 * max(map(len, labels)) - 1)) * cell
    for (row, column), label in zip(treasures.tolist(), labels, strict=True):
        picture = _treasure(picture, grid, row, column, cell, label, height)
    return picture


def _treasure(
    picture: Canvas, grid: Grid, row: int, column: int, cell: float, label: str, height: float
) -> Canvas:
    """A bar of gold with its value, painted on the pixels of its cell alone."""
    top, bottom, left, right = (
        round(place * cell / grid.pixel) for place in (row, row + 1, column, column + 1)
    )
    window = Grid(grid.x[:, left:right], grid.y[top:bottom], grid.pixel)
    x, y, half = (column + 0.5) * cell, (row + 0.5) * cell, 0.46 * cell
    face = rectangle(window, x - half, y - half, x + half, y + half)
    patch = jnp.broadcast_to(jnp.asarray(TREASURE_RIM), (bottom - top, right - left, 3))
    patch = paint(patch, TREASURE, face)
    patch = paint(patch, DIGITS, text(window, label, x, y, height))
    return picture.at[top:bottom, left:right].set(patch)


def draw_submarine(
    scene: Canvas, rows: int, position: Int[Array, "2"], previous_position: Int[Array, "2"]
) -> UInt8[Array, "height width 3"]:
    """Put the submarine on `scene`, with its bow where it last went (to the right at first)."""
    grid, cell = Grid.of(*scene.shape[:2]), 1 / rows
    row, column = position.astype(jnp.float32)
    x, y = (column + 0.5) * cell, (row + 0.5) * cell
    ahead = jnp.where(position[1] < previous_position[1], -cell, cell)

    def box(left: float, top: float, right: float, bottom: float) -> Array:
        ends = x + left * ahead, x + right * ahead
        low, high = jnp.minimum(*ends), jnp.maximum(*ends)
        return rectangle(grid, low, y + top * cell, high, y + bottom * cell)

    def ball(along: float, down: float, radius: float) -> Array:
        return disc(grid, x + along * ahead, y + down * cell, radius * cell)

    hull = jnp.maximum(box(-0.2, -0.06, 0.22, 0.34), ball(-0.2, 0.14, 0.2))
    hull = jnp.maximum(hull, ball(0.22, 0.14, 0.2))
    tower = jnp.maximum(box(-0.1, -0.24, 0.12, 0.0), box(0.04, -0.38, 0.09, -0.2))
    tower = jnp.maximum(tower, box(0.04, -0.38, 0.2, -0.33))
    screw = jnp.maximum(box(-0.46, -0.04, -0.4, 0.32), box(-0.46, 0.11, -0.3, 0.17))
    picture = paint(scene, SCREW, screw)
    picture = paint(picture, TOWER, tower)
    picture = paint(picture, AGENT, hull)
    for along in (-0.16, 0.04, 0.24):
        picture = paint(picture, PORTHOLE, ball(along, 0.12, 0.065))
    return to_uint8(picture)


def _corner(grid: Grid, rows: int, columns: int, cell: float) -> tuple[float, float]:
    """Left and top of a map that lies in the middle of the picture."""
    width, height = grid.x.shape[1] * grid.pixel, grid.y.shape[0] * grid.pixel
    return (width - columns * cell) / 2, (height - rows * cell) / 2
