"""What a browser needs in order to draw an environment: its scenery once, its moments step by step.

Minecart and Deep Sea Treasure are drawn by the browser, from numbers; any other environment as the
pictures that it draws of itself, and one that draws none as a chart of what the agent sees.
"""

import io
from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from PIL import Image, ImageDraw

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.environment import Environment
from windvane.envs.minecart import Minecart, trail
from windvane.envs.minecart_config import BASE_RADIUS, MINE_RADIUS
from windvane.spec import EnvSpec

SIZE = 480
"""Height of a picture, in pixels."""
_QUALITY = 85
_PAPER, _INK, _BAR = (250, 249, 246), (60, 60, 60), (0, 114, 178)


class Scene(ABC):
    """How one kind of environment is shown by numbers."""

    @abstractmethod
    def scenery(self, env: Any) -> dict[str, Any]:
        """What does not move, for JSON."""

    @abstractmethod
    def moment(self, env: Any, before: Any, action: Any, after: Any) -> Any:
        """Arrays that show a step, or a first state (`before` is then the same as `after`, and
        `action` None); called in compiled code.
        """

    @abstractmethod
    def to_json(self, moment: Any) -> dict[str, Any]:
        """The same arrays, computed, for JSON."""


@final
class _MinecartScene(Scene):
    """The poses of the cart between the frames of a step, and what it carries."""

    def scenery(self, env: Minecart) -> dict[str, Any]:
        positions, means = np.asarray(env.mine_positions), np.asarray(env.ore_means)
        mines = [
            {"x": float(x), "y": float(y), "ores": ores}
            for (x, y), ores in zip(positions.tolist(), means.tolist(), strict=True)
        ]
        return {
            "kind": "minecart",
            "mines": mines,
            "capacity": float(env.capacity),
            "base_radius": BASE_RADIUS,
            "mine_radius": MINE_RADIUS,
            "ore_colours": np.asarray(env.ore_colours).astype(int).tolist(),
        }

    def moment(self, env: Minecart, before: Any, action: Any, after: Any) -> Any:
        poses = [after.pose]
        if action is not None:
            poses = trail(before.pose, before.departed, action, env.frame_skip)[0][1:]
        # What was sold is still shown in the cart that comes home with it.
        content = (
            after.content
            if action is None
            else before.content + (after.content - before.content).clip(0)
        )
        return [(pose.x, pose.y, pose.angle) for pose in poses], content

    def to_json(self, moment: Any) -> dict[str, Any]:
        poses, content = moment
        rows = [[round(float(number), 5) for number in pose] for pose in poses]
        return {"poses": rows, "content": [round(float(ore), 5) for ore in content]}


@final
class _DeepSeaTreasureScene(Scene):
    """The cell that the submarine is in."""

    def scenery(self, env: DeepSeaTreasure) -> dict[str, Any]:
        return {"kind": "dst", "map": np.asarray(env.sea_map, float).round(4).tolist()}

    def moment(self, env: DeepSeaTreasure, before: Any, action: Any, after: Any) -> Any:
        del env, before, action
        return after.position

    def to_json(self, moment: Any) -> dict[str, Any]:
        return {"cell": [int(place) for place in moment]}


_SCENES: dict[type, Scene] = {Minecart: _MinecartScene(), DeepSeaTreasure: _DeepSeaTreasureScene()}


def scene_of(env: Environment[Any]) -> Scene | None:
    """How an environment is shown by numbers; None for one that is shown by pictures. A class that
    derives from another may move in other ways, so it is none of these.
    """
    return _SCENES.get(type(env))


def encode(picture: np.ndarray) -> bytes:
    """A picture as a JPEG."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def chart(observation: np.ndarray, spec: EnvSpec) -> np.ndarray:
    """What an agent sees of an environment that draws no pictures: an image as it is, numbers as
    bars between their bounds.
    """
    frame = observation if spec.stack == 1 else observation[-1]
    if spec.frame.is_image:
        return _enlarged(frame)
    values = np.asarray(frame, float)
    low = np.asarray(spec.frame.low or np.zeros(len(values)), float)
    tops = [count - 1 for count in spec.frame.categories]
    high = np.asarray(spec.frame.high or tops or np.ones(len(values)), float)
    # Of a number without bounds, a squashed one is shown.
    bounded = np.isfinite(low) & np.isfinite(high) & (high > low)
    span = np.where(bounded, high - low, 1.0)
    share = np.where(bounded, (values - np.where(bounded, low, 0.0)) / span, values)
    share = np.where(bounded, share.clip(0, 1), 0.5 + np.arctan(values) / np.pi)
    return _bars(share, values)


def _enlarged(frame: np.ndarray) -> np.ndarray:
    colours = np.repeat(frame, 3, -1) if frame.shape[-1] == 1 else frame[..., :3]
    width = max(round(SIZE * frame.shape[1] / frame.shape[0]), 1)
    picture = Image.fromarray(np.ascontiguousarray(colours))
    return np.asarray(picture.resize((min(width, 4 * SIZE), SIZE), Image.Resampling.NEAREST))


def _bars(share: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Horizontal bars; of very many numbers, the first ones."""
    most = 24
    picture = Image.new("RGB", (SIZE, SIZE), _PAPER)
    drawing = ImageDraw.Draw(picture)
    rows = min(len(share), most)
    height = min((SIZE - 40) / rows, 40)
    for row in range(rows):
        top = 20 + row * height
        drawing.text((20, top), f"{values[row]:.3g}", fill=_INK)
        left, right = 90, SIZE - 20
        end = left + max((right - left) * float(share[row]), 1)
        drawing.rectangle((left, top, end, top + 0.6 * height), fill=_BAR)
    return np.asarray(picture)
