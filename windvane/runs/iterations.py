"""What agents do on the host between chunks: evaluate themselves, and choose weights."""

from typing import Any

import numpy as np
from jaxtyping import Float

from windvane.agents.core import Evaluate
from windvane.envs.environment import Environment
from windvane.evaluation import evaluate
from windvane.policy import trained_policy
from windvane.training.build import Training
from windvane.training.session import Session


def iterate_agent(training: Training, session: Session, start: int, stop: int) -> None:
    """Call the agent of every run if its iteration ended between two steps; the last is left out,
    since no training follows.
    """
    agent, config = training.learner.agent, training.config
    every = agent.iteration_interval
    if every is None or start // every == stop // every or stop == config.steps:
        return
    for run in range(len(config.runs)):
        session.adopt(run, agent.iterate(session.networks(run), _evaluator(training, run)))


def _evaluator(training: Training, run: int) -> Evaluate:
    """Greedy episodes of one run, the same at every iteration."""

    def values(
        network: Any, weights: Float[np.ndarray, "n objectives"], episodes: int
    ) -> Float[np.ndarray, "n objectives"]:
        policy = trained_policy(training, network, run)
        number, rows = len(weights), weights
        if isinstance(training.world, Environment):
            # Every number of episodes is compiled anew, so there are powers of two alone.
            padding = np.repeat(weights[-1:], (1 << (number - 1).bit_length()) - number, axis=0)
            rows = np.concatenate([weights, padding])
        played = evaluate(policy, rows, episodes=episodes, seed=policy.seed, oracle=False)
        return played.returns.mean(1)[:number]

    return values
