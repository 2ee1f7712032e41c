"""A Gymnasium environment of one's own, with a vector for a reward: train on it, then steer.

    python shop.py

Any environment like it can be trained on: a `Discrete` action space and a `reward_space`.
"""

import argparse

import gymnasium
import numpy as np

import windvane


class Shop(gymnasium.Env):
    """Sell now for money, or wait for goodwill; of either the next is worth less."""

    observation_space = gymnasium.spaces.Box(0, 8, (2,), np.float32)  # sold, waited
    action_space = gymnasium.spaces.Discrete(2)
    reward_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    objective_names = ("money", "goodwill")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.done = np.zeros(2, np.float32)
        return self.done.copy(), {}

    def step(self, action):
        reward = np.zeros(2, np.float32)
        reward[action] = 0.7 ** self.done[action]
        self.done[action] += 1
        return self.done.copy(), reward, self.done.sum() == 8, False, {}


def day(policy, weights):
    """How often the policy sells on one day with these weights."""
    env = Shop()
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        observation, _, over, _, _ = env.step(policy.act(observation, weights))
    return int(observation[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8_000)
    steps = parser.parse_args().steps
    result = windvane.train(
        Shop(), "cn", schedule="random", steps=steps, epsilon_steps=steps // 2, width=32, gamma=1.0
    )
    policy = result.policies[0]
    for weights in ([0.9, 0.1], [0.5, 0.5], [0.1, 0.9]):
        print(f"weights {weights}: sells {day(policy, weights)} of 8 times")
    policy.save("shop.safetensors")


if __name__ == "__main__":
    main()
