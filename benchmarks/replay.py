"""Cost of the replay buffers, beside morl-baselines' or vmapped on an accelerator.

    python -m benchmarks.replay [--out FILE.md]     # make bench-replay installs what it needs
    python -m benchmarks.replay --runs 64           # needs only JAX, Equinox and NumPy

The first measures everything in one run: all rules in a compiled loop and through `HostReplay`,
morl-baselines' two buffers, and how costs grow with capacity. The second measures `--runs` buffers
under `jax.vmap`. Costs are microseconds; buffers are full; a cycle is the replay work of one
learning step: four additions, one sample of 64 and its new priorities.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.replay_loops import (
    BATCH,
    INTERVAL,
    RULES,
    Costs,
    Loop,
    feature_pieces,
    make_buffer,
    native_pieces,
    piece_steps,
)

PRIORITISED, DIVERSE = "PrioritizedReplayBuffer", "DiverseMemory, mended"
COMPILED, HOST, PEER = "compiled loop", "`HostReplay`", "morl-baselines"
PEER_VERSION = "1.3.0"
BEGAN = time.monotonic()
COMPARISONS = {
    (DIVERSE, "diverse"): Costs(20, 10, 0),
    (PRIORITISED, "standard"): Costs(1, 1, 0),
}
"""Which rule of ours a peer is compared with, and how much cheaper ours should be."""

HEADS = ("add", f"sample {BATCH} + update", f"cycle ({INTERVAL} adds, 1 sample)")
NOTES = f"""\
All were measured in this one run, in turns; a number is the median of the turns. Costs are \
microseconds. Buffers were full before anything was measured. A transition is what an agent on \
Minecart's features stores: two observations of 7 numbers, an action, 3 rewards, and whether the \
episode is over; episodes have 30 to 50 steps. They were drawn before the clock started, in the \
same way for all. A sample is of {BATCH} transitions, in arrays.

- In the compiled loop (`jax.lax.scan`, with the state donated) additions, samples and cycles \
are measured by themselves, over so many additions that what happens only now and then, such as \
compacting the diverse half, has its share.
- Called from Python, {INTERVAL} additions and a sample alternate. A sample with its update is \
measured by itself; what a cycle costs more is charged to its {INTERVAL} additions, which so pay \
for all that `HostReplay` puts off until the next sample.
- DER has room for capacity / 30 trajectories. The scores of exploration-based replay are given: \
computing them is an agent's work.

Of morl-baselines {PEER_VERSION}, `DiverseMemory` raises a TypeError as soon as its diverse half \
is full, because its function `crowd_dist` builds points without the arguments they need. That \
function is replaced here by one that does the same with NumPy arrays, which is quicker than the \
lists it means to sort. The rest is as shipped. It asks its caller for the value of each \
trajectory whenever it makes room: returns are computed once and remembered. It hands out tuples, \
which are stacked into arrays as a learner needs them. It always accepts the new trajectory, where \
the paper's Algorithm 3 may drop it."""


class Turns:
    """Costs of contenders measured in turns, so that a slow moment of the machine hits all."""

    def __init__(self, meters: dict[Any, Any], turns: int):
        self.costs: dict[Any, list[Costs]] = {name: [] for name in meters}
        for turn in range(turns + 1):
            for name, meter in meters.items():
                costs = meter.costs()
                # The first turn compiles and warms up.
                if turn:
                    self.costs[name].append(costs)
            say(f"turn {turn} of {turns}")

    def median(self, name: Any) -> Costs:
        """The middle one of each cost."""
        return Costs(*np.median(self.costs[name], axis=0))

    def ratios(self, name: Any, other: Any) -> np.ndarray:
        """How much `name` costs in units of `other`, by turn and cost."""
        return np.asarray(self.costs[name]) / np.asarray(self.costs[other])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def say(text: str) -> None:
    """Progress, beside the page."""
    print(f"{time.monotonic() - BEGAN:5.0f} s: {text}", file=sys.stderr, flush=True)


def numbers(costs: Costs) -> list[str]:
    return [f"{cost:,.1f}" for cost in costs]


def make_loop(rule: str, capacity: int) -> Loop:
    """A full buffer in a compiled loop."""
    loop = Loop(make_buffer(rule, capacity), feature_pieces(1, piece_steps(capacity)))
    loop.fill(capacity * 5 // 4)
    say(f"{rule}, {capacity:,}: filled, {loop.held():,.0f} held")
    return loop


def make_hosts(capacity: int) -> dict[tuple[str, str], Any]:
    """Full buffers called from Python: our rules and the peers."""
    from benchmarks.replay_hosts import HostMeter, Ours, PeerDiverse, PeerPrioritised

    meters = {(rule, HOST): HostMeter(Ours(make_buffer(rule, capacity))) for rule in RULES}
    meters[PRIORITISED, PEER] = HostMeter(PeerPrioritised(capacity))
    meters[DIVERSE, PEER] = HostMeter(PeerDiverse(capacity))
    for (name, where), meter in meters.items():
        meter.fill(capacity * 5 // 4)
        say(f"{name}, {where}: filled")
    return meters


def comparison_rows(turns: Turns) -> list[list[str]]:
    """Peers' costs in units of ours: the median of the turns, and the lowest."""
    rows = []
    for (peer, rule), goals in COMPARISONS.items():
        for where in (COMPILED, HOST):
            ratios = turns.ratios((peer, PEER), (rule, where))
            cells = [
                f"{middle:,.1f}x, lowest {low:,.1f}x" + (f" (goal {goal}x)" if goal else "")
                for middle, low, goal in zip(
                    np.median(ratios, axis=0), ratios.min(axis=0), goals, strict=True
                )
            ]
            rows.append([f"`{peer}` / {rule}", where, *cells])
    return rows


def processor() -> str:
    """The processor's name, where the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def compare(arguments: argparse.Namespace) -> None:
    """All of the page; a part is printed as soon as it is measured."""
    parts: list[str] = []

    def write(*more: str) -> None:
        parts.extend(more)
        print("\n\n".join(more), end="\n\n", flush=True)

    write(
        "# What replay costs",
        f"`python -m benchmarks.replay`, {datetime.now(UTC):%Y-%m-%d}, {processor()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, jax {jax.__version__}, "
        f"numpy {np.__version__}, torch {version('torch')}, morl-baselines {PEER_VERSION}",
        NOTES,
    )
    capacity = arguments.capacity
    compiled = {(rule, COMPILED): make_loop(rule, capacity) for rule in RULES}
    turns = Turns(compiled | make_hosts(capacity), arguments.turns)
    costs = [[*name, *numbers(turns.median(name))] for name in turns.costs]
    write(
        f"## Capacity {capacity:,}",
        table(("buffer", "where", *HEADS), costs),
        "How many times as much the peers cost, turn by turn:",
        table(("peer / ours", "where ours runs", *HEADS), comparison_rows(turns)),
    )
    sizes = [(rule, size) for rule in RULES for size in arguments.capacities]
    loops = {name: make_loop(*name) for name in sizes}
    # Pieces grow with the capacity, so fewer of them will do.
    growing = Turns(loops, -(-arguments.turns // 2))
    growth = [
        [rule, f"{size:,}", *numbers(growing.median((rule, size))), f"{loop.megabytes():,.1f}"]
        for (rule, size), loop in loops.items()
    ]
    write(
        "## From small to large, in the compiled loop",
        table(("rule", "capacity", *HEADS, "MB"), growth),
    )
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n\n".join(parts) + "\n")
        say(f"written: {arguments.out}")


def measure_vmapped(arguments: argparse.Namespace) -> None:
    """Many runs under `jax.vmap`, one rule after the other; a row is printed once it is known."""
    runs, steps = arguments.runs, arguments.steps
    device = jax.devices()[0].device_kind
    print(f"{device}, jax {jax.__version__}, {runs} runs; microseconds for all runs together")
    print(
        table(("rule", "capacity", *HEADS, "cycle per run", "held", "MB per run"), []), flush=True
    )
    for capacity in arguments.capacities:
        for rule in arguments.rules:
            loop = Loop(make_buffer(rule, capacity), native_pieces(1, steps, runs), runs)
            loop.fill(arguments.fill or capacity * 5 // 4)
            turns = Turns({rule: loop}, arguments.turns)
            cost = turns.median(rule)
            row = [rule, f"{capacity:,}", *numbers(cost), f"{cost.cycle / runs:,.2f}",
                   f"{loop.held() / capacity:.0%}", f"{loop.megabytes():,.1f}"]  # fmt: skip
            print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the page")
    parser.add_argument("--capacity", type=int, default=100_000, help="that of the comparison")
    parser.add_argument(
        "--capacities", type=int, nargs="+", help="default: 10000 100000 1000000; with --runs 10000"
    )
    parser.add_argument("--turns", type=int, default=7, help="repetitions; the median counts")
    parser.add_argument("--runs", type=int, help="this many vmapped buffers, without peers")
    parser.add_argument("--rules", nargs="+", choices=RULES, default=RULES, help="with --runs")
    parser.add_argument("--steps", type=int, default=2000, help="with --runs: additions timed")
    parser.add_argument("--fill", type=int, help="with --runs: additions first; default: to full")
    arguments = parser.parse_args()
    if arguments.runs:
        arguments.capacities = arguments.capacities or [10_000]
        measure_vmapped(arguments)
    elif find_spec("torch") is None or find_spec("morl_baselines") is None:
        sys.exit(
            f"This needs torch and morl-baselines {PEER_VERSION}: run `make bench-replay`, which "
            "installs them apart, or measure without them with --runs."
        )
    else:
        arguments.capacities = arguments.capacities or [10_000, 100_000, 1_000_000]
        compare(arguments)


if __name__ == "__main__":
    main()
