"""Films of episodes: play a plan, draw every state, write a GIF or a strip of frames."""

from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key
from PIL import Image

from windvane.envs.environment import Environment, require_renderable
from windvane.envs.plans import Plan
from windvane.errors import InputError
from windvane.files import atomic_write

ENDINGS = (".gif", ".png")
STRIP_COLUMNS = 8


class RandomPlan(Plan):
    """Uniformly random actions."""

    num_actions: int = eqx.field(static=True)
    key: Key[Array, ""]

    def start(self) -> Key[Array, ""]:
        """The key of the first action."""
        return self.key

    def act(self, memory: Key[Array, ""], state: Any) -> tuple[Int[Array, ""], Key[Array, ""]]:
        """Any action, whatever the state."""
        del state
        now, later = jax.random.split(memory)
        return jax.random.randint(now, (), 0, self.num_actions), later


class Episode(NamedTuple):
    """Frames of all states, first and last included, and the rewards between them."""

    frames: np.ndarray
    rewards: np.ndarray
    terminated: bool


def film(env: Environment, plan: Plan, key: Key[Array, ""], steps: int, size: int) -> Episode:
    """Follow `plan` for at most `steps` steps and draw every state `size` pixels high."""
    act, step = eqx.filter_jit(plan.act), eqx.filter_jit(env.step)
    drawn = require_renderable(env)
    draw = eqx.filter_jit(lambda state: drawn.render(state, size))
    reset_key, step_key = jax.random.split(key)
    state, memory = env.reset(reset_key), plan.start()
    frames, rewards, terminated = [np.asarray(draw(state))], [], False
    for time in range(min(steps, env.time_limit)):
        action, memory = act(memory, state)
        state, reward, ended = step(state, action, jax.random.fold_in(step_key, jnp.asarray(time)))
        frames.append(np.asarray(draw(state)))
        rewards.append(np.asarray(reward))
        terminated = bool(ended)
        if terminated:
            break
    return Episode(np.stack(frames), np.stack(rewards), terminated)


def check_path(path: Path) -> Path:
    """Return `path` if pictures can be written to it."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"cannot write {str(path)!r}: the name must end in {' or '.join(ENDINGS)}")
    return path


def write(frames: np.ndarray, path: Path, fps: int) -> None:
    """Write frames as an animation or, to a PNG, side by side in rows."""
    if check_path(path).suffix.lower() == ".gif":
        picture, *rest = (Image.fromarray(frame) for frame in frames)
        durations = [1000 // fps] * len(rest) + [1500]
        animated = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
        options: dict[str, Any] = {"format": "GIF"} | animated
    else:
        picture, options = Image.fromarray(_strip(frames)), {"format": "PNG"}
    atomic_write(path, lambda file: picture.save(file, **options))


def _strip(frames: np.ndarray, gap: int = 4) -> np.ndarray:
    number, height, width, _ = frames.shape
    columns = min(number, STRIP_COLUMNS)
    rows = -(-number // columns)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, np.uint8)
    for index, frame in enumerate(frames):
        row, column = divmod(index, columns)
        top, left = row * (height + gap), column * (width + gap)
        sheet[top : top + height, left : left + width] = frame
    return sheet
