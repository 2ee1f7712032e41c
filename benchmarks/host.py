"""The host driver on MO-Gymnasium: what it learns, and what a step of it costs.

    python -m benchmarks.host learn --env mo:four-room-v0 --steps 20000 --out FILE.json
    python -m benchmarks.host learn --agent envelope --env mo:minecart-v0 --steps 100000 --out ...
    python -m benchmarks.host speed [--peers] --out FILE.json
    python -m benchmarks.host page    # what results/host holds, as results/host.md

`learn` trains CN + DER, or Envelope with the settings of `benchmarks.host_peers`, and evaluates
greedily: expected utility over the same weights as there, and regret over 1,000 weights where the
optimum is known. `speed` measures
acting and observing without the environment, and whole cycles of four steps and one update.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.replay import table
from windvane.evaluation import evaluate
from windvane.experiments.report import statistics
from windvane.machine import usable_cores
from windvane.runs.runner import train
from windvane.training.build import build
from windvane.training.config import TrainConfig

PEER_WEIGHTS, MANY_WEIGHTS = 100, 1_000
EPISODES = {"mo:minecart-v0": 5}
"""Greedy episodes per weight vector where the environment is random; else one."""
AVERAGED = {"average_decay": 0.999}
SETTINGS: dict[str, dict[str, Any]] = {
    "mo:deep-sea-treasure-v0": AVERAGED | {
        "gamma": 0.98, "reward_scale": 0.05, "epsilon_steps": 20_000, "evaluate_every": 5_000,
        "learning_rate": 0.01, "schedule": "sparse", "schedule_args": {"every": 500}, "one_hot": 0,
    },
    "mo:four-room-v0": AVERAGED | {
        "gamma": 0.99, "update_interval": 1, "target_interval": 1_000, "evaluate_every": 2_500,
        "learning_rate": 0.002, "schedule": "sparse", "schedule_args": {"every": 200},
    },
    # Without layer normalisation values blow up when the target network is copied this often, and
    # what a haul is worth takes some thirty copies to reach the base. Batches of 64 and the paper's
    # exponent of 2 learned in one run of five only.
    "mo:minecart-v0": AVERAGED | {
        "gamma": 0.98, "update_interval": 1, "target_interval": 100, "evaluate_every": 50_000,
        "learning_rate": 0.03, "clip_norm": 10.0, "layer_norm": True, "dueling": False,
        "schedule": "random", "capacity": 100_000, "batch_size": 256, "priority_exponent": 0.6,
    },
}  # fmt: skip
AGENTS = {"cn": "CN + DER", "envelope": "Envelope"}
EXPLORING = {"mo:minecart-v0": 0.4}
"""Share of the steps over which exploration falls; elsewhere a fifth."""


def envelope_settings(steps: int) -> dict[str, Any]:
    """The preset `envelope`, whose 100,000 steps and what hangs on them are scaled to `steps`."""
    return {
        "replay": "standard", "epsilon_steps": steps // 2, "capacity": steps,
        "agent_args": {"distribution": "normal", "homotopy_steps": steps // 10},
        "evaluate_every": None,
    }  # fmt: skip


def settings(env: str, steps: int) -> dict[str, Any]:
    """The `default` preset with what suits the environment."""
    exploring = max(round(EXPLORING.get(env, 0.2) * steps), 1)
    return {"epsilon_steps": exploring} | SETTINGS.get(env, {})


def learn(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train, and evaluate the best policy of every seed."""
    env, steps = arguments.env, arguments.steps
    agent = arguments.agent
    ours = {"replay": "der"} | settings(env, steps) if agent == "cn" else envelope_settings(steps)
    changes = ours | json.loads(arguments.settings)
    began = time.perf_counter()
    result = train(env, agent, steps=steps, seeds=tuple(arguments.seeds), progress=False, **changes)
    seconds = time.perf_counter() - began
    objectives = result.policies[0].spec.num_objectives
    peers = np.random.default_rng(0).dirichlet(np.ones(objectives), PEER_WEIGHTS)
    many = np.random.default_rng(1).dirichlet(np.ones(objectives), MANY_WEIGHTS)
    rows = []
    for kind, policies in (("best", result.best or ()), ("last", result.policies)):
        for policy in policies:
            scale = policy.config.reward_scale
            few = evaluate(policy, peers, episodes=EPISODES.get(env, 1))
            row = {
                "policy": kind, "seed": policy.seed, "step": policy.step,
                "expected_utility": float(few.utility.mean() / scale),
                "worst_utility": float(few.utility.min() / scale),
                "never_ending": float(few.never_ending.mean()),
            }  # fmt: skip
            if np.isfinite(few.optimal).all():
                found = evaluate(policy, many)
                row |= {
                    "mean_regret": float(found.regret.mean() / scale),
                    "worst_regret": float(found.regret.max() / scale),
                    "mean_optimum": float(found.optimal.mean() / scale),
                    "never_ending_of_1000": int(found.never_ending.sum()),
                }
            rows.append(row)
            print(row, flush=True)
    return {
        "env": env, "agent": agent, "steps": steps, "seconds": seconds, "runs": rows,
        "config": result.config.to_json(), "cores": usable_cores(),
    }  # fmt: skip


class HostMeter:
    """One run of CN in MO-Gymnasium's Minecart through the host driver."""

    def __init__(self, width: int, replay: str, cycles: int, learning_starts: int = 400):
        config = TrainConfig.for_env(
            "mo:minecart-v0", agent="cn", replay=replay, width=width, gamma=0.98,
            capacity=10_000, batch_size=64, learning_starts=learning_starts, learning_rate=1e-3,
            epsilon_start=0.05,
        )  # fmt: skip
        training = build(config)
        session = training.session()
        session.begin(None, 0)
        self.run, self.cycles = session._runs[0], cycles  # type: ignore[attr-defined]
        self.in_env = 0.0
        real = self.run.envs.step

        def timed(actions: np.ndarray) -> Any:
            began = time.perf_counter()
            outcome = real(actions)
            self.in_env += time.perf_counter() - began
            return outcome

        self.run.envs.step = timed  # type: ignore[method-assign]

    def advance(self, steps: int) -> float:
        """Seconds of so many steps, without the environment's own."""
        self.in_env, began = 0.0, time.perf_counter()
        self.run.advance(self.run.step + steps, lambda: False)
        jax.block_until_ready(self.run._leaves)
        return time.perf_counter() - began - self.in_env

    def overhead(self) -> float:
        """Seconds of acting and observing per step: the median of some stretches."""
        return float(np.median([self.advance(200) / 200 for _ in range(7)]))

    def costs(self) -> tuple[float, float]:
        """Seconds of a cycle with the environment's steps; an update alone is not measured."""
        took = self.advance(4 * self.cycles) + self.in_env
        return took / self.cycles, float("nan")


class _Turns:
    """Contenders in turns, so that a slow moment of the machine hits all."""

    def __init__(self, meters: dict[str, Any], turns: int):
        self.costs: dict[str, list[float]] = {name: [] for name in meters}
        for turn in range(turns + 1):
            for name, meter in meters.items():
                cost = meter.costs()[0]
                if turn:  # the first compiles
                    self.costs[name].append(cost)


def speed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Acting and observing per step, and whole cycles beside the peers'."""
    overheads = {}
    for width, replay in ((64, "der"), (128, "der"), (512, "der"), (128, "standard")):
        meter = HostMeter(width, replay, 100, learning_starts=50_000)
        meter.advance(600)  # compiles
        name = f"{width}, {replay}"
        overheads[name] = meter.overhead()
        print("overhead", name, f"{1e6 * overheads[name]:.0f} us", flush=True)
    meters: dict[str, Any] = {"Windvane, host driver, CN + DER": HostMeter(256, "der", 50)}
    meters["Windvane, host driver, CN + DER"].advance(800)
    if arguments.peers:
        from benchmarks.training_peers import FOUR_WEIGHTS, TWO_WEIGHTS, feature_peers

        peers = feature_peers(10_000, 50)
        meters |= {name: peers[name] for name in (TWO_WEIGHTS, FOUR_WEIGHTS)}
    turns = _Turns(meters, 5)
    cycles = {name: float(np.median(values)) for name, values in turns.costs.items()}
    print({name: f"{1 / value:.0f} updates/s" for name, value in cycles.items()}, flush=True)
    return {
        "overhead_seconds": overheads, "cycle_seconds": cycles, "machine": platform.processor(),
        "cores": usable_cores(), "load": os.getloadavg(), "jax": jax.__version__,
    }  # fmt: skip


def page(arguments: argparse.Namespace) -> None:
    """All measurements as one page."""
    ours = [json.loads(path.read_text()) for path in sorted(arguments.ours.glob("learn-*.json"))]
    peers = [json.loads(path.read_text()) for path in sorted(arguments.peers.glob("*.json"))]
    rows: list[Sequence[str]] = []
    beside: list[str] = []
    for measured in _merged(ours):
        name, agent, steps = (
            measured["env"].removeprefix("mo:"),
            measured["agent"],
            measured["steps"],
        )
        found: dict[str, list[dict[str, Any]]] = {}
        for kind in ("best", "last"):
            label = f"Windvane {AGENTS[agent]}" + (f", {kind} policy" if agent == "cn" else "")
            found[label] = [run for run in measured["runs"] if run["policy"] == kind]
        for chosen in ("example", "scaled"):
            like = (name, chosen, steps)
            runs = [p for p in peers if (p["environment"], p["settings"], p["steps"]) == like]
            found[f"morl-baselines Envelope, {chosen} settings"] = runs
        for label, runs in found.items():
            if runs and (row := _row(name, label, steps, runs)) not in rows:
                rows.append(row)
        if agent == "envelope":
            theirs = found["morl-baselines Envelope, scaled settings"]
            beside.append(_beside(name, steps, found["Windvane Envelope"], theirs))
    heads = ("environment", "agent", "steps", "seeds", "expected utility", "worst weight")
    parts = [TITLE, table(heads, sorted(rows, key=lambda row: row[0])), *beside]
    known = [m for m in ours if "mean_regret" in m["runs"][0]]
    if known:
        heads = ("environment", "policy", "seed", "mean regret", "of the mean optimum",
                 "worst regret", "weights that never end", "seconds")  # fmt: skip
        lines = [_regret_row(measured, run) for measured in known for run in measured["runs"]]
        parts += [REGRET, table(heads, lines)]
    for path in sorted(arguments.ours.glob("speed*.json")):
        measured = json.loads(path.read_text())
        cycles = measured["cycle_seconds"]
        parts += [
            SPEED.format(cores=measured["cores"], load=measured["load"][0], jax=measured["jax"]),
            table(("width, replay", "us per step"), [
                [str(width), f"{1e6 * seconds:.0f}"]
                for width, seconds in measured["overhead_seconds"].items()
            ]),
            table(("agent", "updates/s, whole cycle"), [
                [name, f"{1 / seconds:.0f}"] for name, seconds in cycles.items()
            ]),
        ]  # fmt: skip
    arguments.out.write_text("\n\n".join(parts) + "\n")
    print(f"written: {arguments.out}")


TITLE = """\
# The host driver on MO-Gymnasium

`make bench-host`. CN with DER through the host driver beside morl-baselines' Envelope after the \
same number of environment steps; utilities are discounted and unscaled, over the same 100 weight \
vectors, greedy. Envelope has the settings of its own Minecart example ("example") or the same \
with exploration and homotopy shortened to the number of steps ("scaled"); it makes an update \
every step, and so does CN here on four-room and minecart. Means over seeds with their range. The \
policy of CN is an average of its networks; the best of its evaluations is shown beside the last \
(of both Envelopes it is the last). On `minecart-v0` a policy that stays at the base has -0.31, \
and the optimum is 0.26."""
BESIDE = """\
**Envelope beside Envelope.** On `{env}`, with the same settings, {steps:,} steps each, expected \
utility with 95% intervals (Student; of the difference Welch): ours {ours}, morl-baselines' \
{theirs}, difference {by}."""
REGRET = """\
Greedy regret over 1,000 random weight vectors where the environment states its front:"""
SPEED = """\
## Cost of a step

Acting (greedily, but for one step in twenty) and observing one step of `mo:minecart-v0` with CN, \
without the environment's own time \
({cores} cores, load {load:.1f}, jax {jax}); then whole cycles of four steps and one update of 64 \
transitions, 256 units wide, in turns:"""


def _merged(ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Measurements of one environment, agent and length together, whatever their seeds."""
    found: dict[Any, dict[str, Any]] = {}
    for one in ours:
        first = found.setdefault((one["env"], one["agent"], one["steps"]), one | {"runs": []})
        first["runs"] = first["runs"] + one["runs"]
    return list(found.values())


def _row(env: str, agent: str, steps: int, runs: list[dict[str, Any]]) -> list[str]:
    utilities = [run["expected_utility"] for run in runs]
    worst = [run["worst_utility"] for run in runs]
    spread = f"{np.mean(utilities):.3f} [{min(utilities):.3f}, {max(utilities):.3f}]"
    return [env, agent, f"{steps:,}", str(len(runs)), spread, f"{np.mean(worst):.3f}"]


def _beside(env: str, steps: int, ours: list[Any], theirs: list[Any]) -> str:
    """Both Envelopes' expected utility, with intervals, and the interval of the difference."""
    if not ours or not theirs:
        return f"Our Envelope beside morl-baselines' on `{env}` is not measured yet."
    own = {run["seed"]: run["expected_utility"] for run in ours}
    # A seed means different draws in another program, so nothing is paired.
    other = {-1 - run["seed"]: run["expected_utility"] for run in theirs}
    parts = [_interval(statistics.mean(own)), _interval(statistics.mean(other))]
    parts.append(_interval(statistics.difference(own, other)))
    return BESIDE.format(env=env, steps=steps, ours=parts[0], theirs=parts[1], by=parts[2])


def _interval(found: statistics.Estimate | None) -> str:
    if found is None or found.low is None:
        return "unknown"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _regret_row(measured: dict[str, Any], run: dict[str, Any]) -> list[str]:
    share = 100 * run["mean_regret"] / abs(run["mean_optimum"])
    return [
        measured["env"].removeprefix("mo:"), run["policy"], str(run["seed"]),
        f"{run['mean_regret']:.4f}", f"{share:.2f}%", f"{run['worst_regret']:.4f}",
        str(run["never_ending_of_1000"]), f"{measured['seconds']:.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("learn")
    one.add_argument("--env", required=True)
    one.add_argument("--agent", choices=("cn", "envelope"), default="cn")
    one.add_argument("--steps", type=int, required=True)
    one.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    one.add_argument("--settings", default="{}", help="more settings, as JSON")
    one.add_argument("--out", type=Path, required=True)
    two = commands.add_parser("speed")
    two.add_argument("--peers", action="store_true")
    two.add_argument("--out", type=Path, required=True)
    three = commands.add_parser("page")
    three.add_argument("--ours", type=Path, default=Path("results/host"))
    three.add_argument("--peers", type=Path, default=Path("results/host/peers"))
    three.add_argument("--out", type=Path, default=Path("results/host.md"))
    arguments = parser.parse_args()
    if arguments.command == "page":
        return page(arguments)
    measured = learn(arguments) if arguments.command == "learn" else speed(arguments)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(measured, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
