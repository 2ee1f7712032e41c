"""Trips of the minecart as executable plans, and what they are worth at any weights.

A trip drives out to a mine, mines until its rule says stop, and drives home by the best of the
ways it knows. A trip via another mine mines there on its way out.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from windvane.envs.minecart import ACCELERATE, MINE, NONE, Minecart, MinecartState
from windvane.envs.plans import Plan
from windvane.oracle.minecart_mining import (
    StoppingRule,
    TripResult,
    WaysHome,
    expected_gain,
    mining_paths,
    trip_result,
)
from windvane.oracle.minecart_routes import Stop

MOST_MINING = 64
"""Most steps of mining before a cart goes home."""


class TripMemory(eqx.Module):
    """Steps taken, steps mined, and when (-1: not yet) and which way the cart left for home."""

    time: Int[Array, ""]
    mined: Int[Array, ""]
    left: Int[Array, ""]
    way: Int[Array, ""]


class TripPlan(Plan):
    """Drive out, mine by the rule, drive home. `mines` is false for a trip that only drives."""

    out: Int[Array, "*entries out_steps"]
    out_length: Int[Array, "*entries"]
    home: Int[Array, "*entries ways home_steps"]
    rule: StoppingRule
    mines: Bool[Array, "*entries"]

    @staticmethod
    def template() -> "TripPlan":
        """A plan of the right structure with placeholder arrays, for `CoverageSet.load`."""
        whole, real = jnp.zeros((), int), jnp.zeros(())
        rule = StoppingRule(
            jnp.zeros(1),
            WaysHome(whole[None], real[None]),
            jnp.zeros((1, 1)),
            real,
            real,
            real,
            whole,
        )
        return TripPlan(whole[None], whole, whole[None, None], rule, jnp.asarray(False))

    def start(self) -> TripMemory:
        """The memory at the start of an episode."""
        zero = jnp.zeros((), int)
        return TripMemory(zero, zero, zero - 1, zero)

    def act(self, memory: TripMemory, state: MinecartState) -> tuple[Int[Array, ""], TripMemory]:
        """The next action of the way out, of mining, or of the way home."""
        driving_out = memory.time < self.out_length
        at_mine = ~driving_out & (memory.left < 0)
        go_on, best_way = self.rule.decide(state.content, memory.mined)
        mining = at_mine & self.mines & go_on
        left = jnp.where(at_mine & ~mining, memory.time, memory.left)
        way = jnp.where(at_mine & ~mining, best_way, memory.way)
        onward = jnp.clip(memory.time - left, 0, self.home.shape[1] - 1)
        action = jnp.where(self.mines, self.home[way, onward], NONE)
        action = jnp.where(mining, MINE, action)
        outward = self.out[jnp.clip(memory.time, 0, self.out.shape[0] - 1)]
        action = jnp.where(driving_out, outward, action)
        return action, TripMemory(memory.time + 1, memory.mined + mining.astype(int), left, way)


class Trip(NamedTuple):
    """Stops, the way out to the last of them, and all ways home that are worth having from there.

    Without stops `out` is the whole trip; without actions either, the cart never leaves.
    """

    stops: tuple[Stop, ...]
    out: tuple[int, ...]
    homes: tuple[tuple[int, ...], ...]


class Entry(NamedTuple):
    """A trip with its rule fixed for some weights, ready for a coverage set."""

    plan: TripPlan
    value: np.ndarray
    standard_error: float
    behaviour: str
    group: str


class TripEvaluator:
    """Evaluates trips of one Minecart by sampled mining; the draws are the same for every trip."""

    def __init__(self, env: Minecart, gamma: float, trips: list[Trip]):
        self.env, self.gamma, self.trips = env, gamma, trips
        self.dtype = env.capacity.dtype
        self.ways = max(len(t.homes) for t in trips) or 1
        self.out_steps = max(len(t.out) for t in trips) or 1
        self.home_steps = max((len(h) for t in trips for h in t.homes), default=1)
        self.path_key, gain_key, fill_key = jax.random.split(jax.random.key(0), 3)
        mines = range(len(env.mine_positions))
        self.steps = {m: self._enough_steps(m, fill_key) for m in mines}
        self.gains = {m: expected_gain(env, jnp.asarray(m), gain_key, 8192) for m in mines}
        self._sampled: dict[tuple[tuple[Stop, ...], int], Array] = {}

    def _enough_steps(self, mine: int, key: Key[Array, ""]) -> int:
        """Mining steps after which nearly every cart is full."""
        paths = mining_paths(self.env, jnp.asarray(mine), key, 1024, MOST_MINING)
        full = np.asarray(paths.sum(-1) >= self.env.capacity * (1 - 1e-6)).mean(0) >= 0.999
        return int(full.argmax()) + 1 if full.any() else MOST_MINING

    def paths(self, stops: tuple[Stop, ...], number: int) -> Float[Array, "paths times ores"]:
        """Contents of `number` carts as they mine at the last stop."""
        name = ((*stops[:-1], Stop(stops[-1].mine, 0)), number)
        if name not in self._sampled:
            before = (jnp.asarray(stops[0].mine), stops[0].steps) if len(stops) == 2 else None
            key = jax.random.fold_in(self.path_key, number)
            mine = stops[-1].mine
            self._sampled[name] = mining_paths(
                self.env, jnp.asarray(mine), key, number, self.steps[mine], before
            )
        return self._sampled[name]

    def fuel(self, actions: tuple[int, ...]) -> float:
        """Discounted fuel of a list of actions."""
        costs = self.env.fuel_costs
        return float(sum(costs[a] * self.gamma**i for i, a in enumerate(actions)))

    def rule(self, trip: Trip, weights: np.ndarray) -> StoppingRule:
        """The stopping rule of a trip for one weight vector."""
        unused = self.ways - len(trip.homes)
        steps = [len(h) for h in trip.homes] + [1] * unused
        fuel = [self.fuel(h) for h in trip.homes] + [-np.inf] * unused
        mine = trip.stops[-1].mine if trip.stops else 0
        room = self.env.time_limit - len(trip.out) - max(steps)
        return StoppingRule(
            weights=jnp.asarray(weights, self.dtype),
            ways=WaysHome(jnp.asarray(steps), jnp.asarray(fuel, self.dtype)),
            expected_gain=self.gains[mine],
            capacity=self.env.capacity,
            mining_fuel=jnp.asarray(self.env.fuel_costs[MINE], self.dtype),
            gamma=jnp.asarray(self.gamma, self.dtype),
            most=jnp.asarray(min(self.steps[mine], room)),
        )

    def values(self, trip: Trip, weights: np.ndarray, number: int) -> np.ndarray:
        """Value vector of `trip` with its rule set for each of `weights`, from `number` carts."""
        if not trip.stops:
            return np.broadcast_to(self._driving_value(trip), weights.shape)
        return np.asarray(self._results(trip, weights, self.paths(trip.stops, number)).returns)

    def _driving_value(self, trip: Trip) -> np.ndarray:
        actions = trip.out or (NONE,) * self.env.time_limit
        return np.append(np.zeros(self.env.num_objectives - 1), self.fuel(actions))

    def _results(self, trip: Trip, weights: np.ndarray, paths: Array) -> TripResult:
        return _results(
            self.rule(trip, weights[0]),
            jnp.asarray(weights, self.dtype),
            jnp.asarray(len(trip.out)),
            jnp.asarray(self.fuel(trip.out), self.dtype),
            paths,
        )

    def entry(self, trip: Trip, weights: np.ndarray, number: int) -> Entry:
        """`trip` with its rule set for `weights`, valued with `number` carts."""
        homes = [list(h) + [NONE] * (self.home_steps - len(h)) for h in trip.homes]
        homes += [[NONE] * self.home_steps] * (self.ways - len(homes))
        out = list(trip.out) + [NONE] * (self.out_steps - len(trip.out))
        plan = TripPlan(
            out=jnp.asarray(out),
            out_length=jnp.asarray(len(trip.out)),
            home=jnp.asarray(homes),
            rule=self.rule(trip, weights),
            mines=jnp.asarray(bool(trip.stops)),
        )
        if not trip.stops:
            return Entry(plan, self._driving_value(trip), 0.0, *describe(trip))
        parts = jnp.split(self.paths(trip.stops, number), 16)
        results = [self._results(trip, weights[None], part) for part in parts]
        returns = np.stack([np.asarray(r.returns[0], float) for r in results])
        mined = float(np.mean([r.mined[0] for r in results]))
        way = int(np.mean([r.ways[0] for r in results], axis=0).argmax())
        error = float((returns @ weights).std(ddof=1) / math.sqrt(len(parts)))
        return Entry(plan, returns.mean(0), error, *describe(trip, way, mined))


def mine_name(mine: int) -> str:
    """The paper's letter of a mine: (a) is the base and (b) the cart, so mines begin with (c)."""
    return f"({chr(ord('c') + mine)})" if mine < 24 else f"({mine})"


def describe(trip: Trip, way: int = 0, mined: float = 0.0) -> tuple[str, str]:
    """A trip in words, in full and short: where to, how often it accelerates, how long it mines."""
    if not trip.stops:
        duration = f"{len(trip.out)} steps" if trip.out else "idle to the time limit"
        return f"no mine, {duration}", "no mine"
    names = " then ".join(mine_name(stop.mine) for stop in trip.stops)
    home = trip.homes[way]
    group = f"mine {names}, accelerates {trip.out.count(ACCELERATE)}+{home.count(ACCELERATE)} times"
    return f"{group}, drives {len(trip.out)}+{len(home)} steps, mines {mined:.2f}", group


@eqx.filter_jit
def _results(
    rule: StoppingRule, weights: Array, out_steps: Array, out_fuel: Array, paths: Array
) -> TripResult:
    def one(weight: Array) -> TripResult:
        own = eqx.tree_at(lambda r: r.weights, rule, weight)
        return trip_result(own, out_steps, out_fuel, paths)

    return jax.lax.map(one, weights, batch_size=16)
