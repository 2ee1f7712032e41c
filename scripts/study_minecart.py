# ruff: noqa: E501 (the lines of the report are as long as they are)
"""What regrets on Minecart are made of (`make study-minecart`).

The paper does not say how its optimum was found. What runs come to against the one that the
released program can compute follows from the weights they met, and is computed. What the last
exploration costs is measured: an agent is trained, then plays with it and without. MO is trained
with what the released program does differently. All from features, so that two cores are enough
for it, in an hour; interruptible and resumable.
"""

import argparse
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from rich.console import Console

from scripts.shared import largest, pair, printed, trained
from windvane.envs.minecart import Minecart
from windvane.envs.plans import EpisodeResult, Plan, rollout_episode
from windvane.experiments.paper.grids import Grid
from windvane.experiments.report.markdown import pipes
from windvane.experiments.report.summarise import summarise_run
from windvane.experiments.report.summary import RunSummary
from windvane.experiments.report.summary_files import read_summaries
from windvane.experiments.report.tables import comparable
from windvane.experiments.runs.provenance import device
from windvane.experiments.runs.store import read_run
from windvane.learning.learner import weights_key
from windvane.oracle import coverage_set
from windvane.policy import Policy, PolicyPlan
from windvane.runs.result import Result
from windvane.runs.runner import CONFIG, resume, train
from windvane.training.build import build
from windvane.training.config import TrainConfig
from windvane.weights import sample_weights

PAPER = TrainConfig.preset("paper-minecart")
AGENT = TrainConfig.preset(
    "paper-minecart", observation="features", width=256, schedule="regular", seeds=2
)
"""CN with DER, as the paper has it but for what it sees and how wide its network is."""
EPISODES = 5_000
LONG = 100
"""Steps that only an episode takes that is going in circles."""
GRID = Grid.of("study", "paper-minecart", ("mo",), ("standard",), ("regular",))
SHORT = {"observation": "features", "width": 256, "steps": 200_000}
SEEDS = 3
COPIED, UNCLIPPED = {"target_interval": 37}, {"clip_norm": 1e9}
VARIANTS: dict[str, dict[str, Any]] = {
    "the preset": {},
    "target network copied every 37 gradient steps": COPIED,
    "gradients not clipped": UNCLIPPED,
    "both": COPIED | UNCLIPPED,
}


def main() -> None:
    """Train what is missing and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--training", type=Path, default=Path("out/study-minecart"))
    parser.add_argument("--store", type=Path, default=Path("out/study-minecart-mo"))
    parser.add_argument("--summary", type=Path, default=Path("results/paper"))
    parser.add_argument("--out", type=Path, default=Path("results/minecart-study.md"))
    arguments = parser.parse_args()
    console, folder = Console(), arguments.training
    begun = (folder / CONFIG).exists()
    done = resume(folder, console=console) if begun else train(AGENT, out=folder, console=console)
    paper = [run for run in read_summaries(arguments.summary) if run.config.env == "minecart"]
    summaries = comparable(paper)
    levels = {
        share: [exploring(policy, share) for policy in done.policies]
        for share in (0.0, PAPER.epsilon_end)
    }
    variants = {}
    for name, changes in VARIANTS.items():
        console.rule(name)
        paths = trained(GRID, arguments.store, SEEDS, console, **SHORT, **changes)
        variants[name] = np.asarray([measure(path) for path in paths])
    arguments.out.write_text(_report(summaries, done, levels, variants))
    console.print(f"written: {arguments.out}")


def measure(path: Path) -> tuple[float, float, float]:
    """Of a run: regret overall and in the last quarter, and the largest loss."""
    run = read_run(path)
    summary = summarise_run(*run)
    return summary.overall, summary.last, largest(run[1]["loss"])


def peer_optima() -> Float[np.ndarray, "policies objectives"]:
    """The coverage set of MO-Gymnasium's Minecart, which has it from the released program."""
    from mo_gymnasium.envs.minecart.minecart import Minecart as Peer

    env: Any = Peer()
    return np.asarray(env.convex_coverage_set(PAPER.gamma), float)


def met_weights(config: TrainConfig, episodes: int) -> Float[np.ndarray, "moments objectives"]:
    """Weights that a run meets: evenly spread over its steps where those decide (sparse changes),
    else in its episodes.
    """
    number = np.arange(episodes)
    steps = number * config.steps // episodes
    schedule: Any = build(config).schedule
    key = weights_key(jax.random.key(config.seed_numbers[0]))
    weights = jax.jit(jax.vmap(schedule.weights, (None, 0, 0)))
    return np.asarray(weights(key, jnp.asarray(number), jnp.asarray(steps)), float)


def gaps(run: RunSummary, ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """How much lower the regret of a run is against `theirs` than against `ours`: overall, and in
    the last quarter.
    """
    weights = met_weights(run.config, run.episodes)
    lower = (weights @ ours.T).max(1) - (weights @ theirs.T).max(1)
    return float(lower.mean()), float(lower[len(lower) * 3 // 4 :].mean())


class Exploring(Plan):
    """A policy that takes any action now and then."""

    policy: PolicyPlan
    share: Float[Array, ""]
    key: Key[Array, ""]

    def start(self) -> Key[Array, ""]:
        """The key of the first step."""
        return self.key

    def act(self, memory: Key[Array, ""], state: Any) -> tuple[Int[Array, ""], Key[Array, ""]]:
        """The best action or, by chance, any."""
        chance, which, later = jax.random.split(memory, 3)
        anything = jax.random.randint(which, (), 0, self.policy.env.num_actions)
        best, _ = self.policy.act(None, state)
        return jnp.where(jax.random.uniform(chance) < self.share, anything, best), later


def exploring(policy: Policy, share: float, episodes: int = EPISODES) -> tuple[float, float]:
    """A policy some of whose actions are random: its mean regret over all weights, and how many of
    its episodes are long.
    """
    keys = jax.random.split(jax.random.key(0), (3, episodes))
    weights = jax.vmap(sample_weights, (0, None))(keys[0], policy.env.num_objectives)
    plan, gamma = policy.plan(weights[0]), policy.config.gamma
    played = _play_all(plan, jnp.asarray(share), jnp.asarray(gamma), weights, keys[1], keys[2])
    optimal = coverage_set(policy.env, gamma).optimal_value(weights)
    regrets = optimal - (played.returns * weights).sum(1)
    return float(regrets.mean()), float((played.length > LONG).mean())


@eqx.filter_jit
def _play_all(
    plan: PolicyPlan,
    share: Float[Array, ""],
    gamma: Float[Array, ""],
    weights: Float[Array, "n objectives"],
    chances: Key[Array, " n"],
    episodes: Key[Array, " n"],
) -> EpisodeResult:
    """An episode for each of the weights."""

    def one(weights: Array, chance: Array, episode: Array) -> EpisodeResult:
        greedy = eqx.tree_at(lambda p: p.weights, plan, weights)
        return rollout_episode(plan.env, Exploring(greedy, share, chance), gamma, episode)

    return jax.vmap(one)(weights, chances, episodes)


def _report(
    summaries: Sequence[RunSummary],
    agent: Result,
    levels: dict[float, list[tuple[float, float]]],
    variants: dict[str, np.ndarray],
) -> str:
    ours = np.asarray(coverage_set(Minecart(), PAPER.gamma).values, float)
    theirs = peer_optima()
    weights = np.random.default_rng(0).dirichlet(np.ones(3), 100_000)
    mine, peers = (weights @ ours.T).max(1), (weights @ theirs.T).max(1)
    lower = mine - peers
    cells = [_cell(list(runs), ours, theirs) for _, runs in groupby(summaries, lambda d: d.cell)]
    plays = [
        [f"{share:.0%} of the actions random", *(f"{x:.4f}, {y:.1%}" for x, y in each)]
        for share, each in levels.items()
    ]
    seeds = [f"seed {seed}" for seed in AGENT.seed_numbers]
    late = agent.records["length"][agent.records["step"] > AGENT.steps * 3 // 4]
    changed = [
        [
            name,
            pair(runs[:, :2].mean(0)),
            ", ".join(f"{x:.3f}" for x in runs[:, 1]),
            f"{runs[:, 2].max():.2f}",
        ]
        for name, runs in variants.items()
    ]
    return f"""# What regrets on Minecart are made of

`make study-minecart` on {device()}. What it says about the paper's table is in
[docs/differences.md](../docs/differences.md).

## Against which optimum

The paper does not say how it found the optimal values that regret is measured against. The released program can compute a coverage set,
which it calls approximate, and MO-Gymnasium has it from there (`convex_coverage_set`).

| over evenly drawn weights | |
|---|---|
| our optimum, which plans attain that can be played, in the mean | {mine.mean():.4f} |
| MO-Gymnasium's | {peers.mean():.4f} |
| ours is higher by | {lower.mean():.4f}, between {lower.min():.4f} and {lower.max():.4f} |
| weights for which theirs is more than can be had | {(lower < 0).mean():.0%} |

Mean regret of all episodes / of the last quarter, with the weights that each run met (sparse changes: every step counts the same), on
the seeds that all cells of a schedule have:

{pipes(["", "seeds", "against our optimum", "against MO-Gymnasium's", "the paper's"], cells)}

## What exploration costs

In the paper and here some actions are random to the end, {PAPER.epsilon_end:.0%} of them, and regret is that of the episodes so played.
Trained here: CN with DER, regular changes, from features, {AGENT.width} wide, {AGENT.steps:,} steps; its regret in the last quarter is
{" and ".join(f"{x:.4f}" for x in agent.regret.last_quarter)}. The networks that the runs ended with, played {EPISODES:,} times for evenly drawn weights; mean regret, and how
many episodes take more than {LONG} steps:

{pipes(["", *seeds], plays)}

Where few episodes are that long, the difference between the lines is the price of exploration. A network that is frozen at one moment
may go in circles for some weights. As long as training goes on it learns out of them: in the last quarter {(late > LONG).mean():.1%} of the
episodes took that long.

## MO as the released program trains it

Its command line copies the target network every 150 steps, which are 37 gradient steps, and does not clip gradients. MO with standard
replay, regular changes, from features, {SHORT["width"]} wide, {SHORT["steps"]:,} steps, {SEEDS} seeds; mean regret of all episodes / of the last quarter:

{pipes(["", "regret", "the runs' last quarters", "largest loss"], changed)}
"""


def _cell(runs: Sequence[RunSummary], ours: np.ndarray, theirs: np.ndarray) -> list[str]:
    """A line of the table: its name, how many runs, and the three regrets."""
    cell = runs[0].cell
    both = np.asarray([(run.overall, run.last) for run in runs])
    lower = both - [gaps(run, ours, theirs) for run in runs]
    paper = printed("minecart", cell)
    return ["-".join(cell), str(len(runs)), *map(pair, (both.mean(0), lower.mean(0), paper))]


if __name__ == "__main__":
    main()
