"""Weights that change while an agent trains, and again while it acts.

    python steer_live.py

It trains for half a minute, and then makes one dive.
"""

import argparse
import threading

import gymnasium
import numpy as np

import windvane


def market(live, done):
    """Stands for whoever knows what counts now: new weights twice a second, from a thread."""
    rng = np.random.default_rng(0)
    while not done.wait(0.5):
        live.set(rng.dirichlet([1.0, 1.0]))


def train(steps):
    live, done = windvane.LiveWeights([0.5, 0.5]), threading.Event()
    thread = threading.Thread(target=market, args=(live, done), daemon=True)
    thread.start()
    result = windvane.train(
        "dst", "cn", schedule=live, observation="features", width=64, learning_rate=0.005,
        steps=steps, chunk=100,  # live weights are looked at between chunks
    )  # fmt: skip
    done.set()
    thread.join()
    met = np.unique(result.records["weights_0"])
    print(f"{len(result.records['step']):,} episodes under {len(met)} weight vectors")
    return result.policies[0]


def act(policy):
    """One dive, in the middle of which time becomes expensive."""
    sea = gymnasium.make("windvane/DeepSeaTreasure-v0")
    observation, _ = sea.reset(seed=0)
    for step in range(30):
        weights = [0.9, 0.1] if step < 4 else [0.05, 0.95]
        action = policy.act(observation, weights)
        observation, reward, terminated, _, _ = sea.step(action)
        print(f"treasure {weights[0]:.2f}: action {action}, now at {observation}, reward {reward}")
        if terminated:
            break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40_000)
    act(train(parser.parse_args().steps))


if __name__ == "__main__":
    main()
