"""How good a trained policy is for given weights: greedy episodes, their returns and regret."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy import stats

from windvane.errors import InputError, require_positive_int
from windvane.oracle import coverage_set, rollout_episodes
from windvane.policy import Policy
from windvane.weights import check_weights


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one policy for fixed weights; returns are discounted and scaled as in training.

    `optimal` and `regrets` are not numbers where no oracle knows the problem.
    """

    weights: Float[np.ndarray, " objectives"]
    returns: Float[np.ndarray, "episodes objectives"]
    lengths: np.ndarray
    optimal: float

    @property
    def regrets(self) -> Float[np.ndarray, " episodes"]:
        """The optimal value less what each episode earned."""
        return self.optimal - self.returns @ self.weights


def evaluate(policy: Policy, weights: object, episodes: int = 100, seed: int = 0) -> Evaluation:
    """Play greedy episodes side by side."""
    require_positive_int("the number of episodes", episodes)
    vector = check_weights(weights, policy.env.num_objectives)
    gamma, scale = policy.config.gamma, policy.config.reward_scale
    played = rollout_episodes(
        policy.env, policy.plan(vector), gamma, jax.random.key(seed), episodes
    )
    try:
        optimal = float((coverage_set(policy.env, gamma).values @ vector).max()) * scale
    except InputError:
        optimal = float("nan")
    returns = np.asarray(played.returns, float) * scale
    return Evaluation(vector, returns, np.asarray(played.length), optimal)


def confidence(values: Float[np.ndarray, " n"], level: float = 0.95) -> float:
    """Half the width of Student's confidence interval of the mean; of one value it is not known."""
    if len(values) < 2:
        return float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(stats.t.ppf((1 + level) / 2, len(values) - 1) * error)
