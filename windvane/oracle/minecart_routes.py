"""Exact search for routes of the minecart: out to a mine (or to two), and home again.

Driving is deterministic, so a route is a list of actions. The search goes step by step through
the environment's own simulator, keeps the cheapest way to each pose, and prunes only poses that
`minecart_bounds` proves too late for the length looked for. Lengths are tried from the bound
upwards, so the first route found is a shortest one for its number of accelerations, and among
those of that length the one that burns least discounted fuel. A few longer ones follow if they
burn less: putting the costly mining off can be worth a step.
"""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from windvane.envs.minecart import (
    ACCELERATE,
    MINE,
    MOVING_SPEED,
    NONE,
    START_ANGLE,
    Minecart,
    Pose,
    drive,
)
from windvane.envs.minecart_config import BASE_RADIUS, MINE_RADIUS
from windvane.oracle.minecart_bounds import DRIVING, FAR, PoseGrid

MARGIN = 1e-5
"""Routes must end this far inside a mine or the base, so that rounding cannot break them."""
MERGE = 1e5
"""Poses that are equal after rounding to this many parts of the map's side are merged."""
POSE_LIMIT = 500_000
"""Most poses per layer; beyond it the least promising are dropped, and the route is unproven."""
LONGER = 3
"""Steps beyond the shortest length in which cheaper routes are searched for."""

_MINED = -1


@dataclass(frozen=True)
class Stop:
    """A mine to stop in, and the steps of mining there that discounting assumes."""

    mine: int
    steps: int


@dataclass(frozen=True)
class Route:
    """Actions `out` to the last stop, mining at earlier stops included, and `home` from it."""

    stops: tuple[Stop, ...]
    out: tuple[int, ...]
    home: tuple[int, ...]
    proven: bool = True

    @property
    def driving_steps(self) -> int:
        """Steps without those of mining."""
        return len(self.out) + len(self.home) - self.out.count(MINE)

    def to_json(self) -> list[Any]:
        """A form that JSON can hold."""
        return [[[s.mine, s.steps] for s in self.stops], self.out, self.home, self.proven]

    @staticmethod
    def from_json(data: Any) -> "Route":
        """Read `to_json`'s form; ValueError or TypeError for anything else."""
        stops, out, home, proven = data
        stops = tuple(Stop(*map(operator.index, stop)) for stop in stops)
        out, home = (tuple(map(operator.index, way)) for way in (out, home))
        return Route(stops, out, home, bool(proven))


@dataclass
class _Layer:
    """Carts after the same number of driving steps. `stage` counts the stops made."""

    x: np.ndarray
    y: np.ndarray
    angle: np.ndarray
    speed: np.ndarray
    departed: np.ndarray
    stage: np.ndarray
    used: np.ndarray
    fuel: np.ndarray
    parent: np.ndarray
    action: np.ndarray

    @property
    def pose(self) -> tuple[np.ndarray, ...]:
        return self.x, self.y, self.angle, self.speed

    def take(self, index: np.ndarray) -> "_Layer":
        return _Layer(**{name: values[index] for name, values in vars(self).items()})

    @staticmethod
    def join(parts: "list[_Layer]") -> "_Layer":
        names = vars(parts[0])
        return _Layer(**{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})

    @staticmethod
    def start() -> "_Layer":
        zero, whole = np.zeros(1, np.float32), np.zeros(1, int)
        return _Layer(
            x=zero, y=zero, angle=zero + np.float32(START_ANGLE), speed=zero,
            departed=np.zeros(1, bool), stage=whole, used=whole, fuel=np.zeros(1),
            parent=whole, action=whole,
        )  # fmt: skip


class RouteFinder:
    """Finds routes of one Minecart; builds each table of bounds once."""

    def __init__(self, env: Minecart, gamma: float):
        self.env, self.gamma = env, gamma
        self.mines = np.asarray(env.mine_positions, float)
        self.grid = PoseGrid.build(env.frame_skip)
        self.max_accelerations = self.grid.max_accelerations
        self._tables: dict[tuple[int | str, ...], Array] = {}
        self._known: dict[Stop, dict[tuple[int, int], tuple[int, float]]] = {}
        self._tables["home",] = self.grid.steps_home()
        self._tables["out",] = self.grid.steps_out_and_home(self._tables["home",])

    def to_mine(self, stop: Stop, out: int, home: int) -> list[Route]:
        """Routes with at most `out` and `home` accelerations: a shortest one, then cheaper ones."""
        if ("via", stop.mine, home) not in self._tables:
            after = self._tables["home",][home]
            table = self.grid.steps_via_mine(self.mines[stop.mine], after)
            self._tables["via", stop.mine, home] = table
        tables = [self._tables["via", stop.mine, home], self._tables["home",]]
        search = _Search(self, (stop,), (out, home), tables)
        # Skip what fewer accelerations achieve: a route must be shorter than all known ones, or
        # burn less than those that are not longer.
        known = self._known.setdefault(stop, {})
        fewer = [
            length
            for (own_out, own_home), (length, _) in known.items()
            if own_out <= out and own_home <= home
        ]
        found = list(search.run(_Layer.start(), list(known.values()), min(fewer, default=None)))
        routes = [route for _, route in found]
        best = min(((r.driving_steps, fuel) for fuel, r in found), default=None)
        if best is not None:
            known[out, home] = best
        return routes

    def to_two_mines(self, first: Stop, second: Stop, accelerations: int) -> list[Route]:
        """Routes via two mines with at most that many accelerations in all."""
        mines = (first.mine, second.mine)
        tables = [self._tail(mines), self._tail(mines[1:]), self._tail(())]
        search = _Search(self, (first, second), (accelerations,) * 3, tables, shared=True)
        return [route for _, route in search.run(_Layer.start())]

    def without_mining(self, accelerations: int) -> list[Route]:
        """Shortest way to leave the base and end the episode."""
        tables = [self._tables["out",], self._tables["home",]]
        search = _Search(self, (), (accelerations,) * 2, tables)
        return [route for _, route in search.run(_Layer.start())]

    def home_from(self, route: Route, accelerations: int) -> list[Route]:
        """`route` with other ways home, of at most that many accelerations."""
        cart = _Layer.start()
        for action in route.out:
            cart, _ = _drive(cart, action, self.env.frame_skip)
        cart = replace(cart, stage=np.ones(1, int))
        tables = [self._tables["home",]] * 2
        found = _Search(self, route.stops[-1:], (0, accelerations), tables).run(cart)
        return [
            replace(r, stops=route.stops, out=route.out, proven=r.proven and route.proven)
            for _, r in found
        ]

    def least_steps(self, mines: tuple[int, ...]) -> np.ndarray:
        """Bound on the driving steps of a trip that stops in each of `mines`, for each number of
        accelerations in all.
        """
        table = np.asarray(self._tail(mines))
        pose = tuple(np.repeat(value, len(table)) for value in _Layer.start().pose)
        return self.grid.lookup(table, np.arange(len(table)), pose)

    def _tail(self, mines: tuple[int, ...]) -> Array:
        """Bounds for stopping in `mines` in turn, with twice a leg's accelerations to share."""
        if ("tail", *mines) not in self._tables:
            if mines:
                table = self.grid.steps_via_mine(self.mines[mines[0]], self._tail(mines[1:]))
            else:
                home = self._tables["home",]
                table = jnp.concatenate([home, jnp.repeat(home[-1:], len(home) - 1, axis=0)])
            self._tables["tail", *mines] = table
        return self._tables["tail", *mines]


class _Search:
    """One search: stops in order, accelerations per leg (`shared`: in all), bounds per stage."""

    def __init__(
        self,
        finder: RouteFinder,
        stops: tuple[Stop, ...],
        allowed: tuple[int, ...],
        tables: list[Array],
        shared: bool = False,
    ):
        self.finder, self.stops, self.shared = finder, stops, shared
        self.env, self.gamma = finder.env, finder.gamma
        self.allowed = np.asarray(allowed)
        self.tables = [np.asarray(table) for table in tables]
        self.costs = self.env.fuel_costs
        self.mining_fuel = [self.costs[MINE] * self._sum(0, s.steps) for s in stops]
        self.mined_before = np.cumsum([0, *(s.steps for s in stops)])
        self.proven = True

    def run(
        self,
        start: _Layer,
        known: Sequence[tuple[int, float]] = (),
        until: int | None = None,
    ) -> Iterator[tuple[float, Route]]:
        """Yield a shortest route and its fuel, then longer ones that burn less.

        Routes as long as a `known` one must burn less than it; without a shorter route than
        `until`, stop there.
        """
        length = int(self._bound(start)[0])
        longest = min(FAR, self.env.time_limit)
        limit = longest if until is None else min(longest, until)
        best = -np.inf
        while length <= limit:
            floor = max([best, *(fuel for other, fuel in known if other <= length)])
            found = self._within(start, length, floor)
            if found is not None:
                if best == -np.inf:
                    limit = min(longest, length + LONGER)
                best = found[0]
                yield found
            length += 1

    def _sum(self, first: int | np.ndarray, number: int | np.ndarray) -> np.ndarray:
        """Sum of the discounts of `number` steps from `first` on."""
        if self.gamma == 1:
            return np.asarray(number, float)
        return np.asarray(self.gamma**first * (1 - self.gamma**number) / (1 - self.gamma))

    def _bound(self, layer: _Layer) -> np.ndarray:
        left = self.allowed[layer.stage] - layer.used
        stage = layer.stage if self.stops else layer.departed.astype(int)
        bounds = np.zeros(layer.x.size, int)
        for value, table in enumerate(self.tables):
            at = np.flatnonzero(stage == value)
            pose = tuple(a[at] for a in layer.pose)
            bounds[at] = self.finder.grid.lookup(table, left[at], pose)
        return bounds

    def _promising(self, layer: _Layer, time: int, length: int, fuel: float) -> _Layer:
        """Carts that, by the bounds, may finish in time and burn less than `fuel`."""
        bound = self._bound(layer)
        elapsed = time + self.mined_before[layer.stage]
        cheapest = layer.fuel + self.costs[NONE] * self._sum(elapsed, bound)
        for index, cost in enumerate(self.mining_fuel):
            latest = self.gamma ** (length - 1 + self.mined_before[index])
            cheapest = cheapest + np.where(layer.stage <= index, latest * cost, 0.0)
        return layer.take((time + bound <= length) & (cheapest > fuel))

    def _within(self, start: _Layer, length: int, fuel: float) -> tuple[float, Route] | None:
        layers = [start]
        best: tuple[float, int, int, int] | None = None
        for time in range(length):
            layers[-1] = layer = self._mine(layers[-1], time, length, fuel)
            parts = []
            for action in DRIVING:
                following, finished = self._drive(layer, action, time)
                done = following.take(finished)
                if done.x.size and done.fuel.max() > (best[0] if best else fuel):
                    top = int(done.fuel.argmax())
                    best = (float(done.fuel[top]), time, int(done.parent[top]), action)
                parts.append(self._promising(following.take(~finished), time + 1, length, fuel))
            layers.append(self._merge(_Layer.join(parts)))
        return None if best is None else (best[0], self._trace(layers, *best[1:]))

    def _mine(self, layer: _Layer, time: int, length: int, fuel: float) -> _Layer:
        """Add, for every cart at rest in its next mine, the cart that has mined there."""
        here = np.stack([layer.x, layer.y], 1)
        distances = np.hypot(*np.moveaxis(here[:, None] - self.finder.mines, 2, 0))
        nearest = np.where(
            distances.min(1) <= MINE_RADIUS - MARGIN, distances.argmin(1), len(self.finder.mines)
        )
        for stage, stop in enumerate(self.stops):
            ready = (layer.stage == stage) & (layer.speed < MOVING_SPEED) & (nearest == stop.mine)
            index = np.flatnonzero(ready)
            before = layer.take(index)
            elapsed = time + self.mined_before[stage]
            mined = replace(
                before,
                stage=before.stage + 1,
                used=before.used if self.shared else np.zeros(index.size, int),
                fuel=before.fuel + self.gamma**elapsed * self.mining_fuel[stage],
                parent=index,
                action=np.full(index.size, _MINED),
            )
            # Carts join the layer they stem from, so `parent` points into the same layer.
            mined = self._promising(mined, time, length, fuel)
            nearest = np.append(nearest, np.full(mined.x.size, stop.mine))
            layer = _Layer.join([layer, mined])
        return layer

    def _drive(self, layer: _Layer, action: int, time: int) -> tuple[_Layer, np.ndarray]:
        """Apply one action; also return which carts finished the trip with it."""
        source = np.arange(layer.x.size)
        if action == ACCELERATE:
            source = source[layer.used < self.allowed[layer.stage]]
        before = layer.take(source)
        after, arrived = _drive(before, action, self.env.frame_skip)
        elapsed = time + self.mined_before[before.stage]
        after = replace(
            after,
            used=before.used + (action == ACCELERATE),
            fuel=before.fuel + self.gamma**elapsed * self.costs[action],
            parent=source,
            action=np.full(source.size, action),
        )
        # A cart that came home without having mined, or by a hair, is of no use.
        safe = np.hypot(after.x, after.y) < BASE_RADIUS - MARGIN
        done = arrived & safe & (after.stage == len(self.stops))
        keep = done | ~arrived
        return after.take(keep), done[keep]

    def _merge(self, layer: _Layer) -> _Layer:
        """Keep the cheapest way to each pose."""
        rounded = [np.rint(a.astype(float) * MERGE) for a in (layer.x, layer.y, layer.speed)]
        flags = layer.stage * 1000 + layer.used * 2 + layer.departed
        key = np.stack([*rounded, np.rint(layer.angle) % 360, flags], 1).astype(np.int64)
        order = np.lexsort((-layer.fuel, *key.T))
        key = key[order]
        fresh = np.ones(len(order), bool)
        fresh[1:] = (key[1:] != key[:-1]).any(1)
        merged = layer.take(order[fresh])
        if merged.x.size > POSE_LIMIT:
            self.proven = False
            promising = np.argsort(self._bound(merged), kind="stable")[:POSE_LIMIT]
            merged = merged.take(promising)
        return merged

    def _trace(self, layers: list[_Layer], time: int, index: int, action: int) -> Route:
        legs: list[list[int]] = [[action]]
        while True:
            layer = layers[time]
            step = int(layer.action[index])
            if step == _MINED:
                legs.append([])
            elif time == 0:
                break
            else:
                legs[-1].append(step)
            index, time = int(layer.parent[index]), time - (step != _MINED)
        legs = [leg[::-1] for leg in legs[::-1]]
        if len(legs) == 1:
            out, home = (legs[0], []) if not self.stops else ([], legs[0])
            return Route(self.stops, tuple(out), tuple(home), self.proven)
        *outward, home = legs
        out = list(outward[0])
        for stop, leg in zip(self.stops[:-1], outward[1:], strict=True):
            out += [MINE] * stop.steps + leg
        return Route(self.stops, tuple(out), tuple(home), self.proven)


def _drive(layer: _Layer, action: int, frame_skip: int) -> tuple[_Layer, np.ndarray]:
    size = layer.x.size
    # Padding to powers of two keeps the number of compiled shapes small.
    padded = 1 << max(8, (max(size, 1) - 1).bit_length())
    arrays = [np.zeros(padded, a.dtype) for a in (*layer.pose, layer.departed)]
    for array, values in zip(arrays, (*layer.pose, layer.departed), strict=True):
        array[:size] = values
    *pose, departed = (jnp.asarray(array) for array in arrays)
    after, departed, arrived = _drive_batch(Pose(*pose), departed, jnp.asarray(action), frame_skip)
    x, y, angle, speed, departed, arrived = (
        np.asarray(a)[:size]
        for a in (after.x, after.y, after.angle, after.speed, departed, arrived)
    )
    return replace(layer, x=x, y=y, angle=angle, speed=speed, departed=departed), arrived


@partial(jax.jit, static_argnames="frame_skip")
def _drive_batch(
    pose: Pose, departed: Array, action: Array, frame_skip: int
) -> tuple[Pose, Array, Array]:
    return jax.vmap(lambda p, d: drive(p, d, action, frame_skip))(pose, departed)
