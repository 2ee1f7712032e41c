"""What morl-baselines' Envelope reaches on MO-Gymnasium's environments after some steps.

    python -m benchmarks.host_peers --env four-room-v0 --steps 20000 --seed 0 --out FILE.json

Its own `train` trains it, without evaluation and logging, on one thread. Then its greedy policy
plays for each of 100 fixed weight vectors, and returns are discounted as in training. Needs what
`make bench-training` installs, and its Python.
"""

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import mo_gymnasium
import numpy as np
import torch
from morl_baselines.common.evaluation import seed_everything
from morl_baselines.common.weights import equally_spaced_weights
from morl_baselines.multi_policy.envelope.envelope import Envelope

# From examples/envelope_minecart.py of morl-baselines v1.3.0, which trains for 100,000 steps. What
# it leaves out is the class's default, above all prioritised replay and 4 weight vectors a sample.
EXAMPLE: dict[str, Any] = {
    "learning_rate": 3e-4,
    "max_grad_norm": 0.1,
    "batch_size": 64,
    "net_arch": [256] * 4,
    "buffer_size": 2_000_000,
    "initial_epsilon": 1.0,
    "final_epsilon": 0.05,
    "epsilon_decay_steps": 50_000,
    "initial_homotopy_lambda": 0.0,
    "final_homotopy_lambda": 1.0,
    "homotopy_decay_steps": 10_000,
    "learning_starts": 100,
    "envelope": True,
    "gradient_updates": 1,
    "target_net_update_freq": 1_000,
    "tau": 1,
}
EXAMPLE_STEPS = 100_000
# The example's for Minecart. For the others its source names no settings of Envelope, and they get
# the example's, too; 0.99 is in the usage of experiments/benchmark/launch_experiment.py, for Deep
# Sea Treasure, and in the command for benchmarks in its issue 43.
GAMMA = {"minecart-v0": 0.98, "four-room-v0": 0.99, "deep-sea-treasure-v0": 0.99}
# Minecart draws its ore; the others always start and go on in the same way.
EPISODES = {"minecart-v0": 5, "four-room-v0": 1, "deep-sea-treasure-v0": 1}
WEIGHTS = 100
PACKAGES = ("morl-baselines", "mo-gymnasium", "gymnasium", "torch", "numpy")


def settings(name: str, steps: int) -> dict[str, Any]:
    """Arguments of `Envelope`: the example's, those with schedules scaled to `steps`, or none."""
    if name == "default":
        return {}
    if name == "example":
        return EXAMPLE
    schedules = ("epsilon_decay_steps", "homotopy_decay_steps")
    return EXAMPLE | {key: EXAMPLE[key] * steps // EXAMPLE_STEPS for key in schedules}


def trained(env: gymnasium.Env, agent: Envelope, steps: int, seed: int) -> tuple[float, float]:
    """Train for so many steps. Seconds of the clock and of the processor."""
    env.reset(seed=seed)
    env.action_space.seed(seed)
    wall, processor = time.perf_counter(), time.process_time()
    agent.train(total_timesteps=steps)
    return time.perf_counter() - wall, time.process_time() - processor


def played(
    env: gymnasium.Env, agent: Envelope, weights: np.ndarray, episodes: int
) -> tuple[np.ndarray, float, float]:
    """Mean discounted returns for each weight vector, played greedily.

    Also the share of episodes that the time limit ended, and their mean length. Every episode has
    a seed of its own, the same whoever plays.
    """
    returns, truncations, steps = np.zeros(weights.shape), 0, 0
    for index in range(len(weights) * episodes):
        weight = index // episodes
        # MO-Gymnasium's Minecart draws ore from NumPy's global generator, not from its own.
        seed_everything(index)
        observation, _ = env.reset(seed=index)
        discount, terminated, truncated = 1.0, False, False
        while not (terminated or truncated):
            action = agent.eval(observation, weights[weight])
            observation, reward, terminated, truncated, _ = env.step(action)
            returns[weight] += discount * np.asarray(reward) / episodes
            discount *= agent.gamma
            steps += 1
        truncations += int(truncated and not terminated)
    count = len(weights) * episodes
    return returns, truncations / count, steps / count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--env", choices=sorted(GAMMA), required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settings", choices=("example", "scaled", "default"), default="example")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()

    torch.set_num_threads(1)
    env: Any = mo_gymnasium.make(args.env)
    objectives = env.unwrapped.reward_space.shape[0]
    # `train` computes these, though it needs none. They are cached, so it finds them: that takes
    # seconds, which are no part of its time.
    equally_spaced_weights(objectives, n=100)
    seed_everything(args.seed)
    chosen = settings(args.settings, args.steps)
    agent = Envelope(env, gamma=GAMMA[args.env], log=False, seed=args.seed, device="cpu", **chosen)
    seconds, processor = trained(env, agent, args.steps, args.seed)
    updates = max(0, args.steps - agent.learning_starts + 1) * agent.gradient_updates

    weights = np.random.default_rng(0).dirichlet(np.ones(objectives), WEIGHTS)
    began = time.perf_counter()
    returns, truncated, length = played(
        mo_gymnasium.make(args.env), agent, weights, EPISODES[args.env]
    )
    utilities = (weights * returns).sum(axis=1)
    report = {
        "environment": args.env,
        "steps": agent.global_step,
        "seed": args.seed,
        "expected_utility": float(utilities.mean()),
        "worst_utility": float(utilities.min()),
        "truncated_share": truncated,
        "mean_episode_steps": length,
        "evaluation_episodes": WEIGHTS * EPISODES[args.env],
        "training_seconds": seconds,
        "training_processor_seconds": processor,
        "updates": updates,
        "updates_per_second": updates / seconds,
        "evaluation_seconds": time.perf_counter() - began,
        "training_episodes": agent.num_episodes,
        "epsilon_at_the_end": agent.epsilon,
        "homotopy_lambda_at_the_end": agent.homotopy_lambda,
        "settings": args.settings,
        # `get_config` leaves these two out.
        "hyperparameters": agent.get_config()
        | {"final_epsilon": agent.final_epsilon, "per_alpha": agent.per_alpha},
        "utilities": utilities.tolist(),
        "returns": returns.tolist(),
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()},
        "torch_threads": torch.get_num_threads(),
        "load_average": os.getloadavg(),
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(args.env, args.seed, report["expected_utility"], report["updates_per_second"])


if __name__ == "__main__":
    main()
