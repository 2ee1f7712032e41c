"""The fast agent: greedy regret over all weights against the seconds it took.

    python -m benchmarks.fast train --preset fast-minecart --out results/fast/cpu-fast-minecart.json
    python -m benchmarks.fast scale --out results/fast/scale-cpu.json
    python -m benchmarks.fast page    # what results/fast holds, as results/fast.md

Each seed is trained by itself. Seconds are those of training without compilation: the programs are
compiled before the clock starts, and evaluations take place when it stands still. A policy is
judged by 1,000 random weight vectors, each with some greedy episodes, fewer on the way;
"worst" is the weight vector with the largest mean regret.
"""

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.replay import table
from windvane.agents import AGENTS
from windvane.envs.deep_sea_treasure import source
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import MinecartConfig
from windvane.evaluation import evaluate
from windvane.machine import usable_cores, use_compilation_cache
from windvane.policy import Policy, trained_policy
from windvane.runs.runner import chunks
from windvane.training.build import build, describe_custom
from windvane.training.config import TrainConfig

WEIGHTS = 1_000
SCALES = {"num_envs": (64, 1024, 4096), "width": (64, 256, 512), "objectives": (2, 4, 6)}
EPISODES = {"minecart": 32, "dst": 1}
"""Greedy episodes per weight vector; Minecart's ore is random."""


def judge(policy: Policy, weights: np.ndarray, episodes: int) -> dict[str, float]:
    """Regret over the weights: mean, worst, and the share of weights that never end."""
    found = evaluate(policy, weights, episodes=episodes)
    return {
        "mean": float(found.regret.mean()),
        "worst": float(found.regret.max()),
        "q99": float(np.quantile(found.regret, 0.99)),
        "never_ending": float(1 - found.terminated.mean()),
        "optimum": float(found.optimal.mean()),
    }


def train(arguments: argparse.Namespace) -> None:
    """Train seed by seed, or all together, with looks at the greedy policy in between."""
    use_compilation_cache()
    groups = [tuple(arguments.seeds)] if arguments.together else [(s,) for s in arguments.seeds]
    changes = json.loads(arguments.settings)
    rows: list[dict[str, Any]] = []
    first = 0.0
    for number, seeds in enumerate(groups):
        config = TrainConfig.preset(arguments.preset, seeds=seeds, **changes).resolved()
        training = build(config)
        objectives = training.spec.num_objectives
        weights = np.random.default_rng(1).dirichlet(np.ones(objectives), WEIGHTS)
        episodes = EPISODES.get(config.env, 8)
        pieces = [piece for piece in chunks(config) if piece.stop > piece.start]
        looks = {round(len(pieces) * (i + 1) / arguments.looks) - 1 for i in range(arguments.looks)}
        session = training.session()
        began = time.perf_counter()
        session.begin(None, 0)
        for piece in {p.stop - p.start: p for p in pieces}.values():  # each length is compiled
            session.advance(piece.start, piece.stop, True, lambda: False)
        compiling = time.perf_counter() - began
        session.begin(None, 0)
        seconds = 0.0
        for index, piece in enumerate(pieces):
            began = time.perf_counter()
            session.advance(piece.start, piece.stop, True, lambda: False)
            seconds += time.perf_counter() - began
            if index not in looks:
                continue
            for run, seed in enumerate(seeds):
                last = index == len(pieces) - 1
                policy = trained_policy(training, session.policy_network(run), run, piece.stop)
                found = judge(policy, weights, episodes if last else min(episodes, 4))
                rows.append({"seed": seed, "step": piece.stop, "seconds": seconds} | found)
                print(rows[-1], flush=True)
                if last and arguments.policies is not None:
                    arguments.policies.mkdir(parents=True, exist_ok=True)
                    policy.save(arguments.policies / f"seed-{seed}.safetensors")
        session.close()
        print(f"seed {seeds}: compilation with one chunk {compiling:.1f} s", flush=True)
        first = compiling if number == 0 else first
        found = {
            "preset": arguments.preset, "together": arguments.together, "rows": rows,
            "config": config.to_json(), "device": str(jax.devices()[0].device_kind),
            "cores": usable_cores(), "machine": platform.machine(), "jax": jax.__version__,
            "compiling": first, "note": arguments.note,
        }  # fmt: skip
        # After every seed: an interruption loses only the one in progress.
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def scale(arguments: argparse.Namespace) -> None:
    """Steps per second of `fast-minecart` with one size changed at a time."""
    use_compilation_cache()
    base = {"num_envs": 256, "width": 128, "objectives": 3}
    variants = [base | {name: value} for name, values in SCALES.items() for value in values]
    rows: list[dict[str, Any]] = []
    for sizes in [base, *(one for one in variants if one != base)]:
        envs, cycles = sizes["num_envs"], max(8192 // sizes["num_envs"], 1)
        steps = 32 * envs * cycles
        config = TrainConfig.preset(
            "fast-minecart", num_envs=envs, width=sizes["width"], steps=steps, chunk=steps,
            agent_args={"minibatches": 32 * envs // 256}, oracle=False,  # of the same size
        ).resolved()  # fmt: skip
        # Another instance for all, so that objectives alone differ.
        instance = MinecartConfig.random(jax.random.key(0), num_ores=sizes["objectives"] - 1)
        world = Minecart(instance, observation="features")
        training = build(replace(config, **describe_custom({"env": world})), env=world)
        session = training.session()
        session.begin(None, 0)
        seconds = []
        for _ in range(4):  # the first compiles
            began = time.perf_counter()
            session.advance(0, steps, True, lambda: False)
            seconds.append(time.perf_counter() - began)
        rows.append(sizes | {"steps_per_second": steps / min(seconds[1:])})
        print(rows[-1], flush=True)
    found = {
        "rows": rows, "device": str(jax.devices()[0].device_kind), "cores": usable_cores(),
        "jax": jax.__version__,
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def page(arguments: argparse.Namespace) -> None:
    """All measurements as one page."""
    parts = [TITLE]
    heads = ("seed", "steps", "seconds", "mean regret", "99% of weights below", "worst weight",
             "episodes that never end")  # fmt: skip
    for path in sorted(arguments.source.glob("scale-*.json")):
        found = json.loads(path.read_text())
        place = found["device"] if found["device"] != "cpu" else f"{found['cores']} cores"
        parts.append(f"## How the time grows, {place}\n\n{SCALING}")
        parts.append(table(("environments", "units wide", "objectives", "steps/s"), [
            [str(row["num_envs"]), str(row["width"]), str(row["objectives"]),
             f"{row['steps_per_second']:,.0f}"] for row in found["rows"]
        ]))  # fmt: skip
    for path in sorted(arguments.source.glob("[!s]*.json")):
        found = json.loads(path.read_text())
        config = found["config"]
        last = max(row["step"] for row in found["rows"])
        lines = [_line(row) for row in found["rows"] if row["step"] == last]
        place = found["device"] if found["device"] != "cpu" else f"{found['cores']} cores"
        parts.append(
            f"## `{found['preset']}`, {config['observation']}, {place}\n\n"
            f"{config['num_envs']:,} environments, {config['width']} units wide, jax "
            f"{found['jax']}; compilation with the first chunk {found['compiling']:.0f} s."
            + (" All seeds in one program: seconds are those of all." if found["together"] else "")
            + (f" {found['note']}" if found.get("note") else "")
            + _changes(found["preset"], config)
            + (f" {source(config['env_args'])}" if config["env"] == "dst" else "")
        )
        parts.append(table(heads, lines))
        curve = sorted({row["step"] for row in found["rows"]})
        parts.append(table(("steps", "seconds", "mean regret", "worst weight"), [
            [f"{step:,}", *(f"{np.mean([r[k] for r in found['rows'] if r['step'] == step]):.{d}f}"
                            for k, d in (("seconds", 1), ("mean", 4), ("worst", 3)))]
            for step in curve
        ]))  # fmt: skip
    arguments.out.write_text("\n\n".join(parts) + "\n")
    print(f"written: {arguments.out}")


def _changes(preset: str, config: dict[str, Any]) -> str:
    """The settings that were not the preset's of today."""
    config, usual = TrainConfig.from_json(config).to_json(), TrainConfig.preset(preset).to_json()
    names = [name for name in config if name not in ("seeds", "precision")]
    changed = {name: config[name] for name in names if config[name] != usual[name]}
    agents = [AGENTS.make(one["agent"], one["agent_args"]) for one in (config, usual)]
    if agents[0] == agents[1]:  # defaults that were written out
        changed.pop("agent_args", None)
    listed = ", ".join(f"{name} {json.dumps(value)}" for name, value in changed.items())
    return f" Settings other than the preset's: `{listed}`." if listed else ""


TITLE = """\
# The fast agent

`python -m benchmarks.fast train --preset NAME`, then `page`. Greedy policies over 1,000 random \
weight vectors (32 episodes each on Minecart, whose ore is random). Regret is discounted and \
scaled as in training; "worst" is the weight vector with the largest mean regret. Seconds are \
those of training, without compilation and evaluation. First every seed at the end, then means \
over seeds on the way, where one to four episodes per weight vector are played, the same for \
all. The presets' settings were chosen in trials on seeds 0 to 4 (docs/decisions.md); where other \
seeds are shown, nothing was chosen on them."""


SCALING = """\
`fast-minecart` with one size changed at a time: steps of all environments per second, learning \
included, the best of three chunks (`python -m benchmarks.fast scale`)."""


def _line(row: dict[str, Any]) -> list[str]:
    return [
        str(row["seed"]), f"{row['step']:,}", f"{row['seconds']:.1f}", f"{row['mean']:.4f}",
        f"{row['q99']:.3f}", f"{row['worst']:.3f}", f"{row['never_ending']:.2%}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train")
    one.add_argument("--preset", required=True)
    one.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    one.add_argument("--together", action="store_true", help="all seeds in one program")
    one.add_argument("--looks", type=int, default=8, help="evaluations on the way")
    one.add_argument("--settings", default="{}", help="more settings, as JSON")
    one.add_argument("--note", default="", help="what a reader should know of the machine")
    one.add_argument("--policies", type=Path, help="folder for the last policy of each seed")
    one.add_argument("--out", type=Path, required=True)
    three = commands.add_parser("scale")
    three.add_argument("--out", type=Path, required=True)
    two = commands.add_parser("page")
    two.add_argument("--from", dest="source", type=Path, default=Path("results/fast"))
    two.add_argument("--out", type=Path, default=Path("results/fast.md"))
    arguments = parser.parse_args()
    if arguments.command == "page":
        return page(arguments)
    return scale(arguments) if arguments.command == "scale" else train(arguments)


if __name__ == "__main__":
    main()
