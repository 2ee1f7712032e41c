"""A small anti-aliased rasteriser in pure JAX: coverage of simple shapes, blended onto a canvas.

Coordinates are fractions of the picture (x to the right, y down), so one drawing serves every
size. A shape is an array of coverages in [0, 1], one per pixel; it may be traced and batched.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

Colour = tuple[float, float, float]
Coverage = Float[Array, "height width"]
Canvas = Float[Array, "height width 3"]
Place = Array | np.ndarray | float


class Grid(NamedTuple):
    """Centres of the pixels of a picture, as fractions of its height."""

    x: Float[np.ndarray, "1 width"]
    y: Float[np.ndarray, "height 1"]
    pixel: float

    @classmethod
    def of(cls, height: int, width: int | None = None) -> "Grid":
        """Pixel centres of a `height` x `width` picture (square when `width` is left out)."""
        width = height if width is None else width
        x = (np.arange(width, dtype=np.float32) + 0.5) / height
        y = (np.arange(height, dtype=np.float32) + 0.5) / height
        return cls(x[None, :], y[:, None], 1.0 / height)


def canvas(grid: Grid, colour: Colour) -> Canvas:
    """A picture of one colour."""
    shape = (grid.y.shape[0], grid.x.shape[1], 3)
    return jnp.broadcast_to(jnp.asarray(colour, jnp.float32), shape)


def edge(distance: Array, pixel: float) -> Array:
    """Coverage of a pixel whose centre lies `distance` outside (negative: inside) an edge."""
    return jnp.clip(0.5 - distance / pixel, 0.0, 1.0)


def span(centres: Array, low: Place, high: Place, pixel: float) -> Array:
    """Exact share of each pixel's extent, along one axis, that lies between `low` and `high`."""
    half = pixel / 2
    overlap = jnp.minimum(centres + half, high) - jnp.maximum(centres - half, low)
    return jnp.clip(overlap / pixel, 0.0, 1.0)


def disc(grid: Grid, x: Place, y: Place, radius: float) -> Coverage:
    """A filled circle."""
    return edge(jnp.hypot(grid.x - x, grid.y - y) - radius, grid.pixel)


def rectangle(
    grid: Grid,
    left: Place,
    top: Place,
    right: Place,
    bottom: Place,
) -> Coverage:
    """A filled axis-aligned rectangle; its coverage is exact."""
    across = span(jnp.asarray(grid.x), left, right, grid.pixel)
    down = span(jnp.asarray(grid.y), top, bottom, grid.pixel)
    return across * down


def teardrop(grid: Grid, x: Array, y: Array, radius: float, cosine: Array, sine: Array) -> Coverage:
    """A disc with a right-angled cone that points along (cosine, sine)."""
    dx, dy = grid.x - x, grid.y - y
    along, across = dx * cosine + dy * sine, dy * cosine - dx * sine
    round_part = jnp.hypot(dx, dy) - radius
    # The cone is a quarter of the square that circumscribes the disc, standing on its corner.
    flank = (along + jnp.abs(across)) * np.float32(np.sqrt(0.5)) - radius
    cone = jnp.where(along > jnp.abs(across), flank, round_part)
    return edge(jnp.minimum(round_part, cone), grid.pixel)


def paint(picture: Canvas, colour: Colour | Array, coverage: Coverage) -> Canvas:
    """Blend `colour` over `picture` where `coverage` says so."""
    target = jnp.asarray(colour, jnp.float32)
    return picture + (target - picture) * coverage[..., None]


def to_uint8(picture: Canvas) -> UInt8[Array, "height width 3"]:
    """Round a canvas to bytes."""
    return jnp.round(jnp.clip(picture, 0.0, 255.0)).astype(jnp.uint8)


_GLYPHS = {
    "0": "111101101101111", "1": "010110010010111", "2": "111001111100111",
    "3": "111001111001111", "4": "101101111001001", "5": "111100111001111",
    "6": "111100111101111", "7": "111001001001001", "8": "111101111101111",
    "9": "111101111001111", ".": "000000000000010", "-": "000000111000000",
}  # fmt: skip


def text(grid: Grid, string: str, x: float, y: float, height: float) -> Coverage:
    """Digits, points and minus signs of a 3x5 font, centred on (x, y)."""
    dot = height / 5
    left = x - dot * (4 * len(string) - 1) / 2
    coverage = jnp.zeros((grid.y.shape[0], grid.x.shape[1]), jnp.float32)
    for index, character in enumerate(string):
        for place, lit in enumerate(_GLYPHS[character]):
            if lit == "1":
                row, column = divmod(place, 3)
                cell_left = left + dot * (4 * index + column)
                cell_top = y - height / 2 + dot * row
                coverage = coverage + rectangle(
                    grid, cell_left, cell_top, cell_left + dot, cell_top + dot
                )
    return jnp.clip(coverage, 0.0, 1.0)
