"""The film at the top of the README: one trained policy, under weights that move while it acts.

    python -m scripts.readme_film    # or make readme-film: under a minute, no training

The policy is the one for Minecart that comes with `windvane studio`. The weights move a little
with every step, along a path over the simplex; the cart is given the weights of the moment.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import windvane
from windvane.envs.minecart import Minecart, MinecartState, trail
from windvane.files import atomic_write

POLICY = Path(windvane.__file__).parent / "studio" / "policies" / "1-minecart-pqn.safetensors"
OUT = Path("docs/pictures/follow.gif")
PATH = ((0.86, 0.07, 0.07), (0.47, 0.47, 0.06), (0.07, 0.86, 0.07), (0.2, 0.2, 0.6),
        (0.86, 0.07, 0.07))  # fmt: skip
"""Corners of the path of the weights."""
STEPS, SIZE, PANEL, MILLISECONDS = 30, 320, 300, 60
"""Steps from one corner to the next; pixels of a frame and of the panel beside it; of a frame."""
PAPER, INK, SOFT, LINE = (255, 255, 255), (30, 30, 30), (120, 120, 120), (200, 200, 200)
FUEL = (90, 90, 90)
"""The ores have the colours of the cart's bars."""
Colour = tuple[int, ...]


def path_of_weights() -> np.ndarray:
    """The weights of every step."""
    shares = np.linspace(0, 1, STEPS, endpoint=False)[:, None]
    parts = [(1 - shares) * np.asarray(a) + shares * np.asarray(b) for a, b in pairwise(PATH)]
    return np.concatenate(parts)


def play(policy: windvane.Policy, env: Minecart, weights: np.ndarray) -> list[list[np.ndarray]]:
    """The pictures of every step: of its beginning and of the middle of its way."""
    step = eqx.filter_jit(env.step)

    @eqx.filter_jit
    def draw(state: MinecartState, action: Any) -> Any:
        poses, *_ = trail(state.pose, state.departed, action, env.frame_skip)
        shown = (replace(state, pose=pose) for pose in (poses[0], poses[env.frame_skip // 2]))
        return [env.render(each, SIZE) for each in shown]

    pictures = []
    state = env.reset(jax.random.key(0))
    for index, vector in enumerate(weights):
        action = jnp.asarray(policy.act(np.asarray(env.observe(state)), vector))
        pictures.append([np.asarray(picture) for picture in draw(state, action)])
        step_key, reset_key = jax.random.split(jax.random.key(index + 1))
        state, _, ended = step(state, action, step_key)
        if ended:
            state = env.reset(reset_key)
    return pictures


def panel(
    weights: np.ndarray, past: np.ndarray, names: tuple[str, ...], colours: list[Colour]
) -> Image.Image:
    """The simplex with the weights of the moment and the way they came, and a bar for each."""
    picture = Image.new("RGB", (PANEL, SIZE), PAPER)
    drawing = ImageDraw.Draw(picture)
    font, small = ImageFont.load_default(size=16), ImageFont.load_default(size=13)
    drawing.text((PANEL // 2, 8), "what matters now", fill=INK, font=font, anchor="ma")
    corners = np.asarray([(60, 190), (PANEL - 60, 190), (PANEL // 2, 56)], float)
    drawing.polygon([tuple(corner) for corner in corners], outline=LINE, width=2)
    anchors, shifts = ("ma", "ma", "mb"), ((0, 5), (0, 5), (0, -4))
    for name, corner, colour, anchor, shift in zip(
        names, corners, colours, anchors, shifts, strict=True
    ):
        drawing.text(tuple(corner + shift), name, fill=colour, font=small, anchor=anchor)
    for before, after in pairwise(past @ corners):
        drawing.line([tuple(before), tuple(after)], fill=SOFT, width=2)
    x, y = weights @ corners
    drawing.ellipse((x - 7, y - 7, x + 7, y + 7), fill=INK)
    for row, (name, weight, colour) in enumerate(zip(names, weights, colours, strict=True)):
        top = 226 + 30 * row
        drawing.text((18, top), name, fill=INK, font=small)
        drawing.rectangle((78, top + 1, 78 + round(150 * weight), top + 15), fill=colour)
        drawing.text((PANEL - 18, top), f"{weight:.2f}", fill=INK, font=small, anchor="ra")
    return picture


def main() -> None:
    """Play, draw and write."""
    policy = windvane.Policy.load(POLICY)
    env, names, weights = policy.world, policy.spec.objectives, path_of_weights()
    assert isinstance(env, Minecart)
    colours = [tuple(map(int, colour)) for colour in (*np.asarray(env.ore_colours), FUEL)]
    pictures = []
    for index, frames in enumerate(play(policy, env, weights)):
        past = weights[max(index - 2 * STEPS, 0) : index + 1]
        beside = panel(weights[index], past, names, colours)
        for frame in frames:
            whole = Image.new("RGB", (SIZE + PANEL, SIZE), PAPER)
            whole.paste(Image.fromarray(frame), (0, 0))
            whole.paste(beside, (SIZE, 0))
            pictures.append(whole.quantize(64, dither=Image.Dither.NONE))
    first, *rest = pictures
    OUT.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"save_all": True, "append_images": rest, "loop": 0}
    options |= {"format": "GIF", "duration": MILLISECONDS}
    atomic_write(OUT, lambda file: first.save(file, **options))
    print(f"written: {OUT} ({OUT.stat().st_size // 1024} kB, {len(pictures)} frames)")


if __name__ == "__main__":
    main()
