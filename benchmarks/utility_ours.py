"""Windvane's contenders of `benchmarks.time_to_utility`."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from benchmarks.host import settings as cn_settings
from benchmarks.utility_games import FEW, GAMES, WEIGHTS, Act
from benchmarks.utility_looks import Looks
from windvane.runs.iterations import iterate_agent
from windvane.runs.runner import chunks
from windvane.training.build import Training, build
from windvane.training.config import TrainConfig

FAST: dict[str, dict[str, Any]] = {
    # Native environments with the observations and rewards of MO-Gymnasium's: 256 copies.
    "minecart-v0": {"preset": "fast-minecart", "chunk": 2**16},
    "deep-sea-treasure-v0": {
        "preset": "fast-dst", "env_args": {"map": "convex"}, "gamma": 0.99, "reward_scale": 0.05,
        "steps": 2**21, "epsilon_steps": 1_000_000, "chunk": 2**15,
        "agent_args": {"minibatches": 32, "learning_rate_end": 0.0002},
    },
    "four-room-v0": {
        "preset": "fast", "num_envs": 16, "steps": 2**21, "epsilon_steps": 1_400_000,
        "epsilon_end": 0.02, "agent_args": {"minibatches": 4, "td_lambda": 0.85},
        "chunk": 2**12, "gamma": 0.99,
    },
    "fruit-tree-v0": {
        "preset": "fast", "num_envs": 16, "steps": 2**20, "epsilon_steps": 500_000,
        "epsilon_end": 0.02, "width": 256, "learning_rate": 2e-3, "one_hot": 64,
        "chunk": 2**12, "gamma": 0.99,
    },
}  # fmt: skip
"""Chosen in short trials on seeds from 10 on."""
CN_STEPS = {
    "minecart-v0": 300_000, "deep-sea-treasure-v0": 60_000, "four-room-v0": 20_000,
    "fruit-tree-v0": 40_000,
}  # fmt: skip
"""As in `make bench-host`, which does not have the fruit tree."""
CHUNK = 250


def configure(env: str, agent: str, seed: int, changes: dict[str, Any]) -> TrainConfig:
    """The settings of a contender."""
    seeds, gamma = (seed,), GAMES[env].gamma
    if agent == "fast":
        chosen = {"env": f"mo:{env}"} | FAST[env]
        preset = chosen.pop("preset")
        if preset != "fast":
            del chosen["env"]
        return TrainConfig.preset(preset, **(chosen | {"seeds": seeds} | changes))
    if agent == "cn-der":
        steps = changes.get("steps", CN_STEPS[env])
        chosen = cn_settings(f"mo:{env}", steps) | {"steps": steps, "agent": "cn", "replay": "der"}
        chosen |= {"gamma": gamma, "chunk": CHUNK, "evaluate_every": None}
        return TrainConfig.for_env(f"mo:{env}", **(chosen | {"seeds": seeds} | changes))
    chosen = {"env": f"mo:{env}", "gamma": gamma, "chunk": CHUNK, "seeds": seeds}
    return TrainConfig.preset(agent, **(chosen | changes))


def greedy(training: Training) -> Any:
    """A function of the network of a moment that gives its greedy actions, compiled once."""
    agent, spec = training.learner.agent, training.spec

    @eqx.filter_jit
    def program(network: Any, observations: Any, weights: Any) -> Any:
        return jax.vmap(lambda o, w: agent.act(network, o, w))(observations, weights)

    def of(network: Any) -> Act:
        def act(observations: np.ndarray, weights: np.ndarray) -> np.ndarray:
            number = len(weights)
            size = FEW if number <= FEW else WEIGHTS  # every size is compiled anew
            seen = np.zeros((size, *spec.observation_shape), spec.frame.dtype)
            seen[:number] = observations.reshape(number, *spec.observation_shape)
            vectors = np.zeros((size, spec.num_objectives), np.float32)
            vectors[:number] = weights
            return np.asarray(program(network, seen, vectors))[:number]

        return act

    return of


def train(looks: Looks, agent: str, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Train to the end, or until the time is over."""
    config = configure(looks.env, agent, seed, changes).resolved()
    training = build(config)
    session, act = training.session(), greedy(training)

    def compiled(event: str, seconds: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            looks.clock.compiled(seconds)

    jax.monitoring.register_event_duration_secs_listener(compiled)
    looks.clock.start()
    session.begin(None, 0)
    step = 0
    for piece in chunks(config):
        if piece.stop == piece.start:
            continue
        session.advance(piece.start, piece.stop, piece.learning, lambda: looks.over)
        if looks.over and piece.stop < config.steps:
            break
        step = piece.stop
        iterate_agent(training, session, piece.start, step)
        if looks.due and step < config.steps:
            looks.look(act(session.policy_network(0)), step)
    network = session.policy_network(0)
    looks.look(act(network), step, "training" if step == config.steps else "minutes")
    session.close()
    return config.to_json()
