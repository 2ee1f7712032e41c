"""A heat pump whose electricity price moves: train one policy for all prices, then follow them.

The environment is plain Gymnasium with a vector reward: comfort, and energy used. How much energy
counts is a weight, so the policy needs no training when the tariff changes.
"""

import argparse
from pathlib import Path

import gymnasium
import matplotlib
import numpy as np

import windvane
from windvane import plots

matplotlib.use("Agg")
POWER = (0.0, 1.5, 3.0)
"""Kilowatts of each action: off, low, high."""


class Heating(gymnasium.Env):
    """A house for one day in quarters of an hour; it is cold outside, and coldest at night."""

    observation_space = gymnasium.spaces.Box(
        np.float32([5, -10, -1, -1]), np.float32([30, 15, 1, 1])
    )
    action_space = gymnasium.spaces.Discrete(len(POWER))
    reward_space = gymnasium.spaces.Box(-np.inf, 0, (2,), np.float32)
    objective_names = ("comfort", "energy")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.inside = 0, self.np_random.uniform(15, 23)
        self.cold = self.np_random.uniform(-3, 3)
        return self._observe(), {}

    def step(self, action):
        self.time += 1
        self.inside += 0.06 * (self._outside() - self.inside) + 0.45 * POWER[action]
        comfort, energy = -abs(self.inside - 21) / 10, -POWER[action] / 4
        reward = np.asarray([comfort, energy], np.float32)
        return self._observe(), reward, False, self.time >= 96, {}

    def _outside(self):
        return 3 + self.cold - 4 * np.cos(2 * np.pi * (self.time / 96 - 0.1))

    def _observe(self):
        angle = 2 * np.pi * self.time / 96
        seen = [self.inside, self._outside(), np.sin(angle), np.cos(angle)]
        return np.clip(np.float32(seen), self.observation_space.low, self.observation_space.high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--out", type=Path, default=Path("out/tariff.png"))
    arguments = parser.parse_args()
    # The weights change every day; with a gamma of 0.9 the next few hours count.
    result = windvane.train(
        Heating(), "cn", steps=arguments.steps, schedule="sparse", schedule_args={"every": 96},
        gamma=0.9, reward_scale=0.5, width=64, learning_rate=0.002, target_interval=300,
        epsilon_steps=arguments.steps // 2,
    )  # fmt: skip
    policy, env = result.policies[0], Heating()
    hours, inside, power, price = [], [], [], []
    observation, _ = env.reset(seed=7)
    for quarter in range(96):
        expensive = 0.25 + 0.35 * (32 <= quarter < 48) + 0.35 * (68 <= quarter < 84)
        action = policy.act(observation, [1 - expensive, expensive])
        observation, *_ = env.step(action)
        hours.append(quarter / 4)
        inside.append(env.inside)
        power.append(POWER[action])
        price.append(expensive)
    plots.save(draw(hours, inside, power, price), arguments.out)
    peak = np.asarray(price) > 0.5
    print(f"mean power {np.mean(np.asarray(power)[peak]):.2f} kW while energy is expensive,")
    print(f"           {np.mean(np.asarray(power)[~peak]):.2f} kW otherwise; see {arguments.out}")


def draw(hours, inside, power, price):
    figure = matplotlib.figure.Figure(figsize=(7, 5))
    axes = figure.subplots(3, sharex=True)
    lines = {"weight of energy": price, "kW": power, "°C": inside}
    for one, (label, values) in zip(axes, lines.items(), strict=True):
        one.step(hours, values, where="post")
        one.set_ylabel(label)
    axes[-1].set_xlabel("hour")
    return figure


if __name__ == "__main__":
    main()
