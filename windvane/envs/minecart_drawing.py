"""Pictures of Minecart, after the paper's Figure 2: base, mines, and the cart with its bars.

The cart is a white drop whose tip points where it heads; each ore has a bar on the cart that fills
upwards with that ore's share of the capacity.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt8

from windvane.envs.drawing import Canvas, Grid, canvas, disc, paint, span, teardrop, to_uint8

GROUND = (150.0, 150.0, 150.0)
BASE = (255.0, 70.0, 70.0)
MINE_RIM = (112.0, 112.0, 112.0)
MINE = (24.0, 26.0, 27.0)
CART = (255.0, 255.0, 255.0)
TROUGH = (208.0, 208.0, 208.0)

MARGIN = 0.16
"""The world of 0 to 1 is drawn inside a margin, so that the cart never leaves the picture."""
CART_RADIUS = 0.1
BASE_EXTENT = 1 / 3
BARS_WIDTH = 0.13
BARS_GAP = 0.012
BARS_HEIGHT = 0.115


def to_picture(place: Float[Array, "..."]) -> Float[Array, "..."]:
    """Map a coordinate of the world to a fraction of the picture."""
    return (MARGIN + (1 - 2 * MARGIN) * place).astype(jnp.float32)


def background(mine_positions: Float[Array, "mines 2"], size: int) -> Canvas:
    """All that does not move."""
    grid = Grid.of(size)
    picture = canvas(grid, GROUND)
    picture = paint(picture, BASE, disc(grid, 0.0, 0.0, BASE_EXTENT))

    def mine(picture: Canvas, position: Float[Array, "2"]) -> tuple[Canvas, None]:
        x, y = to_picture(position)
        picture = paint(picture, MINE_RIM, disc(grid, x, y, 0.102))
        return paint(picture, MINE, disc(grid, x, y, 0.09)), None

    return jax.lax.scan(mine, picture, mine_positions)[0]


def draw_cart(
    scene: Canvas,
    x: Float[Array, ""],
    y: Float[Array, ""],
    angle: Float[Array, ""],
    load: Float[Array, " ores"],
    ore_colours: Float[Array, "ores 3"],
) -> UInt8[Array, "height width 3"]:
    """Put the cart on `scene`; `load` is each ore's share of the capacity."""
    grid = Grid.of(scene.shape[0])
    radians = jnp.deg2rad(angle).astype(jnp.float32)
    x, y, load = to_picture(x), to_picture(y), load.astype(jnp.float32)
    drop = teardrop(grid, x, y, CART_RADIUS, jnp.cos(radians), jnp.sin(radians))
    picture = paint(scene, CART, drop)
    ores = load.shape[0]
    width = (BARS_WIDTH - BARS_GAP * (ores - 1)) / ores
    top, bottom = y - BARS_HEIGHT / 2, y + BARS_HEIGHT / 2
    down = span(jnp.asarray(grid.y), top, bottom, grid.pixel)
    for ore in range(ores):
        left = x - BARS_WIDTH / 2 + ore * (width + BARS_GAP)
        across = span(jnp.asarray(grid.x), left, left + width, grid.pixel)
        filled = span(jnp.asarray(grid.y), bottom - load[ore] * BARS_HEIGHT, bottom, grid.pixel)
        picture = paint(picture, TROUGH, across * (down - filled))
        picture = paint(picture, ore_colours[ore], across * filled)
    return to_uint8(picture)
