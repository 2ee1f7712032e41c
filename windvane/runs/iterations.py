"""What agents do on the host between chunks: evaluate themselves, and choose weights."""

from typing import Any

import numpy as np
from jaxtyping import Float

from windvane.agents.core import Evaluate
from windvane.envs.environment import Environment
from windvane.evaluation import evaluate
from windvane.policy import Policy
from windvane.training.build import Training
from windvane.training.config import TrainConfig
from windvane.training.session import Session


def iterate_agent(training: Training, session: Session, start: int, stop: int) -> None:
    """Call the agent of every run if its iteration ended between two steps; the last is left out,
    since no training follows.
    """
    agent, config = training.learner.agent, training.config
    every = agent.iteration_interval
    if every is None or start // every == stop // every or stop == config.steps:
        return
    for run, one in enumerate(config.runs):
        session.adopt(run, agent.iterate(session.networks(run), _evaluator(training, one)))


def _evaluator(training: Training, config: TrainConfig) -> Evaluate:
    """Greedy episodes of one run, the same at every iteration."""
    learner, seed = training.learner, config.seed_numbers[0]

    def values(
        network: Any, weights: Float[np.ndarray, "n objectives"], episodes: int
    ) -> Float[np.ndarray, "n objectives"]:
        policy = Policy(learner.spec, learner.agent, network, config, seed, world=training.world)
        number, rows = len(weights), weights
        if isinstance(training.world, Environment):
            # Every number of episodes is compiled anew, so there are powers of two alone.
            padding = np.repeat(weights[-1:], (1 << (number - 1).bit_length()) - number, axis=0)
            rows = np.concatenate([weights, padding])
        played = evaluate(policy, rows, episodes=episodes, seed=seed, oracle=False)
        return played.returns.mean(1)[:number]

    return values
