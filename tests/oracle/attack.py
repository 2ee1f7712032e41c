"""Ways to beat the oracle, for the tests: random shooting, and the peer's own policies.

Both yield lists of actions; what counts is what a list earns on average over many plays.
"""

from functools import partial
from math import ceil
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from windvane.envs.minecart import (
    ACCELERATE,
    ACCELERATION,
    BRAKE,
    LEFT,
    MINE,
    MOVING_SPEED,
    NONE,
    RIGHT,
    Minecart,
)
from windvane.envs.minecart_config import BASE_RADIUS, MINE_RADIUS
from windvane.envs.plans import OpenLoopPlan, rollout_episode, rollout_episodes
from windvane.oracle.coverage import CoverageSet
from windvane.oracle.minecart import rectified_means

LENGTH = 40


def shoot(env: Minecart, gamma: float, key: Array) -> tuple[Array, Array]:
    """One random episode: its actions (padded with NONE) and its discounted return.

    Each episode has its own random leanings. Carts in a mine tend to stop and to mine, loaded
    ones to leave: uniformly random actions hardly ever bring ore home.
    """
    leaning_key, key = jax.random.split(key)
    leanings = jax.random.dirichlet(leaning_key, jnp.asarray([0.5, 0.8, 0.8, 1.0, 0.2, 1.0]), (2,))
    greed = jax.random.uniform(jax.random.fold_in(leaning_key, 1), (2,))

    def step(carry, time):
        state, ended, returns = carry
        keys = jax.random.split(jax.random.fold_in(key, time), 3)
        pose = state.pose
        offsets = env.mine_positions - jnp.stack([pose.x, pose.y])
        in_mine = (jnp.sqrt((offsets**2).sum(1)) <= MINE_RADIUS).any()
        load = state.content.sum() / env.capacity
        chance = leanings[jnp.where(load > 0, 1, 0)]
        action = jax.random.categorical(keys[0], jnp.log(chance + 1e-9))
        stops = in_mine & (load < 0.95) & (jax.random.uniform(keys[1]) < greed[0] + 0.3)
        at_work = jnp.where(pose.speed < MOVING_SPEED, MINE, BRAKE)
        action = jnp.where(stops, at_work, action)
        action = jnp.where(ended, NONE, action)
        following, reward, terminated = env.step(state, action, keys[2])
        gained = reward * gamma ** time.astype(reward.dtype)
        returns = returns + jnp.where(ended, 0.0, gained)
        return (following, ended | terminated, returns), action

    state = env.reset(key)
    first = (state, jnp.asarray(False), jnp.zeros(env.num_objectives))
    (_, ended, returns), actions = jax.lax.scan(step, first, jnp.arange(LENGTH))
    # An episode that did not end would go on paying for fuel.
    return actions, jnp.where(ended, returns, -10.0)


def random_shooting(
    env: Minecart, gamma: float, rollouts: int, weights: np.ndarray, keep: int = 3
) -> np.ndarray:
    """The luckiest action lists of `rollouts` random episodes, `keep` a weight vector and batch."""
    size = 20_000

    @jax.jit
    def batch(key: Array) -> tuple[Array, Array]:
        actions, returns = jax.vmap(partial(shoot, env, gamma))(jax.random.split(key, size))
        scores = jnp.asarray(weights, returns.dtype) @ returns.T
        return actions, jax.lax.top_k(scores, keep)[1]

    found = []
    for index in range(ceil(rollouts / size)):
        actions, best = batch(jax.random.fold_in(jax.random.key(7), index))
        found.append(np.asarray(actions)[np.unique(np.asarray(best))])
    return np.unique(np.concatenate(found), axis=0)


def peer_policies(env: Minecart) -> np.ndarray:
    """The action lists behind MO-Gymnasium's `pareto_front`, all of them, by its recipe.

    Turn left towards the mine (right where it lies there), accelerate or coast until a distance is
    covered, brake, turn by four lefts, mine some steps, and repeat the pattern home. Both
    directions of turning are tried, of which the peer knows only one.
    """
    skip = env.frame_skip
    lists = []
    hauls = rectified_means(env).sum(1) * skip
    for (x, y), haul in zip(np.asarray(env.mine_positions, float), hauls, strict=True):
        distance = np.hypot(x, y) - MINE_RADIUS - BASE_RADIUS / 2
        angle = np.degrees(np.arctan2(x * 1 - y * 1, x + y))
        turns = ceil(abs(angle) / (10 * skip))
        patterns = _patterns(distance, skip)
        for turn in (LEFT, RIGHT):
            for pattern in patterns:
                for mined in range(1, ceil(float(env.capacity) / haul) + 1):
                    around = [BRAKE] + [turn] * (180 // (10 * skip))
                    lists.append([turn] * turns + pattern + around + [MINE] * mined + pattern)
    for last in (ACCELERATE, NONE):
        # Its trips without a mine: out of the base, around, and back.
        lists.append([ACCELERATE, last] + [LEFT] * (180 // (10 * skip)) + [NONE, last])
    longest = max(map(len, lists))
    return np.asarray([actions + [NONE] * (longest - len(actions)) for actions in lists])


def _patterns(distance: float, skip: int) -> list[list[int]]:
    queue = [([ACCELERATE], ACCELERATION * skip, distance - skip * (skip + 1) / 2 * ACCELERATION)]
    done = []
    while queue:
        actions, speed, left = queue.pop()
        frames = speed / ACCELERATION
        faster = sum(frames + i + 1 for i in range(skip)) * ACCELERATION
        for action, covered, gain in (
            (ACCELERATE, faster, skip * ACCELERATION),
            (NONE, speed * skip, 0),
        ):
            longer = [*actions, action]
            if left - covered <= 0:
                done.append(longer)
            else:
                queue.append((longer, speed + gain, left - covered))
    return done


def mean_returns(
    env: Minecart, gamma: float, lists: np.ndarray, plays: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean discounted return of each action list, and the covariance of that mean."""

    @eqx.filter_jit
    def returns(actions: Array, keys: Array) -> Array:
        def one(actions: Array) -> Array:
            # Past its end a list stands still, and pays, until the time limit.
            script = OpenLoopPlan(jnp.append(actions, NONE), jnp.asarray(actions.size + 1))
            return jax.vmap(lambda key: rollout_episode(env, script, gamma, key).returns)(keys)

        return jax.lax.map(one, actions)

    keys = jax.random.split(jax.random.key(seed), plays)
    means, covariances = [], []
    for part in np.array_split(lists, max(1, len(lists) // 256)):
        earned = np.asarray(returns(jnp.asarray(part), keys), float)
        means.append(earned.mean(1))
        centred = earned - earned.mean(1, keepdims=True)
        covariances.append(np.einsum("lpi,lpj->lij", centred, centred) / (plays - 1) / plays)
    return np.concatenate(means), np.concatenate(covariances)


def plan_deviations(env: Minecart, coverage: CoverageSet, episodes: int) -> np.ndarray:
    """Distance of every plan's mean return from its stated value, in standard errors.

    What happens in one of `episodes` plays or so may well not happen in them at all; it changes a
    return by about 0.25, the fuel of mining once more, and is allowed for.
    """
    deviations = []
    for index, value in enumerate(coverage.values):
        outcome = rollout_episodes(
            env, coverage.plan(index), coverage.gamma, jax.random.key(index), episodes
        )
        returns = np.asarray(outcome.returns, float)
        assert np.asarray(outcome.terminated).all(), coverage.behaviours[index]
        error = returns.std(0, ddof=1) / np.sqrt(episodes) + 0.25 / episodes
        deviations.append(np.abs(returns.mean(0) - value) / error)
    return np.stack(deviations)


def excess_over(
    means: np.ndarray, covariances: np.ndarray, weights: np.ndarray, optimal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """By how much each list beats `optimal` at each weight vector, and the standard errors."""
    excess = weights @ means.T - optimal[:, None]
    errors = np.sqrt(np.maximum(np.einsum("wi,lij,wj->wl", weights, covariances, weights), 0))
    # float32 sums of some twenty rewards are good to about 1e-6; values are stated to 1e-4.
    return excess, np.maximum(errors, 1e-5)


class Verdict(NamedTuple):
    """What an attack came to: lists replayed, and the largest excess with its standard error."""

    lists: int
    excess: float
    error: float

    @property
    def beaten(self) -> bool:
        """Whether some list earns more, beyond doubt and beyond the stated tolerance."""
        return self.excess > 3 * self.error + 1e-4


def judge(
    env: Minecart, gamma: float, lists: np.ndarray, weights: np.ndarray, optimal: np.ndarray,
    plays: int, again: int,
) -> Verdict:  # fmt: skip
    """Replay all lists `plays` times, then the most successful ones `again` times with new draws.

    The second round matters: the best of many noisy means is best by luck as well.
    """
    means, covariances = mean_returns(env, gamma, lists, plays, seed=1)
    excess, errors = excess_over(means, covariances, weights, optimal)
    top = np.unique((excess + errors).max(0).argsort()[-20:])
    means, covariances = mean_returns(env, gamma, lists[top], again, seed=2)
    excess, errors = excess_over(means, covariances, weights, optimal)
    worst = np.unravel_index(excess.argmax(), excess.shape)
    return Verdict(len(lists), float(excess[worst]), float(errors[worst]))
