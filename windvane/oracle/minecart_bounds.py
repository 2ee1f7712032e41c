"""Lower bounds on the driving steps from any pose to a goal.

The pose space is covered by a grid of cells. A table holds, for each number of accelerations still
allowed and each cell, a lower bound on the steps to a goal from anywhere in that cell. A move may
end in any cell that some pose of the first cell can reach, so an exact search may prune whatever
these bounds call too late (see `minecart_routes`).

The bound is rigorous wherever carts drive freely. Next to a wall, whether a cart touches it can
differ within one cell; there the bound rests on the cell's centre, and is rigorous up to that.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8

from windvane.envs.minecart import (
    ACCELERATE,
    ACCELERATION,
    BRAKE,
    LEFT,
    NONE,
    RIGHT,
    Pose,
    move,
    steer,
)
from windvane.envs.minecart_config import BASE_RADIUS, MINE_RADIUS

CELLS = 50
POINTS = CELLS + 1
HEADINGS = 36
FAR = 200
"""Stands for "never" in a table."""

DRIVING = (LEFT, RIGHT, ACCELERATE, BRAKE, NONE)
REACH = np.sqrt(0.5) / CELLS
"""How far a pose may lie from the centre of its cell."""

Table = UInt8[Array, "accelerations cells"]


class PoseGrid(NamedTuple):
    """Cells of the pose space and where each driving action may lead from them."""

    frame_skip: int
    max_accelerations: int
    centres: Pose
    successors: Int[Array, "actions cells"]
    comes_home: Bool[Array, "actions cells"]

    @classmethod
    def build(cls, frame_skip: int) -> "PoseGrid":
        """Simulate every driving action from the centre of every cell."""
        # Six agent steps at the paper's frame skip: the cart then crosses the map in a step or two.
        most = -(-24 // frame_skip)
        speeds, headings, xs, ys = np.meshgrid(
            np.arange(most + 1) * ACCELERATION * frame_skip,
            np.arange(HEADINGS) * 10.0 + 5.0,
            np.arange(POINTS) / CELLS,
            np.arange(POINTS) / CELLS,
            indexing="ij",
        )
        flat = [jnp.asarray(a.ravel(), jnp.float32) for a in (xs, ys, headings, speeds)]
        centres = Pose(*flat)
        successors, comes_home = _simulate(centres, frame_skip, most)
        return cls(frame_skip, most, centres, successors, comes_home)

    def unreachable(self) -> Table:
        """A table that bounds nothing yet."""
        return jnp.full((self.max_accelerations + 1, self.centres.x.size), FAR, jnp.uint8)

    def relax(self, table: Table, ends: Bool[Array, "actions cells"] | None = None) -> Table:
        """Propagate `table` backwards through the moves until nothing changes.

        An action for which `ends` holds reaches the goal itself.
        """
        ends = jnp.zeros_like(self.comes_home) if ends is None else ends
        return _relax(table, self.successors, ends)

    def steps_home(self) -> Table:
        """Bound on the steps until a cart that has left the base is back at it."""
        return self.relax(self.unreachable(), self.comes_home)

    def steps_via_mine(self, mine: np.ndarray, steps_after: UInt8[Array, "*rows cells"]) -> Table:
        """Bound on the steps to stop in a mine and then continue for `steps_after`.

        With a table of `steps_after`, the accelerations that are left may be used after the mine;
        with a single row, the way after the mine has its own.
        """
        distance = jnp.hypot(self.centres.x - mine[0], self.centres.y - mine[1])
        stopped = (distance <= MINE_RADIUS + REACH) & (self.centres.speed == 0)
        goal = jnp.where(stopped, steps_after, FAR).astype(jnp.uint8)
        shape = goal.shape if goal.ndim == 2 else self.unreachable().shape
        return self.relax(jnp.broadcast_to(goal, shape))

    def steps_out_and_home(self, steps_home: Table) -> Table:
        """Bound on the steps to leave the base and come back."""
        outside = jnp.hypot(self.centres.x, self.centres.y) >= BASE_RADIUS - REACH
        return self.relax(jnp.where(outside, steps_home, FAR).astype(jnp.uint8))

    def lookup(
        self, table: np.ndarray, accelerations: np.ndarray, pose: tuple[np.ndarray, ...]
    ) -> np.ndarray:
        """The bound for each pose of a batch, with that many accelerations left."""
        x, y, angle, speed = pose
        column, row = (np.rint(a * CELLS).astype(int) for a in (x, y))
        heading = np.rint((angle - 5.0) / 10.0).astype(int) % HEADINGS
        level = speed / (ACCELERATION * self.frame_skip)
        level = np.where(abs(level - np.rint(level)) < 0.01, np.rint(level), level)
        bounds = []
        for rounded in (np.floor(level), np.ceil(level)):
            gear = np.clip(rounded, 0, self.max_accelerations).astype(int)
            cell = ((gear * HEADINGS + heading) * POINTS + column) * POINTS + row
            bounds.append(table[accelerations, cell])
        return np.minimum(*bounds).astype(int)


def _simulate(
    centres: Pose, frame_skip: int, most: int
) -> tuple[Int[Array, "actions cells"], Bool[Array, "actions cells"]]:
    """Where each action leads, as an index of `_between`'s lattice, and whether it passes home."""
    gears, side = 2 * most + 1, 2 * CELLS + 1

    @jax.jit
    def from_all(action: Int[Array, ""]) -> tuple[Array, Array]:
        pose, nearest = centres, jnp.full(centres.x.shape, jnp.inf)
        for _ in range(frame_skip):
            pose = jax.vmap(lambda p: move(steer(p, action)))(pose)
            nearest = jnp.minimum(nearest, jnp.hypot(pose.x, pose.y))
        heading = jnp.rint((pose.angle - 5.0) / 10.0).astype(int) % HEADINGS
        gear = _doubled(pose.speed / (ACCELERATION * frame_skip), tolerance=0.01)
        column, row = _doubled(pose.x * CELLS), _doubled(pose.y * CELLS)
        index = (jnp.minimum(gear, gears - 1) * HEADINGS + heading) * side + column
        return index * side + row, nearest < BASE_RADIUS + REACH

    successors, comes_home = zip(*(from_all(jnp.asarray(a)) for a in DRIVING), strict=True)
    return jnp.stack(successors), jnp.stack(comes_home)


def _doubled(value: Array, tolerance: float = 1e-3) -> Array:
    """Twice `value` if it is nearly a whole number, else the odd number between its neighbours."""
    nearest = jnp.rint(value)
    exact = jnp.abs(value - nearest) < tolerance
    return jnp.where(exact, 2 * nearest, 2 * jnp.floor(value) + 1).astype(int)


def _between(row: UInt8[Array, " cells"]) -> UInt8[Array, " points"]:
    """Bounds on a lattice of twice the density: a point between cells has the least of them.

    One read of it stands for up to eight of the row, and building it reads memory in order.
    """
    lattice = row.reshape(-1, HEADINGS, POINTS, POINTS)
    for axis in (0, 2, 3):
        low = jax.lax.slice_in_dim(lattice, 0, -1, axis=axis)
        high = jax.lax.slice_in_dim(lattice, 1, None, axis=axis)
        pairs = jnp.stack([low, jnp.minimum(low, high)], axis=axis + 1)
        shape = list(lattice.shape)
        shape[axis] = 2 * (shape[axis] - 1)
        last = jax.lax.slice_in_dim(lattice, -1, None, axis=axis)
        lattice = jnp.concatenate([pairs.reshape(shape), last], axis=axis)
    return lattice.ravel()


@jax.jit
def _relax(table: Table, successors: Array, ends: Array) -> Table:
    accelerating = DRIVING.index(ACCELERATE)

    def onward(lattice: Array, action: int) -> Array:
        steps = jnp.minimum(lattice[successors[action]], FAR - 1) + 1
        return jnp.where(ends[action], 1, steps).astype(jnp.uint8)

    def sweep(carry: tuple[Table, Array]) -> tuple[Table, Array]:
        old, _ = carry
        lattices = jax.lax.map(_between, old)

        def improve(left: Array) -> Array:
            best = old[left]
            for action in range(len(DRIVING)):
                if action == accelerating:
                    spent = onward(lattices[jnp.maximum(left - 1, 0)], action)
                    best = jnp.where(left > 0, jnp.minimum(best, spent), best)
                else:
                    best = jnp.minimum(best, onward(lattices[left], action))
            return best

        new = jax.lax.map(improve, jnp.arange(old.shape[0]))
        return new, jnp.any(new != old)

    return jax.lax.while_loop(lambda c: c[1], sweep, (table, jnp.asarray(True)))[0]
