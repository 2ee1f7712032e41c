"""The Minecart problem (appendix): drive to a mine, load ore, sell it at the base.

State, dynamics and reward. Instances live in `minecart_config`, pictures in `minecart_drawing`.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from windvane.envs import minecart_drawing
from windvane.envs.environment import (
    FRAME_SIZE,
    ObservationKind,
    PixelObservations,
    Renderable,
    check_observation,
)
from windvane.envs.minecart_config import BASE_RADIUS, MINE_RADIUS, PAPER, Mine, MinecartConfig
from windvane.errors import LARGEST_COUNT, InputError, require_positive_int, shown

MINE, LEFT, RIGHT, ACCELERATE, BRAKE, NONE = range(6)

START_ANGLE = 45.0
ROTATION = 10.0
ACCELERATION = 0.0075
DECELERATION = 1.0
MAX_SPEED = 1.0
MOVING_SPEED = 0.001
"""A slower cart counts as standing still."""

_TURN = 72
_RADIANS = [5 * (i - _TURN) * math.pi / 180.0 for i in range(3 * _TURN)]
_COSINES = np.asarray([math.cos(r) for r in _RADIANS])
_SINES = np.asarray([math.sin(r) for r in _RADIANS])

MAX_FRAME_SKIP = 64
"""Frames of a step are compiled one after another: many more would take minutes."""

FUEL_IDLE = -0.005
FUEL_MINE = -0.05
FUEL_ACCELERATE = -0.025


class Pose(eqx.Module):
    """Where the cart is and how it moves: all that driving depends on. Angles are in degrees."""

    x: Float[Array, "*batch"]
    y: Float[Array, "*batch"]
    angle: Float[Array, "*batch"]
    speed: Float[Array, "*batch"]


class MinecartState(eqx.Module):
    """The cart now, and what is needed to draw it one agent step ago."""

    pose: Pose
    content: Float[Array, " ores"]
    departed: Bool[Array, ""]
    previous_pose: Pose
    previous_content: Float[Array, " ores"]


class Minecart(PixelObservations[MinecartState], Renderable[MinecartState]):
    """N-1 ores and fuel: rewards are the ores sold on return to the base, and the fuel burnt.

    An action is repeated `frame_skip` times, one frame at a time; the fuel of all is charged. The
    episode ends when a cart that has left the base comes back to it. `Minecart()` is the paper's
    instance; `Minecart(MinecartConfig.from_json(path))` any other.
    """

    mine_positions: Float[Array, "mines 2"]
    ore_means: Float[Array, "mines ores"]
    ore_deviations: Float[Array, "mines ores"]
    capacity: Float[Array, ""]
    ore_colours: Float[Array, "ores 3"]
    background: Float[Array, "48 48 3"]
    frame_skip: int = eqx.field(static=True)
    observation: ObservationKind = eqx.field(static=True)
    time_limit: int = eqx.field(static=True)

    action_names: ClassVar[tuple[str, ...]] = (
        "mine", "left", "right", "accelerate", "brake", "none",
    )  # fmt: skip

    def __init__(
        self,
        config: MinecartConfig = PAPER,
        *,
        deterministic: bool = False,
        frame_skip: int = 4,
        observation: str = "features",
        time_limit: int = 1000,
    ):
        """Build an instance.

        `deterministic` sets every standard deviation to 0; `observation` is "features" or
        "pixels"; `time_limit` is where drivers truncate an episode.
        """
        if not isinstance(config, MinecartConfig):
            raise InputError(f"a Minecart instance must be a MinecartConfig, not {shown(config)}")
        config = config.deterministic() if deterministic else config
        distributions = np.asarray([m.distributions for m in config.mines], float)
        self.mine_positions = jnp.asarray(np.asarray([(m.x, m.y) for m in config.mines], float))
        self.ore_means = jnp.asarray(distributions[..., 0])
        self.ore_deviations = jnp.asarray(distributions[..., 1])
        self.capacity = jnp.asarray(np.asarray(config.capacity, float))
        self.ore_colours = jnp.asarray(config.colours())
        self.background = minecart_drawing.background(self.mine_positions, FRAME_SIZE)
        self.frame_skip = require_positive_int("frame_skip", frame_skip, MAX_FRAME_SKIP)
        self.observation = check_observation(observation)
        self.time_limit = require_positive_int("time_limit", time_limit, LARGEST_COUNT)

    @property
    def config(self) -> MinecartConfig:
        """The instance as plain numbers; only its shape is static, so that instances batch."""
        # Seven digits are what 32 bits hold: a 0.16 of theirs is 0.16 again.
        decimals = np.vectorize(lambda number: float(f"{number:.7g}"), otypes=[float])
        positions, means, deviations, capacity = (decimals(a).tolist() for a in (
            self.mine_positions, self.ore_means, self.ore_deviations, self.capacity,
        ))  # fmt: skip
        mines = tuple(
            Mine(x, y, tuple(zip(mean, deviation, strict=True)))
            for (x, y), mean, deviation in zip(positions, means, deviations, strict=True)
        )
        colours = tuple(tuple(c) for c in np.asarray(self.ore_colours, int).tolist())
        return MinecartConfig(mines, capacity, colours)

    @property
    def num_ores(self) -> int:
        """Number of ores; the problem has one objective more, the fuel."""
        return self.ore_means.shape[-1]

    @property
    def objective_names(self) -> tuple[str, ...]:
        """`ore 1` to `ore N-1`, then `fuel`."""
        return (*(f"ore {i + 1}" for i in range(self.num_ores)), "fuel")

    @property
    def reward_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Ores from 0 to the capacity; fuel from a step of mining to a step of idling."""
        ores = self.num_ores
        low = np.append(np.zeros(ores), np.asarray(self.fuel_costs).min())
        high = np.append(np.full(ores, float(self.capacity)), 0.0)
        return low.astype(np.float32), high.astype(np.float32)

    @property
    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Position and speed from 0, sine and cosine from -1, contents from 0; all up to 1."""
        ores = self.num_ores
        low = np.asarray([0, 0, 0, -1, -1] + [0] * ores, np.float32)
        return low, np.ones(5 + ores, np.float32)

    @property
    def fuel_costs(self) -> np.ndarray:
        """Fuel reward of one agent step, per action."""
        costs = np.full(len(self.action_names), FUEL_IDLE * self.frame_skip)
        costs[MINE] += FUEL_MINE * self.frame_skip
        costs[ACCELERATE] += FUEL_ACCELERATE * self.frame_skip
        return costs

    def reset(self, key: Key[Array, ""]) -> MinecartState:
        """The empty cart on the base, facing south-east. The key is not used."""
        del key
        zero = jnp.zeros((), self.capacity.dtype)
        pose = Pose(zero, zero, zero + START_ANGLE, zero)
        content = jnp.zeros(self.ore_means.shape[1:], self.capacity.dtype)
        return MinecartState(pose, content, jnp.asarray(False), pose, content)

    def step(
        self, state: MinecartState, action: Int[Array, ""], key: Key[Array, ""]
    ) -> tuple[MinecartState, Float[Array, " objectives"], Bool[Array, ""]]:
        """Repeat `action` for `frame_skip` frames."""
        poses, departed, arrived = trail(state.pose, state.departed, action, self.frame_skip)
        pose = poses[-1]
        # Only a cart at rest mines and only a moving one arrives, so the order does not matter. A
        # wall may stop a cart between two frames: it then mines where it stands, in those left.
        mines = [(action == MINE) & (before.speed < MOVING_SPEED) for before in poses[:-1]]
        content = self.load(state.content, self.hauls(pose, key), mines)
        sold = jnp.where(arrived, content, 0.0)
        fuel = jnp.asarray(self.fuel_costs, self.capacity.dtype)[action]
        following = MinecartState(pose, content - sold, departed, state.pose, state.content)
        return following, jnp.append(sold, fuel), arrived

    def hauls(self, pose: Pose, key: Key[Array, ""]) -> Float[Array, "frames ores"]:
        """Ore that mining from `pose` would yield in each frame: 0 unless at rest in a mine."""
        x, y = self.mine_positions.T
        distances = _length(x - pose.x, y - pose.y)
        nearest = jnp.argmin(distances)
        minable = (distances[nearest] <= MINE_RADIUS) & (pose.speed < MOVING_SPEED)
        return jnp.where(minable, self.draw_hauls(nearest, key), 0.0)

    def draw_hauls(self, mine: Int[Array, ""], key: Key[Array, ""]) -> Float[Array, "frames ores"]:
        """Rectified normal draws of what a mine yields in each frame of one step."""
        # Drawn flat, which is a third faster in batches.
        noise = jax.random.normal(key, (self.frame_skip * self.num_ores,))
        noise = noise.reshape(self.frame_skip, self.num_ores)
        return jnp.maximum(self.ore_means[mine] + self.ore_deviations[mine] * noise, 0.0)

    def load(
        self,
        content: Float[Array, " ores"],
        hauls: Float[Array, "frames ores"],
        mines: Sequence[Bool[Array, ""]],
    ) -> Float[Array, " ores"]:
        """Add the hauls of the frames in which the cart `mines`, one after another, each scaled
        down to the free capacity where it is too much.
        """
        # Number by number: sums over an array of ores could not be compiled into one loop.
        ores = tuple(jnp.unstack(content))
        for haul, mining in zip(jnp.unstack(hauls), mines, strict=True):
            new = tuple(jnp.unstack(haul))
            # Not clipped at 0: where rounding filled the cart beyond its capacity by a hair, the
            # peer program takes that hair out again, and so do we.
            free, total = self.capacity - sum(ores), sum(new)
            scale = jnp.where(total > free, free / jnp.where(total > 0, total, 1.0), 1.0)
            scale = jnp.where(mining, scale, 0.0)
            ores = tuple(held + more * scale for held, more in zip(ores, new, strict=True))
        return jnp.stack(ores)

    def features(self, state: MinecartState) -> Float[Array, " features"]:
        """Position, speed, sine and cosine of the angle, and each ore's share of the capacity."""
        pose = state.pose
        cosine, sine = direction(pose.angle)
        own = jnp.stack([pose.x, pose.y, pose.speed, sine, cosine])
        return jnp.concatenate([own, state.content / self.capacity]).astype(jnp.float32)

    def views(self, state: MinecartState) -> tuple[Any, Any]:
        """(pose, content) of one step ago and of now."""
        return (state.previous_pose, state.previous_content), (state.pose, state.content)

    def frame(self, view: tuple[Pose, Float[Array, " ores"]]) -> UInt8[Array, "48 48 3"]:
        """The paper's input frame."""
        pose, content = view
        load = content / self.capacity
        return minecart_drawing.draw_cart(
            self.background, pose.x, pose.y, pose.angle, load, self.ore_colours
        )

    def render(self, state: MinecartState, size: int) -> UInt8[Array, "height width 3"]:
        """The same picture at any size."""
        background = minecart_drawing.background(self.mine_positions, size)
        pose, load = state.pose, state.content / self.capacity
        return minecart_drawing.draw_cart(
            background, pose.x, pose.y, pose.angle, load, self.ore_colours
        )


def drive(
    pose: Pose, departed: Bool[Array, ""], action: Int[Array, ""], frame_skip: int
) -> tuple[Pose, Bool[Array, ""], Bool[Array, ""]]:
    """Repeat `action` for `frame_skip` frames; return pose, `departed`, and whether it is home."""
    poses, departed, arrived = trail(pose, departed, action, frame_skip)
    return poses[-1], departed, arrived


def trail(
    pose: Pose, departed: Bool[Array, ""], action: Int[Array, ""], frame_skip: int
) -> tuple[list[Pose], Bool[Array, ""], Bool[Array, ""]]:
    """As `drive`, with the poses before, between and after the frames."""
    arrived = halted = jnp.asarray(False)
    poses = [pose]
    for _ in range(frame_skip):
        # After the frame that ends the episode the peer programs apply the action once more
        # before they notice; `halted` trails `arrived` so that terminal states agree too.
        pose = _select(halted, pose, steer(pose, action))
        halted = arrived
        pose = _select(halted, pose, move(pose))
        on_base = _length(pose.x, pose.y) < BASE_RADIUS
        arrived = arrived | (on_base & departed)
        departed = departed | ~on_base
        poses.append(pose)
    return poses, departed, arrived


def steer(pose: Pose, action: Int[Array, ""]) -> Pose:
    """What an action does to angle and speed, before the cart moves."""
    turn = jnp.where(action == RIGHT, ROTATION, 0.0) - jnp.where(action == LEFT, ROTATION, 0.0)
    turns = (action == LEFT) | (action == RIGHT)
    turned = pose.angle + turn
    # Exact for whole degrees, and unlike a remainder it compiles to vector instructions.
    angle = jnp.where(turns, turned - 360.0 * jnp.floor(turned / 360.0), pose.angle)
    gain = jnp.where(action == ACCELERATE, ACCELERATION, 0.0)
    gain = jnp.where(action == BRAKE, -DECELERATION, gain)
    speed = jnp.clip(pose.speed + gain, 0.0, MAX_SPEED)
    return Pose(pose.x, pose.y, angle, speed)


def move(pose: Pose) -> Pose:
    """Advance one frame; a wall hit at a slant turns the cart along it, and costs it speed."""
    x, y, angle, speed = pose.x, pose.y, pose.angle, pose.speed
    cosine, sine = direction(angle)
    dx, dy = speed * cosine, speed * sine
    slides_x = (y != 0) & (y != 1) & (jnp.abs(dy) > MOVING_SPEED)
    slides_y = (x != 0) & (x != 1) & (jnp.abs(dx) > MOVING_SPEED)
    along_x, along_y = jnp.copysign(ROTATION, dx), jnp.copysign(ROTATION, dy)
    turn = jnp.where(slides_x & (x == 1) & (dx > 0), along_y, 0.0)
    turn = turn - jnp.where(slides_x & (x == 0) & (dx < 0), along_y, 0.0)
    turn = turn - jnp.where(slides_y & (y == 1) & (dy > 0), along_x, 0.0)
    turn = turn + jnp.where(slides_y & (y == 0) & (dy < 0), along_x, 0.0)
    to_x, to_y = jnp.clip(x + dx, 0.0, 1.0), jnp.clip(y + dy, 0.0, 1.0)
    moved = _length(to_x - x, to_y - y)
    moving = speed >= MOVING_SPEED
    return _select(~moving, pose, Pose(to_x, to_y, angle + turn, moved))


def direction(
    angle: Float[Array, "*batch"],
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Cosine and sine of an angle that is a multiple of 5 degrees, as every angle of a cart is.

    Looked up: computing them anew in every frame would be most of the cost of driving.
    """
    place = jnp.rint(angle / 5.0).astype(int)
    # The table reaches a full turn further on both sides, so that an angle there, which sliding
    # along walls can bring about, has the very cosine that computing it would give.
    inside = (place >= -_TURN) & (place < 2 * _TURN)
    place = _TURN + jnp.where(inside, place, place % _TURN)
    return jnp.asarray(_COSINES, angle.dtype)[place], jnp.asarray(_SINES, angle.dtype)[place]


def _length(x: Float[Array, "*shape"], y: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jnp.sqrt(x * x + y * y)


def _select(keep: Bool[Array, ""], old: Pose, new: Pose) -> Pose:
    return jax.tree.map(lambda a, b: jnp.where(keep, a, b), old, new)
