"""A policy trained in advance and then frozen, under the paper's weight changes on Minecart.

    python -m benchmarks.frozen POLICIES [POLICIES ...] --out results/frozen.md

POLICIES are files of policies, folders of them, or run folders. Plays greedy episodes for 1,000,000
steps under sparse and under regular changes, with the weights that a training run of the same seed
meets; seed k takes policy k modulo the number of policies. Since a frozen policy forgets nothing
and learns nothing, episodes are played in parallel: their weights depend on their number (regular)
or on the steps before them (sparse).
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import policies as saved
from benchmarks.replay import table
from windvane.evaluation import _play, confidence, optimal_value_fn
from windvane.learning.learner import weights_key
from windvane.policy import Policy
from windvane.schedules import RegularChanges, SparseChanges

STEPS, EVERY, LANES = 1_000_000, 50_000, 1024
CN_DER = {"sparse": "0.119 / 0.080", "regular": "0.126 / 0.070"}
"""CN + DER in results/paper: while it learns, from pixels."""


class Player:
    """Greedy episodes of one policy, as many as there are weight vectors, in lanes."""

    def __init__(self, policy: Policy, seed: int):
        self.policy, self._key, self._calls = policy, jax.random.key(seed), 0
        config = policy.config
        self._gamma = jnp.asarray(config.gamma, jnp.float32)
        self._best = optimal_value_fn(policy.world, config.gamma, config.reward_scale)

    def play(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lengths and regrets of one episode for each row of weights, at most `LANES`."""
        self._calls += 1
        keys = jax.random.split(jax.random.fold_in(self._key, self._calls), LANES)
        rows = np.resize(weights, (LANES, weights.shape[1])).astype(np.float32)
        policy = self.policy
        found = _play(
            policy.env, policy.agent, policy.network, jnp.asarray(rows), self._gamma, keys
        )
        number = len(weights)
        returns = np.asarray(found.returns, float)[:number] * policy.config.reward_scale
        regrets = self._best(weights) - (weights * returns).sum(-1)
        return np.asarray(found.length)[:number], regrets


def regular(player: Player, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps at which episodes ended, and their regrets."""
    schedule, key = RegularChanges(3), weights_key(jax.random.key(seed))
    weights_of = jax.jit(jax.vmap(lambda episode: schedule.weights(key, episode, 0)))
    ends, regrets, step, episode = [], [], 0, 0
    while step < STEPS:
        rows = np.asarray(weights_of(episode + jnp.arange(LANES)), float)
        lengths, found = player.play(rows)
        ends.append(step + np.cumsum(lengths))
        regrets.append(found)
        step, episode = int(ends[-1][-1]), episode + LANES
    return np.concatenate(ends), np.concatenate(regrets)


def sparse(player: Player, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same; a change that falls due within an episode waits for the next."""
    schedule, key = SparseChanges(3, EVERY), weights_key(jax.random.key(seed))
    ends, regrets, step = [], [], 0
    while step < STEPS:
        weights = np.asarray(schedule.weights(key, 0, step), float)
        lengths, found = player.play(np.tile(weights, (LANES, 1)))
        after = step + np.cumsum(lengths)
        due = (step // EVERY + 1) * EVERY
        kept = int(np.searchsorted(after, due)) + 1  # the one that crosses it is the last
        ends.append(after[:kept])
        regrets.append(found[:kept])
        step = int(ends[-1][-1])
    return np.concatenate(ends), np.concatenate(regrets)


def means(ends: np.ndarray, regrets: np.ndarray) -> tuple[float, float]:
    """Mean regret of all episodes, and of those in the last quarter of the steps."""
    within = ends <= STEPS
    late = within & (ends > 0.75 * STEPS)
    return float(regrets[within].mean()), float(regrets[late].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("policies", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/frozen.md"))
    arguments = parser.parse_args()
    policies = saved.load(arguments.policies)
    lines: list[Any] = []
    for name, play in (("sparse", sparse), ("regular", regular)):
        found = []
        for seed in range(arguments.seeds):
            found.append(means(*play(Player(policies[seed % len(policies)], seed), seed)))
            print(name, seed, *(f"{value:.4f}" for value in found[-1]), flush=True)
        columns = np.asarray(found).T
        shown = [f"{c.mean():.4f} ± {confidence(c):.4f}" for c in columns]
        lines.append([name, *shown, f"{columns[0].max():.4f}", CN_DER[name]])
    config = policies[0].config
    heads = ("changes", "all episodes", "last quarter", "worst seed", "CN + DER, learning")
    page = TITLE.format(
        policies=len(policies), seeds=arguments.seeds, steps=config.steps, env=config.env,
        observation=config.observation, agent=config.agent,
    )  # fmt: skip
    arguments.out.write_text(f"{page}\n\n{table(heads, lines)}\n")
    print(f"written: {arguments.out}")


TITLE = """\
# A policy trained in advance, frozen, under changing weights

`python -m benchmarks.frozen POLICIES`. {policies} policies of the agent `{agent}` ({env}, \
{observation}, {steps:,} steps each), frozen and greedy, for 1,000,000 steps under the paper's \
weight changes; {seeds} seeds of the weights, means over episodes with 95% intervals (Student) \
that say nothing of policies other than these. Beside them CN + DER while it learns (overall / \
last quarter, from results/paper, on pixels). This compares no agents: the frozen policies have \
seen many times as many steps before the first of these, in a simulator of the very world they are \
judged in, and do not explore. It says what training in advance is worth."""


if __name__ == "__main__":
    main()
