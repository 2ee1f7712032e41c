"""Speed of training, beside morl-baselines' agents or many runs side by side on an accelerator.

    python -m benchmarks.training [--out FILE.md]   # make bench-training installs what it needs
    python -m benchmarks.training --runs 1 3 10     # needs only JAX, Equinox, Optax and NumPy

The first measures everything in one run: CN on Minecart's features and on its pixels, peers, and
the bare matrix products of an update. The second measures whole cycles of `paper-minecart` for
each number of runs. A cycle is four steps, with acting and remembering, and one update: a sample
of 64, a gradient step and new priorities.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.replay import Turns, processor, say, table
from windvane.agents.core import TransitionBatch
from windvane.training.build import build
from windvane.training.config import TrainConfig
from windvane.training.fused import ChunkSpec, FusedDriver, RunState, run_chunk

INTERVAL, PEER_VERSION = 4, "1.3.0"
DER, STANDARD, FLOOR = "Windvane, CN + DER", "Windvane, CN + standard replay", "the floor"
PEER_GOAL, AUTHORS_GOAL = 2, 3
AUTHORS_STEPS, AUTHORS_UPDATES = 14.8, 3.7
"""A second, of the authors' released program on a machine of this kind."""
NEEDED = ("torch", "morl_baselines", "mo_gymnasium", "wandb", "pymoo", "cvxpy", "seaborn", "cdd")

NOTES = f"""\
Everything was measured in this one run, contenders in turns; a number is the median of the turns. \
All learn from batches of 64 transitions, once every {INTERVAL} steps, in float32, one run at a \
time, and all may use every core; PyTorch is timed with one thread and with all of them, and the \
quicker counts in every turn. The whole cycle is {INTERVAL} steps, with acting and \
remembering, and one update. The update alone is a sample from a full buffer, a gradient step and \
new priorities. What is compiled was compiled before the clock started. Windvane's steps and \
updates run in one compiled loop, as `windvane train` runs them.

morl-baselines {PEER_VERSION} is driven as its own `train` does it, without evaluation and logging \
and with an update every {INTERVAL} steps, on MO-Gymnasium's `minecart-v0`; prioritised replay; \
whatever is not named here is its default. What differs from CN:

- CN trains every transition on 2 weight vectors. `Envelope(envelope=False)` is double DQN \
conditioned on weights too, the nearest to CN, but on 4 weight vectors (`num_sample_w`); with 2 \
it has as many rows as CN. The goal is set beside both.
- `GPILS` trains two networks on 2 weight vectors. It acts by a set of weight vectors that grows; \
here it has 8.
- The peers' networks have one stream, CN's head has two, for values and advantages: with equal \
layers CN has nearly twice as many parameters. The peers use Adam, CN momentum.
- GFLOP are those of an update's matrix products and convolutions."""

FEATURE_NOTES = """\
Seven numbers are seen. Networks are four layers of 256 deep (Windvane: `--width 256 \
--encoder-depth 1 --depth 3`; peers: `net_arch=[256] * 4`). Buffers hold {capacity:,} \
transitions."""

PIXEL_NOTES = """\
Two frames of 48x48x3 are seen. Windvane is `paper-minecart`, 512 units wide; it draws frames when \
it acts and again when it samples, and both are in the numbers. The authors' released program \
cannot be run with today's Python; its numbers are constants, measured earlier on a machine of \
this kind. Of morl-baselines only the update is measured, on noise of the same shape, the frames \
stacked as channels. Its network is its `NatureCNN`, about half the paper's encoder in arithmetic, \
and three layers of 512 in one stream. Its buffer holds only {pictures:,} transitions, because it \
keeps pictures as float32."""

FLOOR_NOTES = """\
The floor is the time of an update's matrix products by themselves: all of `Agent.loss` and its \
gradient, of the same shapes, found in the traced program (convolutions are matrix products \
there), compiled by JAX, on numbers that are there already."""


class Ours:
    """Windvane, `runs` runs side by side in compiled loops."""

    def __init__(self, config: TrainConfig, cycles: int, runs: int = 1):
        self.driver, self.cycles, self.step = build(config).session().driver, cycles, 0  # type: ignore
        state = eqx.filter_jit(eqx.filter_vmap(self.driver.init))(jnp.arange(runs))
        # Equal parts may be one array, which cannot be donated twice.
        self.runs: RunState = jax.tree.map(jnp.copy, state)

    def fill(self, steps: int) -> None:
        """Act and remember for at least `steps` steps without learning."""
        cycles = min(250, -(-steps // INTERVAL))
        while self.step < steps:
            self._advance(cycles, learning=False)

    def costs(self) -> tuple[float, float]:
        """Seconds of a cycle and of an update, for all runs together."""
        return self.cycle(), self.update()

    def cycle(self) -> float:
        """Seconds of a cycle, for all runs together."""
        began = time.perf_counter()
        self._advance(self.cycles, learning=True)
        return (time.perf_counter() - began) / self.cycles

    def update(self) -> float:
        """Seconds of an update, for all runs together."""
        began = time.perf_counter()
        what = self.driver, jnp.asarray(self.step), self.cycles
        self.runs = jax.block_until_ready(learn_only(what, self.runs))
        return (time.perf_counter() - began) / self.cycles

    def failed(self) -> bool:
        """Whether a run has diverged."""
        return bool(self.runs.learner.failed.any())

    def _advance(self, cycles: int, learning: bool) -> None:
        program = self.driver, ChunkSpec(jnp.asarray(self.step), cycles, learning)
        self.runs, _ = jax.block_until_ready(run_chunk(program, self.runs))
        self.step += cycles * INTERVAL


@eqx.filter_jit(donate="all-except-first")
def learn_only(what: tuple[FusedDriver, jax.Array, int], runs: RunState) -> RunState:
    """Some updates and nothing between them; `what` is (driver, first, updates)."""
    driver, first, updates = what

    def one(runs: RunState, step: jax.Array) -> tuple[RunState, None]:
        learned = jax.vmap(driver.learner.learn, (0, None))(runs.learner, step)
        return eqx.tree_at(lambda r: r.learner, runs, learned), None

    return jax.lax.scan(one, runs, first + jnp.arange(updates))[0]


class Product(NamedTuple):
    """A matrix product: what is multiplied, which axes are summed over or in common."""

    left: Any
    right: Any
    axes: Any

    def flops(self) -> int:
        """Multiplications and additions."""
        (_, summed), (_, shared) = self.axes
        rest = np.delete(self.right.shape, [*summed, *shared])
        return 2 * int(np.prod(self.left.shape) * np.prod(rest))


def products(driver: FusedDriver) -> list[Product]:
    """Those of one update of one run: `Agent.loss` and its gradient."""
    shape = jax.ShapeDtypeStruct
    learner = driver.learner
    online = jax.eval_shape(driver.init, shape((), jnp.int32)).learner.online
    size, objectives = learner.hyperparameters.batch_size, learner.spec.num_objectives
    frames = (online.stack + 1, size, *learner.spec.frame.shape)
    batch = TransitionBatch(
        shape(frames, learner.spec.frame.dtype),
        shape((size,), jnp.int32),
        shape((size, objectives), jnp.float32),
        shape((size,), jnp.bool),
    )  # type: ignore[arg-type]
    weights, gamma = shape((size, 2, objectives), jnp.float32), shape((), jnp.float32)
    gradient: Any = eqx.filter_grad(learner.agent.loss, has_aux=True)
    program = jax.make_jaxpr(gradient)(online, online, batch, weights, gamma)
    return list(_products(program.jaxpr))


def _products(program: Any) -> Iterator[Product]:
    for line in program.eqns:
        if line.primitive.name == "dot_general":
            left, right = (variable.aval for variable in line.invars)
            yield Product(left, right, line.params["dimension_numbers"])
        for inner in jax.tree.leaves(list(line.params.values())):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from _products(inner)


class Floor:
    """The matrix products of one update, and nothing else."""

    def __init__(self, driver: FusedDriver, times: int):
        found, self.times = products(driver), times
        self.gflop = sum(product.flops() for product in found) / 1e9
        rng = np.random.default_rng(0)

        def numbers(like: Any) -> jax.Array:
            return jnp.asarray(rng.standard_normal(like.shape), like.dtype)

        self._numbers = [(numbers(product.left), numbers(product.right)) for product in found]

        def multiply(numbers: Any, old: Any) -> Any:
            # Results are written over old ones, as a compiled update reuses its memory.
            del old
            pairs = zip(found, numbers, strict=True)
            return [jax.lax.dot_general(a, b, product.axes) for product, (a, b) in pairs]

        results = jax.eval_shape(multiply, self._numbers, None)
        self._results = [jnp.zeros(result.shape, result.dtype) for result in results]
        self._program = jax.jit(multiply, donate_argnums=1, keep_unused=True)

    def costs(self) -> tuple[float, float]:
        """Seconds, as an update."""
        began = time.perf_counter()
        for _ in range(self.times):
            self._results = self._program(self._numbers, self._results)
        jax.block_until_ready(self._results)
        return float("nan"), (time.perf_counter() - began) / self.times


def rate(seconds: float) -> str:
    """Times a second."""
    return "-" if np.isnan(seconds) else f"{1 / seconds:,.1f}"


def times_as_much(ratios: np.ndarray, goal: int | None = None) -> str:
    """The median of the turns, and the lowest."""
    if np.isnan(ratios).any():
        return "-"
    text = f"{np.median(ratios):,.2f}x, lowest {ratios.min():,.2f}x"
    return text + (f" (goal {goal}x)" if goal else "")


def middle(turns: Turns, name: str) -> tuple[float, float]:
    """Median seconds of a cycle and of an update."""
    cycle, update = np.median(turns.costs[name], axis=0)
    return float(cycle), float(update)


def make_ours(config: TrainConfig, cycles: int, fill: int) -> Ours:
    """One run with a full buffer."""
    ours = Ours(config, cycles)
    ours.fill(fill)
    say(f"{config.observation}, {config.replay}: filled with {ours.step:,} steps")
    return ours


def measure(meters: dict[str, Any], turns: int) -> Turns:
    """All in turns; gives up where a run of ours has failed, as that is no training any more."""
    measured = Turns(meters, turns)
    for name, meter in meters.items():
        if isinstance(meter, Ours) and meter.failed():
            sys.exit(f"{name} has come to a loss that is not finite")
    return measured


def features(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The part about features, and its row of the table of floors."""
    from benchmarks.training_peers import FOUR_WEIGHTS, TWO_WEIGHTS, feature_peers

    capacity, cycles = arguments.capacity, arguments.cycles or 100
    base = {"observation": "features", "width": 256, "encoder_depth": 1, "depth": 3}
    config = partial(TrainConfig, **base, capacity=capacity, precision="float32")  # pyright: ignore
    ours = {
        name: make_ours(config(agent="cn", replay=replay), cycles, arguments.fill)
        for name, replay in ((DER, "der"), (STANDARD, "standard"))
    }
    peers = feature_peers(capacity, cycles)
    say("peers on features: filled")
    floor = Floor(ours[DER].driver, cycles)
    turns = measure(ours | peers | {FLOOR: floor}, arguments.turns)
    gflop = dict.fromkeys(ours, floor.gflop) | {name: peers[name].gflop() for name in peers}
    rows = [[name, f"{gflop[name]:.2f}", *map(rate, middle(turns, name))] for name in gflop]
    heads = ("GFLOP", "updates/s, whole cycle", "updates/s, update alone")
    ratios = []
    for name in ours:
        for peer in peers:
            goal = PEER_GOAL if peer in (TWO_WEIGHTS, FOUR_WEIGHTS) else None
            quicker = turns.ratios(peer, name)
            ratios.append([name, peer, *(times_as_much(column, goal) for column in quicker.T)])
    parts = [
        "## Features",
        FEATURE_NOTES.format(capacity=capacity),
        table(("agent", *heads), rows),
        "How many times as quick Windvane is, turn by turn:",
        table(("Windvane's", "beside", "whole cycle", "update alone"), ratios),
    ]
    return parts, floor_row("features", turns, floor)


def pixels(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The part about pixels, and its row of the table of floors."""
    from benchmarks.training_peers import PICTURES, pixel_peers

    cycles = arguments.cycles or 20
    changes = {"agent": "cn", "replay": "der", "precision": "float32"}
    config = TrainConfig.preset("paper-minecart", **changes, capacity=arguments.capacity)
    ours = make_ours(config, cycles, arguments.fill)
    peers = pixel_peers(cycles)
    floor = Floor(ours.driver, cycles)
    turns = measure({DER: ours} | peers | {FLOOR: floor}, arguments.turns)
    gflop = {DER: floor.gflop} | {name: peers[name].gflop() for name in peers}
    rows = [
        [name, f"{gflop[name]:.2f}", rate(cycle / INTERVAL), rate(cycle), rate(update)]
        for name in gflop
        for cycle, update in [middle(turns, name)]
    ]
    quoted = ["-", f"{AUTHORS_STEPS}", f"{AUTHORS_UPDATES}", "-"]
    rows.insert(1, ["the authors' program, CN + DER (quoted)", *quoted])
    quicker = 1 / np.asarray(turns.costs[DER])[:, 0] / AUTHORS_UPDATES
    ratios = [["the authors' program", times_as_much(quicker, AUTHORS_GOAL), "-"]]
    for peer in peers:
        ratios.append([peer, *(times_as_much(column) for column in turns.ratios(peer, DER).T)])
    heads = ("GFLOP", "agent steps/s", "updates/s, whole cycle", "updates/s, update alone")
    parts = [
        "## Pixels",
        PIXEL_NOTES.format(pictures=PICTURES),
        table(("agent", *heads), rows),
        "How many times as quick Windvane's CN + DER is, turn by turn:",
        table(("beside", "whole cycle", "update alone"), ratios),
    ]
    return parts, floor_row("pixels", turns, floor)


def floor_row(kind: str, turns: Turns, floor: Floor) -> list[str]:
    """What an update takes beside its matrix products alone."""
    whole, bare = middle(turns, DER)[1], middle(turns, FLOOR)[1]
    return [
        kind, f"{floor.gflop:.2f}", f"{1e3 * bare:,.2f}", f"{floor.gflop / bare:,.0f}",
        f"{1e3 * whole:,.2f}", times_as_much(turns.ratios(DER, FLOOR)[:, 1]),
    ]  # fmt: skip


def compare(arguments: argparse.Namespace) -> None:
    """All of the page; a part is printed as soon as it is measured."""
    parts: list[str] = []
    command = " ".join(["python -m benchmarks.training", *sys.argv[1:]])

    def write(*more: str) -> None:
        parts.extend(more)
        print("\n\n".join(more), end="\n\n", flush=True)

    write(
        "# How quickly agents train",
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {processor()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, jax {jax.__version__}, "
        f"numpy {np.__version__}, torch {version('torch')}, morl-baselines {PEER_VERSION}, "
        f"mo-gymnasium {version('mo-gymnasium')}; load {os.getloadavg()[0]:.1f} before it began",
        NOTES,
    )
    floors = []
    for part in (features, pixels):
        texts, row = part(arguments)
        write(*texts)
        floors.append(row)
    heads = ("CN + DER on", "GFLOP", "floor, ms", "GFLOP/s", "update, ms", "update / floor")
    write("## The floor of an update", FLOOR_NOTES, table(heads, floors))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n\n".join(parts) + "\n")
        say(f"written: {arguments.out}")


def side_by_side(arguments: argparse.Namespace) -> None:
    """Whole cycles of many runs; a row is printed once it is known."""
    config = TrainConfig.preset(
        "paper-minecart", agent="cn", replay="der", capacity=arguments.capacity
    ).resolved()
    device = jax.devices()[0]
    print(
        f"{device.device_kind}, jax {jax.__version__}, `paper-minecart`, CN + DER, "
        f"{config.precision}, capacity {config.capacity:,}; a cycle is for all runs together, "
        "memory is the most so far"
    )
    print(table(("runs", "ms a cycle", "ms a cycle and run", "1M steps", "peak GB"), []))
    for number in arguments.runs:
        ours = Ours(config, arguments.cycles or 250, number)
        ours.fill(arguments.fill)
        say(f"{number} runs: filled with {ours.step:,} steps")
        # The first compiles.
        seconds = float(np.median([ours.cycle() for _ in range(arguments.turns + 1)][1:]))
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use")
        memory = f"{peak / 1e9:,.2f}" if peak else "-"
        row = [f"{number}", f"{1e3 * seconds:,.2f}", f"{1e3 * seconds / number:,.2f}",
               f"{seconds * 1e6 / INTERVAL:,.0f} s", memory]  # fmt: skip
        print("| " + " | ".join(row) + " |", flush=True)
        if ours.failed():
            say("a run diverged: its loss is not finite")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the page")
    parser.add_argument("--capacity", type=int, default=100_000, help="that of replay buffers")
    parser.add_argument("--fill", type=int, help="steps before the first is measured; until full")
    parser.add_argument("--turns", type=int, default=7, help="repetitions; the median counts")
    parser.add_argument(
        "--cycles", type=int, help="timed at once; default: features 100, pixels 20, --runs 250"
    )
    parser.add_argument(
        "--runs", type=int, nargs="+", help="this many runs side by side on pixels, without peers"
    )
    arguments = parser.parse_args()
    arguments.fill = arguments.fill or arguments.capacity * 5 // 4
    if arguments.runs:
        side_by_side(arguments)
        return
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(
            f"This needs morl-baselines {PEER_VERSION} and what it imports (missing: "
            f"{', '.join(missing)}): run `make bench-training`, which installs it apart, or "
            "measure without it with --runs."
        )
    compare(arguments)


if __name__ == "__main__":
    main()
