"""Every agent with every replay rule in eight environments of MO-Gymnasium."""

from itertools import product
from typing import Any

import numpy as np

from windvane.agents import AGENTS
from windvane.replay import REPLAYS
from windvane.runs.runner import train

ENVS: dict[str, dict[str, Any]] = {
    "mo:deep-sea-treasure-v0": {},
    "mo:resource-gathering-v0": {},
    "mo:four-room-v0": {"num_envs": 2},
    "mo:fruit-tree-v0": {},  # six objectives
    "mo:minecart-v0": {},
    "mo:minecart-rgb-v0": {"frame_size": 24, "frame_stack": 2},
    "mo:breakable-bottles-v0": {},  # a dictionary of categories
    "mo:mo-mountaincar-v0": {"num_envs": 4},
}
"""Grid worlds, a picture, vectors of numbers and of categories, two to six objectives."""

COMBINATIONS = list(product(AGENTS, REPLAYS, ENVS))


def train_one(agent: str, replay: str, env: str, steps: int = 2_000) -> None:
    """Train for a while; whatever goes wrong is raised."""
    result = train(
        env, agent, replay=replay, steps=steps, width=16, depth=1, batch_size=16, capacity=1_000,
        progress=False, **ENVS[env],
    )  # fmt: skip
    assert not result.failed
    assert np.isfinite(result.records["utility"]).all()
    policy = result.policies[0]
    seen = np.zeros(policy.spec.observation_shape, policy.spec.frame.dtype)
    weights = np.full(policy.spec.num_objectives, 1 / policy.spec.num_objectives)
    assert 0 <= policy.act(seen, weights) < policy.spec.num_actions
