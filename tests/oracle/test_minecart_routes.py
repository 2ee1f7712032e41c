"""Routes against the simulator and against exhaustive search; bounds against both."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from windvane.envs.minecart import (
    ACCELERATE,
    BRAKE,
    LEFT,
    MINE,
    MOVING_SPEED,
    NONE,
    RIGHT,
    Minecart,
    Pose,
    drive,
)
from windvane.envs.minecart_config import MINE_RADIUS, Mine, MinecartConfig
from windvane.oracle.minecart_routes import Route, RouteFinder, Stop

GAMMA = 0.98
NEAR = MinecartConfig((Mine(0.25, 0.25, ((0.3, 0.05), (0.1, 0.05))),))
"""A mine so near to the base that all short trips can be listed."""


@pytest.fixture(scope="module")
def finder() -> RouteFinder:
    return RouteFinder(Minecart(NEAR), GAMMA)


def replay(env: Minecart, actions: tuple[int, ...]) -> tuple[list[Pose], list[bool]]:
    zero = jnp.zeros(())
    pose, departed = Pose(zero, zero, zero + 45.0, zero), jnp.asarray(False)
    poses, arrivals = [pose], []
    for action in actions:
        pose, departed, arrived = drive(pose, departed, jnp.asarray(action), env.frame_skip)
        poses.append(pose)
        arrivals.append(bool(arrived))
    return poses, arrivals


def fuel(env: Minecart, route: Route) -> float:
    """Discounted fuel with the mining that the search reckoned with."""
    actions = [*route.out, *[MINE] * route.stops[-1].steps, *route.home]
    return float(sum(env.fuel_costs[a] * GAMMA**i for i, a in enumerate(actions)))


def test_routes_do_what_they_say(finder: RouteFinder) -> None:
    env = finder.env
    for out, home in itertools.product((1, 2), (1, 2, 3)):
        for route in finder.to_mine(Stop(0, 2), out, home):
            assert route.proven
            assert route.out.count(ACCELERATE) <= out
            assert route.home.count(ACCELERATE) <= home
            poses, arrivals = replay(env, route.out + route.home)
            stop = poses[len(route.out)]
            assert np.hypot(stop.x - 0.25, stop.y - 0.25) <= MINE_RADIUS
            assert stop.speed < MOVING_SPEED
            assert arrivals == [False] * (len(arrivals) - 1) + [True]


def exhaustive(env: Minecart, out: int, home: int, length: int, mining: int) -> float:
    """Least fuel over all action lists of `length` that stop in the mine, mine, and end at home.

    Depth-first with nothing but the accelerations and the length as limits.
    """
    best = -np.inf
    zero = jnp.zeros(())
    frontier = {(): (Pose(zero, zero, zero + 45.0, zero), jnp.asarray(False))}
    step = {}

    def following(state, action):
        key = (id(state), action)
        if key not in step:
            pose, departed, arrived = drive(*state, jnp.asarray(action), env.frame_skip)
            step[key] = ((pose, departed), bool(arrived), state)
        return step[key][:2]

    def explore(state, time, mined, used, spent):
        nonlocal best
        pose = state[0]
        rests = float(pose.speed) < MOVING_SPEED
        inside = np.hypot(float(pose.x) - 0.25, float(pose.y) - 0.25) <= MINE_RADIUS
        if not mined and rests and inside:
            cost = sum(env.fuel_costs[MINE] * GAMMA ** (time + i) for i in range(mining))
            explore(state, time, True, 0, spent + cost)
        if time == length:
            return
        for action in (LEFT, RIGHT, ACCELERATE, BRAKE, NONE):
            more = used + (action == ACCELERATE)
            if more > (home if mined else out):
                continue
            after, arrived = following(state, action)
            total = spent + env.fuel_costs[action] * GAMMA ** (time + mining * mined)
            if arrived:
                if mined and time + 1 == length:
                    best = max(best, total)
            else:
                explore(after, time + 1, mined, more, total)

    explore(frontier[()], 0, False, 0, 0.0)
    return best


@pytest.mark.slow
def test_the_shortest_route_is_the_exhaustive_ones(finder: RouteFinder) -> None:
    route = finder.to_mine(Stop(0, 1), 1, 2)[0]
    length = route.driving_steps
    assert exhaustive(finder.env, 1, 2, length - 1, 1) == -np.inf
    assert fuel(finder.env, route) == pytest.approx(
        exhaustive(finder.env, 1, 2, length, 1), abs=1e-6
    )


def test_bounds_never_exceed_what_random_driving_achieves(finder: RouteFinder) -> None:
    """Drive at random until home; every pose on the way must be bounded by the steps it took."""
    generator = np.random.default_rng(5)
    env, home = finder.env, np.asarray(finder._tables["home",])
    checked = 0
    while checked < 200:
        actions = tuple(
            int(a) for a in generator.choice([1, 2, 3, 4, 5], 14, p=[0.3, 0.15, 0.25, 0.05, 0.25])
        )
        poses, arrivals = replay(env, actions)
        if True not in arrivals:
            continue
        end = arrivals.index(True) + 1
        for start in range(end):
            left = actions[start:end].count(ACCELERATE)
            if left > finder.max_accelerations:
                continue
            pose = poses[start]
            columns = tuple(np.asarray(v)[None] for v in (pose.x, pose.y, pose.angle, pose.speed))
            bound = finder.grid.lookup(home, np.asarray([left]), columns)[0]
            assert bound <= end - start, (actions, start)
            checked += 1


def test_more_accelerations_never_bound_worse(finder: RouteFinder) -> None:
    table = np.asarray(finder._tables["home",]).astype(int)
    assert (np.diff(table, axis=0) <= 0).all()


def test_routes_survive_json() -> None:
    route = Route((Stop(1, 2), Stop(0, 1)), (3, 0, 5), (2, 3), False)
    assert Route.from_json(route.to_json()) == route
