"""Films of episodes: play a plan or a policy, draw every state, write a GIF, an MP4 or a strip.

What may not live here: what a particular environment looks like.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key
from PIL import Image, ImageDraw, ImageFont

from windvane.envs.environment import Environment, require_renderable
from windvane.envs.plans import Plan
from windvane.envs.resolve import GymnasiumEnv, resolve_env
from windvane.errors import InputError, in_one_line
from windvane.evaluation import MAX_STEPS, episode_key, episode_seed
from windvane.files import atomic_write
from windvane.policy import Policy
from windvane.registry import Arguments
from windvane.video import require_ffmpeg, write_mp4
from windvane.weights import check_weights

ENDINGS = (".gif", ".mp4", ".png")
STRIP_COLUMNS = 8
CAPTION_WIDTH = 200
"""Least width of a picture with a caption, in pixels, where its letters are smallest."""
_LEAST_FONT, _MOST_FONT = 11, 28
_PAPER, _INK, _SOFT, _BAR = (255, 255, 255), (0, 0, 0), (100, 100, 100), (0, 114, 178)


MAX_BYTES = 2**31
"""Memory that the frames of a film may take."""


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
    """Frames of the states that are shown, the first one included, and the rewards of all steps."""

    frames: np.ndarray
    rewards: np.ndarray
    terminated: bool


def film(env: Environment, plan: Plan, key: Key[Array, ""], steps: int, size: int) -> Episode:
    """Follow `plan` for one episode and draw its first `steps` steps `size` pixels high.

    The episode is the one that `rollout_episode` plays with the same key.
    """
    act, step = eqx.filter_jit(plan.act), eqx.filter_jit(env.step)
    drawn = require_renderable(env)
    draw = eqx.filter_jit(lambda state: drawn.render(state, size))
    reset_key, step_key = jax.random.split(key)
    state, memory = env.reset(reset_key), plan.start()
    frames, rewards, terminated = [np.asarray(draw(state))], [], False
    for time in range(env.time_limit):
        action, memory = act(memory, state)
        state, reward, ended = step(state, action, jax.random.fold_in(step_key, jnp.asarray(time)))
        if time < steps:
            _append(frames, np.asarray(draw(state)))
        rewards.append(np.asarray(reward))
        terminated = bool(ended)
        if terminated:
            break
    return Episode(np.stack(frames), np.stack(rewards), terminated)


def film_policy(policy: Policy, weights: Any, seed: int, steps: int, size: int) -> Episode:
    """Film the first of the greedy episodes that `evaluate` plays with the same seed, in the
    environment that the policy was trained in.
    """
    vector = check_weights(weights, policy.spec.num_objectives)
    if isinstance(policy.world, Environment):
        return film(policy.world, policy.plan(vector), episode_key(seed), steps, size)
    return _film_gymnasium(
        policy, env_with_pictures(policy), vector, episode_seed(seed), steps, size
    )


def env_with_pictures(policy: Policy) -> Any:
    """The policy's Gymnasium environment, made so that it draws itself into arrays."""
    config, world = policy.config, policy.world
    if not isinstance(world, GymnasiumEnv):
        raise InputError(f"{config.env} is a native environment: film it with film")
    if getattr(world.first, "render_mode", None) == "rgb_array" and not _is_vector(world.first):
        return world.make()
    args = Arguments(config.env_args).to_json() | {"render_mode": "rgb_array"}
    try:
        # The policy's own environment exists, so its name may be imported.
        made = resolve_env(config.env, args, config.observation, trusted=True)
    except InputError as error:
        raise InputError(
            f"the env {config.env} cannot be drawn: it cannot be made with "
            f"render_mode='rgb_array' ({error})"
        ) from error
    env = made.first if isinstance(made, GymnasiumEnv) else None
    if getattr(env, "render_mode", None) != "rgb_array" or _is_vector(env):
        raise InputError(f"the env {config.env} cannot be drawn: it has no render_mode 'rgb_array'")
    return env


def _is_vector(env: Any) -> bool:
    return hasattr(env, "num_envs")


def _film_gymnasium(
    policy: Policy, env: Any, weights: np.ndarray, seed: int, steps: int, size: int
) -> Episode:
    from windvane.envs.camera import Camera
    from windvane.envs.host import HostEnvs

    name, config = policy.config.env, policy.config
    frames: list[np.ndarray] = []

    def take(drawn: Any) -> None:
        if len(frames) <= steps:
            _append(frames, scaled_picture(rgb_picture(name, drawn), size))

    envs = HostEnvs(
        GymnasiumEnv(name, lambda: env, first=Camera(env, take)), 1, frame_stack=config.frame_stack,
        frame_size=config.frame_size, one_hot=config.one_hot,
        time_limit=config.time_limit or MAX_STEPS,
    )  # fmt: skip
    rewards, terminated = [], False
    try:
        observations = envs.reset([seed])
        while True:
            outcome = envs.step(policy.act(observations, weights))
            rewards.append(outcome.rewards[0])
            observations = outcome.observations
            if outcome.terminated[0] or outcome.truncated[0]:
                terminated = bool(outcome.terminated[0])
                break
    finally:
        envs.close()
    return Episode(np.stack(frames), np.stack(rewards), terminated)


def _append(frames: list[np.ndarray], frame: np.ndarray) -> None:
    if (len(frames) + 1) * frame.nbytes > MAX_BYTES:
        raise InputError(
            f"the film is too long: its first {len(frames):,} frames take {MAX_BYTES / 2**30:.0f} "
            "GiB; choose a smaller --size or fewer --steps"
        )
    frames.append(frame)


def rgb_picture(name: str, env: Any) -> np.ndarray:
    """What a Gymnasium environment draws now; `name` is what it is called in complaints."""
    try:
        array = np.asarray(env.render())
    except Exception as error:  # whatever an environment does
        raise InputError(f"the env {name} cannot be drawn: {in_one_line(error)}") from error
    if array.ndim != 3 or array.shape[-1] != 3 or array.dtype != np.uint8:
        raise InputError(
            f"the env {name} cannot be drawn: its render() must return an RGB picture of uint8, "
            f"not {array.dtype} of shape {array.shape}"
        )
    return array


def scaled_picture(picture: np.ndarray, size: int) -> np.ndarray:
    """A picture `size` pixels high."""
    height, width, _ = picture.shape
    if height == size:
        return picture
    shape = (max(round(width * size / height), 1), size)
    return np.asarray(Image.fromarray(picture).resize(shape))


class Caption(NamedTuple):
    """What is written below a frame."""

    step: int
    objectives: tuple[str, ...]
    weights: tuple[float, ...] | None
    """None where nothing was weighted."""
    returns: tuple[float, ...]
    """So far and undiscounted, of each objective."""


def with_captions(frames: np.ndarray, captions: Sequence[Caption]) -> np.ndarray:
    """Frames with a small table below each of them: the step, and for every objective its weight,
    as a bar and a number, and the return so far.
    """
    height, width = frames.shape[1:3]
    size = min(max(height // 22, _LEAST_FONT), _MOST_FONT)
    wide = max(width, CAPTION_WIDTH * size // _LEAST_FONT)
    line = size + size // 4
    deep = line * (1 + max(len(caption.objectives) for caption in captions)) + size // 2
    pictures = []
    for frame, caption in zip(frames, captions, strict=True):
        picture = Image.new("RGB", (wide, height + deep), _PAPER)
        picture.paste(Image.fromarray(frame), ((wide - width) // 2, 0))
        _write_caption(ImageDraw.Draw(picture), caption, height + size // 5, wide, size, line)
        pictures.append(np.asarray(picture))
    return np.stack(pictures)


def _write_caption(
    drawing: ImageDraw.ImageDraw, caption: Caption, top: int, wide: int, size: int, line: int
) -> None:
    """The table, in columns for names, weights and returns."""
    font, pad = ImageFont.load_default(size=size), size // 2
    right, bar, longest = wide - pad, int(0.3 * wide), int(0.15 * wide)
    drawing.text((pad, top), f"step {caption.step}", fill=_INK, font=font)
    drawing.text((right, top), "undiscounted return", fill=_SOFT, font=font, anchor="ra")
    if caption.weights is not None:
        drawing.text((bar, top), "weight", fill=_SOFT, font=font)
    for row, (name, value) in enumerate(zip(caption.objectives, caption.returns, strict=True), 1):
        y = top + row * line
        drawing.text((right, y), f"{value:.4f}", fill=_INK, font=font, anchor="ra")
        space = bar if caption.weights is not None else wide // 2
        drawing.text((pad, y), _fitting(name, font, space - 2 * pad), fill=_INK, font=font)
        if caption.weights is not None:
            weight = caption.weights[row - 1]
            end = bar + round(weight * longest)
            drawing.rectangle((bar, y + size // 4, end, y + size), fill=_BAR)
            drawing.text((bar + longest + pad, y), f"{weight:.2f}", fill=_INK, font=font)


def _fitting(name: str, font: Any, width: int) -> str:
    """A name, cut where it is wider than that."""
    if font.getlength(name) <= width:
        return name
    while name and font.getlength(f"{name}…") > width:
        name = name[:-1]
    return f"{name}…"


def check_path(path: Path) -> Path:
    """Return `path` if pictures can be written to it."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"cannot write {str(path)!r}: the name must end in {', '.join(ENDINGS[:-1])} or "
            f"{ENDINGS[-1]}"
        )
    if ending == ".mp4":
        require_ffmpeg()
    return path


def write(frames: np.ndarray, path: Path, fps: int) -> None:
    """Write frames as an animation or, to a PNG, side by side in rows."""
    ending = check_path(path).suffix.lower()
    if ending == ".mp4":
        return write_mp4(frames, path, fps)
    if ending == ".gif":
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
