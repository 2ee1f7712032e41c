"""Routes against the simulator and against exhaustive search; bounds against both."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.envs.minecart import (
    ACCELERATE,
    MINE,
    MOVING_SPEED,
    Minecart,
    Pose,
    drive,
)
from windvane.envs.minecart_config import MINE_RADIUS, Mine, MinecartConfig
from windvane.oracle.minecart_bounds import DRIVING
from windvane.oracle.minecart_routes import Route, RouteFinder, Stop

GAMMA = 0.98
NEAR = MinecartConfig((Mine(0.25, 0.25, ((0.3, 0.05), (0.1, 0.05))),))
"""A mine so near to the base that all short trips can be listed."""


@pytest.fixture(scope="module")
def finder() -> RouteFinder:
    return RouteFinder(Minecart(NEAR), GAMMA)


@jax.jit
def replay_all(actions: jax.Array) -> tuple[Pose, jax.Array]:
    """Poses before each action and after the last, and where each list first comes home."""

    def one(actions: jax.Array) -> tuple[Pose, jax.Array]:
        def step(carry, action):
            pose, departed = carry
            pose, departed, arrived = drive(pose, departed, action, 4)
            return (pose, departed), (pose, arrived)

        zero = jnp.zeros(())
        start = Pose(zero, zero, zero + 45.0, zero)
        _, (poses, arrived) = jax.lax.scan(step, (start, jnp.asarray(False)), actions)
        poses = jax.tree.map(lambda a, b: jnp.append(a[None], b), start, poses)
        return poses, arrived

    return jax.vmap(one)(actions)


def replay(actions: tuple[int, ...]) -> tuple[list[Pose], list[bool]]:
    poses, arrived = replay_all(jnp.asarray([actions]))
    each = [jax.tree.map(lambda a, i=i: a[0, i], poses) for i in range(len(actions) + 1)]
    return each, np.asarray(arrived[0]).tolist()


def fuel(env: Minecart, route: Route) -> float:
    """Discounted fuel with the mining that the search reckoned with."""
    actions = [*route.out, *[MINE] * route.stops[-1].steps, *route.home]
    return float(sum(env.fuel_costs[a] * GAMMA**i for i, a in enumerate(actions)))


def test_routes_do_what_they_say(finder: RouteFinder) -> None:
    for out, home in itertools.product((1, 2), (1, 2, 3)):
        for route in finder.to_mine(Stop(0, 2), out, home):
            assert route.proven
            assert route.out.count(ACCELERATE) <= out
            assert route.home.count(ACCELERATE) <= home
            poses, arrivals = replay(route.out + route.home)
            stop = poses[len(route.out)]
            assert np.hypot(stop.x - 0.25, stop.y - 0.25) <= MINE_RADIUS
            assert stop.speed < MOVING_SPEED
            assert arrivals == [False] * (len(arrivals) - 1) + [True]


def exhaustive(env: Minecart, out: int, home: int, length: int, mining: int) -> float:
    """Least fuel over all 5^length lists that stop in the mine, mine there, and end at home."""
    best = -np.inf
    tail = np.asarray(list(itertools.product(DRIVING, repeat=length - 2)))
    times = np.arange(length + 1)
    for head in itertools.product(DRIVING, repeat=2):
        actions = np.hstack([np.tile(head, (len(tail), 1)), tail])
        poses, arrived = (jax.tree.map(np.asarray, a) for a in replay_all(jnp.asarray(actions)))
        ends_now = arrived[:, -1] & ~arrived[:, :-1].any(1)
        in_mine = np.hypot(poses.x - 0.25, poses.y - 0.25) <= MINE_RADIUS
        may_mine = in_mine & (poses.speed < MOVING_SPEED) & ends_now[:, None]
        rows, stops = np.nonzero(may_mine[:, :-1])
        chosen, after = actions[rows], times[:-1] >= stops[:, None]
        faster = chosen == ACCELERATE
        allowed = ((faster & ~after).sum(1) <= out) & ((faster & after).sum(1) <= home)
        spent = (env.fuel_costs[chosen] * GAMMA ** (times[:-1] + mining * after)).sum(1)
        mined = sum(env.fuel_costs[MINE] * GAMMA ** (stops + i) for i in range(mining))
        best = max(best, np.where(allowed, spent + mined, -np.inf).max(initial=-np.inf))
    return float(best)


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("out", "home"), [pytest.param(1, 1, marks=slow), (1, 2), pytest.param(2, 2, marks=slow)]
)
def test_the_shortest_route_is_the_exhaustive_ones(out: int, home: int) -> None:
    finder = RouteFinder(Minecart(NEAR), GAMMA)
    route = finder.to_mine(Stop(0, 1), out, home)[0]
    length = route.driving_steps
    print(out, home, length)
    assert exhaustive(finder.env, out, home, length - 1, 1) == -np.inf
    assert fuel(finder.env, route) == pytest.approx(
        exhaustive(finder.env, out, home, length, 1), abs=1e-6
    )


def test_bounds_never_exceed_what_random_driving_achieves(finder: RouteFinder) -> None:
    """Drive at random until home; every pose on the way must be bounded by the steps it took."""
    generator = np.random.default_rng(5)
    chances = [0.3, 0.15, 0.25, 0.05, 0.25]
    actions = generator.choice(DRIVING, (60_000, 14), p=chances)
    poses, arrived = replay_all(jnp.asarray(actions))
    home = np.asarray(finder._tables["home",])
    came_home = np.asarray(arrived)
    ends = np.where(came_home.any(1), came_home.argmax(1) + 1, 0)
    checked = 0
    for start in range(actions.shape[1]):
        index = np.flatnonzero(ends > start)
        columns = np.arange(actions.shape[1])
        ahead = (columns >= start) & (columns < ends[index, None])
        left = ((actions[index] == ACCELERATE) & ahead).sum(1)
        index, left = index[left <= 6], left[left <= 6]
        pose = tuple(
            np.asarray(a)[index, start] for a in (poses.x, poses.y, poses.angle, poses.speed)
        )
        bounds = finder.grid.lookup(home, left, pose)
        assert (bounds <= ends[index] - start).all()
        checked += index.size
    assert checked > 5000


def test_more_accelerations_never_bound_worse(finder: RouteFinder) -> None:
    table = np.asarray(finder._tables["home",]).astype(int)
    assert (np.diff(table, axis=0) <= 0).all()


def test_routes_survive_json() -> None:
    route = Route((Stop(1, 2), Stop(0, 1)), (3, 0, 5), (2, 3), False)
    assert Route.from_json(route.to_json()) == route
