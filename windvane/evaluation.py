"""How good a trained policy is: greedy episodes over weights, their returns, utility and regret.

All returns here are discounted by the policy's gamma and scaled by its `reward_scale`, as in
training. `optimal_value_fn` is the one place that says what is optimal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key
from scipy import stats

from windvane.agents.core import Agent
from windvane.envs.environment import Environment
from windvane.envs.plans import EpisodeResult, rollout_episode
from windvane.envs.resolve import GymnasiumEnv, World
from windvane.errors import InputError, is_number, require_int, require_positive_int, shown
from windvane.oracle import coverage_set
from windvane.policy import Policy, PolicyPlan
from windvane.weights import check_weight_rows, check_weights, simplex_grid

OptimalValue = Callable[[Float[np.ndarray, "n objectives"]], Float[np.ndarray, " n"]]
"""Maps rows of weights to the best discounted, scaled utility; NaN where it is not known."""

GRID_POINTS = 100
"""Approximate number of weight vectors in the default grid."""
LANES = 1024
"""Most episodes of a native environment that are vmapped in one call."""
COPIES = 16
"""Most copies of a Gymnasium environment that are stepped together."""
MAX_STEPS = 10_000
"""Steps after which an episode of a Gymnasium environment without `time_limit` is truncated."""


@dataclass(frozen=True)
class Evaluation:
    """Greedy episodes of one policy, some for each of several weight vectors; returns are
    discounted and scaled.
    """

    weights: Float[np.ndarray, "weights objectives"]
    returns: Float[np.ndarray, "weights episodes objectives"]
    lengths: Int[np.ndarray, "weights episodes"]
    terminated: Bool[np.ndarray, "weights episodes"]
    """Whether an episode ended by itself rather than at a time limit."""
    optimal: Float[np.ndarray, " weights"]
    """The best utility for each weight vector; NaN where it is not known."""

    @property
    def utilities(self) -> Float[np.ndarray, "weights episodes"]:
        """Weights times returns."""
        return (self.returns * self.weights[:, None]).sum(-1)

    @property
    def utility(self) -> Float[np.ndarray, " weights"]:
        """Mean utility for each weight vector; its mean over weights is the expected utility."""
        return self.utilities.mean(1)

    @property
    def regret(self) -> Float[np.ndarray, " weights"]:
        """The optimal utility less the mean one, for each weight vector."""
        return self.optimal - self.utility

    @property
    def never_ending(self) -> Bool[np.ndarray, " weights"]:
        """Weight vectors for which no episode ended by itself."""
        return np.asarray(~self.terminated.any(1))


def default_weights(num_objectives: int) -> Float[np.ndarray, "n objectives"]:
    """About a hundred weight vectors that cover the simplex evenly, corners included."""
    if num_objectives == 1:
        return np.ones((1, 1))
    if num_objectives > 6:
        drawn = np.random.default_rng(0).dirichlet(np.ones(num_objectives), GRID_POINTS)
        return np.concatenate([np.eye(num_objectives), drawn])
    resolution = {2: 100, 3: 12, 4: 6, 5: 4, 6: 3}[num_objectives]
    return simplex_grid(num_objectives, resolution)


def evaluate(
    policy: Policy,
    weights: Any = None,
    *,
    episodes: int = 1,
    seed: int = 0,
    optimal: Any = None,
    oracle: bool = True,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Evaluation:
    """Play greedy episodes for one weight vector or many; by default for a grid over the simplex.

    `optimal` is a coverage set (discounted, unscaled) or a function of weights, for environments
    without an oracle. With `oracle=False`, no other optimum is looked up or computed.
    """
    require_positive_int("the number of episodes", episodes, 1_000_000)
    require_int("the seed", seed, 0, 2**32 - 1)
    rows = _weight_rows(weights, policy.spec.num_objectives)
    if optimal is not None and not callable(optimal):
        optimal = check_values(optimal, policy.spec.num_objectives)
    scale = policy.config.reward_scale
    world = policy.world
    if isinstance(world, Environment):
        played = _play_native(policy, world, rows, episodes, seed, progress)
    else:
        played = _play_host(policy, world, rows, episodes, seed, progress)
    returns, lengths, terminated = played
    best = optimal_value_fn(world, policy.config.gamma, scale, optimal, oracle=oracle)(rows)
    return Evaluation(rows, returns * scale, lengths, terminated, best)


def evaluate_episode(
    policy: Policy,
    weights: Any,
    rewards: Float[np.ndarray, "steps objectives"],
    terminated: bool,
    *,
    optimal: Any = None,
    oracle: bool = True,
) -> Evaluation:
    """Evaluate one episode from the rewards of its steps, which are unscaled; `optimal` and
    `oracle` are as in `evaluate`.
    """
    vector = check_weights(weights, policy.spec.num_objectives)
    gamma, scale = policy.config.gamma, policy.config.reward_scale
    returns = scale * (gamma ** np.arange(len(rewards))[:, None] * rewards).sum(0)
    best = optimal_value_fn(policy.world, gamma, scale, optimal, oracle=oracle)
    return Evaluation(
        vector[None],
        returns[None, None],
        np.full((1, 1), len(rewards)),
        np.full((1, 1), terminated),
        best(vector[None]),
    )


def episode_key(seed: int, episode: int = 0) -> Key[Array, ""]:
    """The key of an episode that `evaluate` plays with a seed in a native environment."""
    return _episode_keys(seed, episode + 1)[episode]


def episode_seed(seed: int, episode: int = 0) -> int:
    """The seed of an episode that `evaluate` plays with a seed in a Gymnasium environment."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0])


def optimal_value_fn(
    world: World,
    gamma: float,
    scale: float,
    given: Any = None,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    *,
    oracle: bool = True,
) -> OptimalValue:
    """The best utility for rows of weights: from given values, Windvane's oracle, or the front that
    an environment reports; NaN where there is none of these.
    """
    if callable(given):
        function: Callable[[np.ndarray], Any] = given
        return lambda weights: (
            scale * np.asarray([_optimum(function, row) for row in weights], float)
        )
    values = given
    if values is None and oracle:
        values = known_values(world, gamma, progress)
    if values is None:
        return _unknown
    scaled = check_values(values) * scale

    def best(weights: Float[np.ndarray, "n objectives"]) -> Float[np.ndarray, " n"]:
        return (weights.astype(float) @ scaled.T).max(-1, initial=-np.inf)

    return best


def known_values(
    world: World, gamma: float, progress: Callable[[str, int, int], None] = lambda *_: None
) -> Float[np.ndarray, "n objectives"] | None:
    """Discounted, unscaled value vectors of a coverage set, where one is known."""
    if isinstance(world, Environment):
        try:
            return np.asarray(coverage_set(world, gamma, progress).values, float)
        except InputError:
            return None
    env = getattr(world.first, "unwrapped", world.first)
    # MO-Gymnasium's front of Minecart is approximate, and trained agents beat it.
    if type(env).__module__.startswith("mo_gymnasium") and "Minecart" in type(env).__name__:
        return None
    for name in ("convex_coverage_set", "pareto_front"):
        front: Any = getattr(env, name, None)
        if front is not None:
            try:
                return check_values([np.asarray(value, float) for value in front(gamma)])
            except Exception:  # an environment's own front may be broken in any way
                return None
    return None


def _optimum(function: Callable[..., Any], weights: Float[np.ndarray, " objectives"]) -> float:
    """The optimal value that a user's function returns."""
    value = function(weights)
    if not (np.ndim(value) == 0 and is_number(np.asarray(value)[()])):
        raise InputError(
            f"the function of optimal values must return a finite number, and for the weights "
            f"{weights.tolist()} it returned {shown(value)}"
        )
    return float(value)


def check_values(
    values: Any, num_objectives: int | None = None
) -> Float[np.ndarray, "n objectives"]:
    """Return value vectors as an array if they are rows of finite numbers, one per objective."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, RecursionError, OverflowError):  # rows of different lengths
        given = np.asarray(None)
    array: Any = given.astype(float) if given.dtype.kind in "fiu" else np.zeros(0)
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise InputError(
            f"optimal values must be rows of finite numbers, one per objective, not {shown(values)}"
        )
    if num_objectives not in (None, array.shape[-1]):
        raise InputError(
            f"optimal values must be of {num_objectives} objectives, and these are of "
            f"{array.shape[-1]}"
        )
    return array


def confidence(values: Float[np.ndarray, " n"], level: float = 0.95) -> float:
    """Half the width of Student's confidence interval of the mean; NaN for a single value."""
    if len(values) < 2:
        return float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(stats.t.ppf((1 + level) / 2, len(values) - 1) * error)


def _unknown(weights: Float[np.ndarray, "n objectives"]) -> Float[np.ndarray, " n"]:
    return np.full(len(weights), np.nan)


def _episode_keys(seed: int, episodes: int) -> Key[Array, " episodes"]:
    """One key per episode; the first keys do not depend on the number of episodes."""
    return jax.random.split(jax.random.key(seed), episodes)


def _weight_rows(weights: Any, num_objectives: int) -> Float[np.ndarray, "n objectives"]:
    if weights is None:
        return default_weights(num_objectives)
    try:
        single = np.ndim(weights) < 2
    except (TypeError, ValueError, RecursionError):  # not an array
        single = True
    if single:
        return check_weights(weights, num_objectives)[None]
    rows = check_weight_rows(weights)
    if rows.shape[1] != num_objectives:
        raise InputError(
            f"weights must be of {num_objectives} objectives, and these are of {rows.shape[1]}"
        )
    return rows


def _play_native(
    policy: Policy, env: Environment[Any], rows: np.ndarray, episodes: int, seed: int,
    progress: Callable[[str, int, int], None],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The same episodes for every weight vector, as many as fit in one call at a time."""
    keys = _episode_keys(seed, episodes)
    lanes = [(row, key) for row in range(len(rows)) for key in range(episodes)]
    size = min(LANES, len(lanes))
    results = []
    for first in range(0, len(lanes), size):
        progress("episodes", first, len(lanes))
        part = lanes[first : first + size]
        padded = part + part[-1:] * (size - len(part))
        vectors = jnp.asarray(rows[[row for row, _ in padded]], jnp.float32)
        chosen = keys[np.asarray([key for _, key in padded])]
        gamma = jnp.asarray(policy.config.gamma, jnp.float32)
        result = _play(env, policy.agent, policy.network, vectors, gamma, chosen)
        count = len(part)
        results.append(jax.tree.map(lambda leaf, n=count: np.asarray(leaf)[:n], result))
    whole = jax.tree.map(lambda *parts: np.concatenate(parts), *results)
    shape = (len(rows), episodes)
    returns = np.asarray(whole.returns, float).reshape(*shape, -1)
    return returns, whole.length.reshape(shape), whole.terminated.reshape(shape)


@eqx.filter_jit
def _play(
    env: Environment[Any], agent: Agent, network: Any, weights: Array, gamma: Array, keys: Any
) -> EpisodeResult:
    def one(vector: Array, key: Any) -> EpisodeResult:
        return rollout_episode(env, PolicyPlan(env, agent, network, vector), gamma, key)

    return jax.vmap(one)(weights, keys)


def _play_host(
    policy: Policy, world: GymnasiumEnv, rows: np.ndarray, episodes: int, seed: int,
    progress: Callable[[str, int, int], None],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    from windvane.envs.host import HostEnvs

    config = policy.config
    lanes = [(row, episode) for row in range(len(rows)) for episode in range(episodes)]
    num_envs = min(COPIES, len(lanes))
    fresh = GymnasiumEnv(world.name, world.make)
    envs = HostEnvs(
        fresh, num_envs, frame_stack=config.frame_stack, frame_size=config.frame_size,
        one_hot=config.one_hot,
        time_limit=config.time_limit or MAX_STEPS,
    )  # fmt: skip
    returns = np.zeros((len(rows), episodes, policy.spec.num_objectives))
    lengths = np.zeros((len(rows), episodes), int)
    terminated = np.zeros((len(rows), episodes), bool)
    try:
        for first in range(0, len(lanes), num_envs):
            progress("episodes", first, len(lanes))
            part = lanes[first : first + num_envs]
            padded = part + part[-1:] * (num_envs - len(part))
            results = _play_group(policy, envs, rows[[row for row, _ in padded]], padded, seed)
            for (row, episode), result in zip(part, results, strict=False):
                returns[row, episode], lengths[row, episode], terminated[row, episode] = result
    finally:
        envs.close()
    return returns, lengths, terminated


def _play_group(
    policy: Policy, envs: Any, weights: np.ndarray, lanes: Sequence[tuple[int, int]], seed: int
) -> list[tuple[np.ndarray, int, bool]]:
    """One episode in each copy; episode k has the same seed for every weight vector."""
    observations = envs.reset([episode_seed(seed, episode) for _, episode in lanes])
    num_envs = len(lanes)
    totals = np.zeros((num_envs, policy.spec.num_objectives))
    lengths, terminated = np.zeros(num_envs, int), np.zeros(num_envs, bool)
    open_lanes = np.ones(num_envs, bool)
    vectors, discount = weights.astype(np.float32), 1.0
    while open_lanes.any():
        step = envs.step(policy.act_many(observations, vectors))
        totals[open_lanes] += discount * step.rewards[open_lanes]
        lengths[open_lanes] += 1
        terminated |= open_lanes & step.terminated
        open_lanes &= ~(step.terminated | step.truncated)
        observations = step.observations
        discount *= policy.config.gamma
    return list(zip(totals, lengths.tolist(), terminated.tolist(), strict=True))
