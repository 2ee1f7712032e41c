"""Pictures: what an agent needs can be read off them, and both sizes come from one drawing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.envs.drawing import Grid, canvas, disc, paint, rectangle, text, to_uint8
from windvane.envs.minecart import Minecart, Pose

KEY = jax.random.key(0)
CROP = 8
"""Half the side of the window around the cart, in pixels: the cart, its tip and some ground."""


def random_views(key: jax.Array, count: int) -> tuple[jax.Array, ...]:
    """x, y, angle and content: anywhere on the map, heading anywhere, any load that fits."""
    keys = jax.random.split(key, 3)
    x, y = jax.random.uniform(keys[0], (2, count))
    angle = jax.random.uniform(keys[1], (count,), maxval=360.0)
    shares = jax.random.dirichlet(keys[2], jnp.ones(3), (count,))
    return x, y, angle, shares[:, :2] * 1.5


def samples(key: jax.Array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows of frames around the cart, and (sine, cosine, share of ore 1, share of ore 2)."""
    env = Minecart(observation="pixels")
    x, y, angle, content = random_views(key, count)

    @jax.jit
    @jax.vmap
    def frame(x: jax.Array, y: jax.Array, angle: jax.Array, content: jax.Array) -> jax.Array:
        return env.frame((Pose(x, y, angle, jnp.zeros_like(x)), content))

    frames = np.asarray(frame(x, y, angle, content))
    padded = np.pad(frames, ((0, 0), (CROP, CROP), (CROP, CROP), (0, 0)), mode="edge")
    column, row = (np.asarray((0.16 + 0.68 * p) * 48).astype(int) for p in (x, y))
    side = np.arange(2 * CROP)
    rows, columns = row[:, None] + side, column[:, None] + side
    windows = padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    radians = np.deg2rad(np.asarray(angle))
    targets = np.stack([np.sin(radians), np.cos(radians), *(np.asarray(content).T / 1.5)], axis=1)
    # Beside the pixels, how far each is whiter than the ground: the cart's outline on any ground.
    white = np.clip((windows.min(-1).astype(float) - 150) / 105, 0, 1)
    inputs = [windows.reshape(count, -1) / 255.0, white.reshape(count, -1)]
    return np.concatenate(inputs, axis=1), targets


def test_heading_and_contents_can_be_read_off_the_pixels():
    inputs, targets = samples(jax.random.key(1), 4500)
    unseen, truth = samples(jax.random.key(2), 1000)
    centre = inputs.mean(0)
    design = np.concatenate([inputs - centre, np.ones((len(inputs), 1))], axis=1)
    penalty = 1e-1 * np.eye(design.shape[1])
    weights = np.linalg.solve(design.T @ design + penalty, design.T @ targets)
    guess = np.concatenate([unseen - centre, np.ones((len(unseen), 1))], axis=1) @ weights
    unexplained = ((guess - truth) ** 2).sum(0) / ((truth - truth.mean(0)) ** 2).sum(0)
    assert (1 - unexplained >= 0.95).all(), 1 - unexplained
    turn = np.arctan2(guess[:, 0], guess[:, 1]) - np.arctan2(truth[:, 0], truth[:, 1])
    error = np.rad2deg(np.abs((turn + np.pi) % (2 * np.pi) - np.pi))
    assert np.median(error) < 5, np.median(error)


def test_frames_equal_pictures_of_that_size():
    env = Minecart(observation="pixels")
    state, step = env.reset(KEY), eqx.filter_jit(env.step)
    for action in (3, 3, 2, 3):
        state, *_ = step(state, jnp.asarray(action), KEY)
    assert np.array_equal(env.observe(state)[1], env.render(state, 48))
    assert env.render(state, 96).shape == (96, 96, 3)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_tenth_of_a_pixel_shows(axis: str):
    env = Minecart(observation="pixels")
    tenth = 0.1 / 48 / 0.68
    place = {"x": jnp.asarray(0.4), "y": jnp.asarray(0.3)}
    moved = {**place, axis: place[axis] + tenth}
    still, zero = jnp.zeros(2), jnp.zeros(())
    frames = [
        np.asarray(env.frame((Pose(p["x"], p["y"], zero, zero), still))).astype(int)
        for p in (place, moved)
    ]
    assert np.abs(frames[0] - frames[1]).max() >= 5


def test_coverage_is_exact():
    grid = Grid.of(8)
    box = np.asarray(rectangle(grid, 0.1, 0.2, 0.55, 0.9))
    assert np.isclose(box.sum() / 64, 0.45 * 0.7)
    ball = np.asarray(disc(Grid.of(64), 0.5, 0.5, 0.3))
    assert np.isclose(ball.sum() / 64**2, np.pi * 0.3**2, rtol=2e-3)


def test_paint_and_round():
    grid = Grid.of(2, 3)
    picture = paint(canvas(grid, (0.0, 0.0, 0.0)), (255.0, 0.0, 100.0), jnp.full((2, 3), 0.5))
    assert np.asarray(to_uint8(picture)).tolist() == [[[128, 0, 50]] * 3] * 2


def test_digits_differ():
    pictures = [np.asarray(text(Grid.of(10), digit, 0.5, 0.5, 0.9)) for digit in "0123456789.-"]
    assert len(np.unique(np.stack(pictures).reshape(12, -1), axis=0)) == 12
