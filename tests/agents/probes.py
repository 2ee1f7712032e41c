"""Five small problems whose values are known by hand, each for one way to be wrong.

All are tables of one size, so that one compiled program trains an agent on any of them.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from windvane.envs.environment import Environment

GAMMA = 0.5
STATES, ACTIONS, OBJECTIVES = 2, 2, 2


class Probe(Environment[Any]):
    """Rewards, their standard deviations, and where steps lead; below 0 they end the episode."""

    rewards: Float[Array, "states actions objectives"]
    spread: Float[Array, ""]
    following: Int[Array, "states actions"]

    action_names = ("first", "second")
    objective_names = ("one", "other")
    feature_bounds = np.zeros(STATES, np.float32), np.ones(STATES, np.float32)
    time_limit = 3

    def __init__(self, rewards: Any, following: Any, spread: float = 0.0):
        self.rewards = jnp.asarray(rewards, jnp.float32)
        self.following = jnp.asarray(following, jnp.int32)
        self.spread = jnp.asarray(spread, jnp.float32)

    def reset(self, key: Key[Array, ""]) -> Int[Array, ""]:
        del key
        return jnp.zeros((), jnp.int32)

    def step(
        self, state: Int[Array, ""], action: Int[Array, ""], key: Key[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " objectives"], Bool[Array, ""]]:
        noise = self.spread * jax.random.normal(key, (OBJECTIVES,))
        following = self.following[state, action]
        return jnp.maximum(following, 0), self.rewards[state, action] + noise, following < 0

    def features(self, state: Int[Array, ""]) -> Float[Array, " states"]:
        return jax.nn.one_hot(state, STATES)


NOTHING = [[0, 0], [0, 0]]
END = [-1, -1]

ONE_STEP = Probe([[[1, 0.5], [0.5, -0.5]], NOTHING], [END, END])
"""A value is a reward."""

TWO_STEPS = Probe([NOTHING, [[1, 0.5], [0.5, -0.5]]], [[1, 1], END])
"""A reward one step ahead is worth half."""

TRADE_OFF = Probe([NOTHING, [[1, 0], [0, 1]]], [[1, 1], END])
"""What is best, and so what the first step is worth, depends on the weights."""

CUT = Probe([[[0.5, 0.25], [0.5, 0.25]], NOTHING], [[0, -1], END])
"""One action goes on for ever, but for the time limit; the other ends it, for the same reward."""

NOISE = Probe([[[1, 0.5], [0.5, 0]], NOTHING], [END, END], spread=0.1)
"""Rewards vary around their mean."""
