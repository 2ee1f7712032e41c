"""A policy trained in advance, frozen or fine-tuned, where the world changes or stays the same.

    python -m benchmarks.fast train --preset fast-minecart --policies out/pre --out out/fast.json
    python -m benchmarks.finetune run --policies out/pre --out results/finetune/ore.json
    python -m benchmarks.finetune page    # what results/finetune holds, as results/finetune.md

Minecart from features. The policies come from the paper's instance; seed k takes policy k modulo
their number. All contenders are trained, or played, under the paper's sparse and regular changes
of the weights, all seeds in one program. Contenders: the frozen policy, greedy; CN with DER from
random networks; CN with DER started with the policy. A run needs JAX, Equinox, Optax, NumPy, SciPy
and safetensors. Results are written after each contender, and those that are there are kept.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import policies
from windvane import oracle
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER, MinecartConfig
from windvane.evaluation import optimal_value_fn
from windvane.machine import use_compilation_cache
from windvane.oracle.coverage import CoverageSet
from windvane.oracle.minecart_trips import TripPlan
from windvane.policy import Policy
from windvane.runs.records import episode_rows
from windvane.runs.starting import OBJECT, architecture_of, start_network
from windvane.training.build import Training, build, describe_custom
from windvane.training.config import TrainConfig

SCHEDULES = ("sparse", "regular")
CHUNK = 1_000
"""Steps in one compiled call; nothing is learned in the first of them."""
BINS = 40
TRACED = ("learning_rate", "epsilon_start", "epsilon_end")
ORACLE = Path("results/finetune/oracle")
"""Coverage sets of the other instances, which take minutes of search each."""
PLACES = ((0.16, 0.60), (0.45, 0.75), (0.75, 0.75), (0.75, 0.45), (0.60, 0.16))
LITTLE = {"epsilon_start": 0.05, "epsilon_end": 0.01, "epsilon_steps": 100_000}
CONTENDERS: dict[str, dict[str, Any]] = {
    "frozen": {"epsilon_start": 0.0, "epsilon_end": 0.0},
    "started": LITTLE | {"learning_rate": 2e-5},
    "careful": LITTLE | {"learning_rate": 2e-6},
    # The paper's exploration, from 1 to 0.05 over the first 100,000 steps, and learning rate.
    "scratch": {},
}
ALL = {"priority_exponent": 0.6, "learning_starts": 10_000}
"""Settings of all that learn. With the paper's priorities and a learning rate of 2e-4 or more, CN
forgot the policy that it was started with within 20,000 steps, in seven trials on other seeds."""


def instance(name: str) -> MinecartConfig:
    """The paper's instance, or one that differs from it in one thing."""
    ores = [mine.distributions for mine in PAPER.mines]
    if name == "ore":  # every mine has the ore of the next
        mines = (
            replace(m, distributions=o)
            for m, o in zip(PAPER.mines, ores[1:] + ores[:1], strict=True)
        )
        return replace(PAPER, mines=tuple(mines))
    if name == "moved":  # all mines nearer to the base
        mines = (replace(m, x=x, y=y) for m, (x, y) in zip(PAPER.mines, PLACES, strict=True))
        return replace(PAPER, mines=tuple(mines))
    return PAPER


INSTANCES = ("paper", "ore", "moved")


def coverage(env: Minecart, gamma: float) -> np.ndarray:
    """Optimal values: from the package, from `ORACLE`, or searched for and then kept there."""
    shipped = oracle.shipped_path(env, gamma)
    path = ORACLE / shipped.name
    if path.exists():
        return CoverageSet.load(path, TripPlan.template()).values
    found = oracle.coverage_set(env, gamma)
    if not shipped.exists():
        found.save(path)
    return found.values


def training_of(
    name: str, world: Minecart, policy: Policy, arguments: argparse.Namespace
) -> Training:
    """The parts of a contender; its network has the policy's sizes."""
    changes = architecture_of(policy) | ALL | CONTENDERS[name] | json.loads(arguments.settings)
    if name != "scratch":
        changes["start_from"] = OBJECT
    base = {
        "observation": "features", "steps": arguments.steps, "agent": "cn", "replay": "der",
        "schedule": SCHEDULES, "seeds": tuple(arguments.seeds), "chunk": CHUNK,
    }  # fmt: skip
    config = TrainConfig.preset("paper-minecart", **(base | changes)).resolved()
    if (config.gamma, config.reward_scale) != (policy.config.gamma, policy.config.reward_scale):
        raise SystemExit("the policy was trained with another discount or scale of rewards")
    training = build(replace(config, **describe_custom({"env": world})), env=world)
    # As arrays, so that contenders and trials share one compiled program.
    arrays = {key: jnp.asarray(getattr(config, key), jnp.float32) for key in TRACED}
    hyperparameters = replace(training.learner.hyperparameters, **arrays)
    learner = eqx.tree_at(lambda one: one.hyperparameters, training.learner, hyperparameters)
    return replace(training, learner=learner)


def begin(training: Training, given: list[Policy]) -> Any:
    """The session of a contender; each run starts with the policy of its seed."""
    session = training.session()
    session.begin(None, 0)
    if training.config.start_from is None:
        return session
    seeds = [run.seed_numbers[0] for run in training.config.runs]
    networks = [start_network(training, given[seed % len(given)]) for seed in seeds]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)
    state = session.state
    for field in ("online", "target", "average"):
        if getattr(state.learner, field, None) is not None:
            copied = jax.tree.map(jnp.copy, stacked)
            state = eqx.tree_at(lambda s, field=field: getattr(s.learner, field), state, copied)
    session.begin(state, 0)
    return session


def contend(
    name: str, training: Training, given: list[Policy], values: np.ndarray
) -> dict[str, Any]:
    """Train, or play, to the end; regrets of each schedule, by seed."""
    config = training.config
    best = optimal_value_fn(training.world, config.gamma, config.reward_scale, values)
    seeds = np.asarray([run.seed_numbers[0] for run in config.runs])
    session = begin(training, given)
    step, regret, run, began = [], [], [], time.perf_counter()
    for start in range(0, config.steps, CHUNK):
        before = session.episodes
        learning = start >= max(CHUNK, config.learning_starts) and name != "frozen"
        infos = session.advance(start, min(start + CHUNK, config.steps), learning, lambda: False)
        rows = episode_rows(infos, start, seeds, before, best)
        step.append(rows["step"])
        run.append(rows["run"])
        regret.append(rows["regret"])
        print(
            f"{name}: {start + CHUNK:,} of {config.steps:,} steps, "
            f"{time.perf_counter() - began:.0f} s, regret {regret[-1].mean():.4f}",
            flush=True,
        )
    seconds, failed = time.perf_counter() - began, int(session.failed.sum())
    session.close()
    columns = np.concatenate(step), np.concatenate(run), np.concatenate(regret)
    found: dict[str, Any] = {"seconds": seconds, "failed": failed, "config": config.to_json()}
    number = len(config.seed_numbers)
    for index, schedule in enumerate(config.schedules):
        runs = range(index * number, (index + 1) * number)
        found[schedule] = summary(*columns, runs, config.steps)
    return found


def summary(
    step: np.ndarray, run: np.ndarray, regret: np.ndarray, runs: range, steps: int
) -> dict[str, Any]:
    """Mean regret of the episodes of each run: in parts of the run, and along it."""
    bins = np.minimum((step - 1) * BINS // steps, BINS - 1)

    def mean(mask: np.ndarray) -> list[float]:
        chosen = (regret[mask & (run == one)] for one in runs)
        return [float(values.mean()) if len(values) else float("nan") for values in chosen]

    whole = np.ones(len(step), bool)
    return {
        "first": mean(step <= steps // 10),
        "overall": mean(whole),
        "last": mean(step > 0.75 * steps),
        "curve": [mean(bins == index) for index in range(BINS)],
    }  # fmt: skip


def measure(arguments: argparse.Namespace) -> None:
    """All contenders in one instance."""
    use_compilation_cache()
    given = policies.load(arguments.policies)
    world = Minecart(instance(arguments.instance), observation="features")
    about = {
        "instance": arguments.instance, "steps": arguments.steps, "seeds": arguments.seeds,
        "settings": json.loads(arguments.settings),
        "policies": [policy.checksum for policy in given],
        "policy_steps": given[0].config.steps,
    }  # fmt: skip
    found = about | {
        "device": str(jax.devices()[0].device_kind), "jax": jax.__version__, "contenders": {},
    }  # fmt: skip
    if arguments.out.exists():
        earlier = json.loads(arguments.out.read_text())
        if {name: earlier.get(name) for name in about} != about:
            raise SystemExit(f"{arguments.out} holds another measurement: remove it first")
        found = earlier
    for name in arguments.contenders:
        if name in found["contenders"]:
            continue
        training = training_of(name, world, given[0], arguments)
        values = coverage(world, training.config.gamma)
        found["contenders"][name] = contend(name, training, given, values)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(found) + "\n")
        for schedule in SCHEDULES:
            parts = found["contenders"][name][schedule]
            means = (f"{part} {np.mean(parts[part]):.4f}" for part in ("first", "overall", "last"))
            print(name, schedule, *means, flush=True)
    print(f"written: {arguments.out}")


def trials(arguments: argparse.Namespace) -> None:
    """Contenders with several learning rates, on other seeds than those of the page."""
    use_compilation_cache()
    given = policies.load(arguments.policies)
    world = Minecart(instance(arguments.instance), observation="features")
    settings = json.loads(arguments.settings)
    for rate in arguments.rates:
        arguments.settings = json.dumps(settings | {"learning_rate": rate})
        for name in arguments.contenders:
            training = training_of(name, world, given[0], arguments)
            found = contend(name, training, given, coverage(world, training.config.gamma))
            for schedule in SCHEDULES:
                parts = {part: np.mean(found[schedule][part]) for part in ("overall", "last")}
                print(f"{rate:g}", name, schedule, parts, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("--policies", type=Path, nargs="+", required=True)
    one.add_argument("--instance", choices=INSTANCES, default="ore")
    one.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    one.add_argument("--steps", type=int, default=200_000)
    one.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    one.add_argument("--settings", default="{}", help="more settings of CN, as JSON")
    one.add_argument("--out", type=Path, required=True)
    three = commands.add_parser("trials")
    three.add_argument("--policies", type=Path, nargs="+", required=True)
    three.add_argument("--instance", choices=INSTANCES, default="ore")
    three.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=["started"])
    three.add_argument("--steps", type=int, default=100_000)
    three.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    three.add_argument("--rates", type=float, nargs="+", default=[0.02, 0.005, 0.001, 0.0002])
    three.add_argument("--settings", default="{}", help="more settings, such as the agent, as JSON")
    two = commands.add_parser("page")
    two.add_argument("--from", dest="source", type=Path, default=Path("results/finetune"))
    two.add_argument("--out", type=Path, default=Path("results/finetune.md"))
    arguments = parser.parse_args()
    if arguments.command == "page":
        from benchmarks.finetune_page import page

        return page(arguments.source, arguments.out)
    if arguments.command == "trials":
        return trials(arguments)
    return measure(arguments)


if __name__ == "__main__":
    main()
