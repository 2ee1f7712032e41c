"""Cost of the replay buffers inside a compiled loop, by rule, capacity and number of runs.

    python -m benchmarks.replay [--capacities 10000 100000] [--runs 1]

A transition is a compact Minecart one: two states, an action and a reward. Buffers are filled
first; episodes are about 40 steps long. A cycle is the replay work of one learning step: four
additions, one sample of 64 and its new priorities.
"""

import argparse
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from windvane.envs.minecart import Minecart
from windvane.replay.diverse import DiverseReplay
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.selective import SelectiveReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay

BATCH, INTERVAL = 64, 4


def rules(capacity: int) -> dict[str, Any]:
    signature = ReturnSignature(3, 0.98, reward=lambda transition: transition["reward"])
    return {
        "standard": StandardReplay(capacity),
        "selective": SelectiveReplay(capacity),
        "exploration": ExplorationReplay(capacity),
        "diverse": DiverseReplay(capacity, signature, trajectories=max(capacity // 16, 8)),
    }


def example() -> dict[str, Any]:
    state = Minecart().reset(jax.random.key(0))
    return {"before": state, "after": state, "action": jnp.zeros((), jnp.int8),
            "reward": jnp.zeros(3)}  # fmt: skip


class Meter:
    """One rule, `runs` buffers side by side."""

    def __init__(self, buffer: Any, runs: int):
        self.buffer, self.runs = buffer, runs
        keys = jax.random.split(jax.random.key(0), runs)
        states = jax.vmap(lambda key: buffer.init(example(), key))(keys)
        self.states = jax.tree.map(lambda leaf: leaf.copy(), states)
        blank = example()

        def add(state: Any, key: jax.Array) -> Any:
            draws = jax.random.normal(key, (5,))
            transition = {**blank, "reward": draws[:3]}
            ended = jax.random.uniform(jax.random.fold_in(key, 1)) < 1 / 40
            return buffer.add(state, transition, ended, draws[3])

        def learn(state: Any, key: jax.Array) -> Any:
            batch = buffer.sample(state, key, BATCH)
            errors = jnp.abs(batch.transitions["reward"][:, 0])
            return buffer.update_priorities(state, batch.places, errors)

        def cycle(state: Any, key: jax.Array) -> tuple[Any, None]:
            *add_keys, sample_key = jax.random.split(key, INTERVAL + 1)
            for add_key in add_keys:
                state = add(state, add_key)
            return learn(state, sample_key), None

        self.adds = self._compile(lambda state, key: (add(state, key), None))
        self.learns = self._compile(lambda state, key: (learn(state, key), None))
        self.cycles = self._compile(cycle)

    def _compile(self, step: Any) -> Any:
        @eqx.filter_jit(donate="all-except-first")
        def many(keys: jax.Array, states: Any) -> Any:
            return jax.vmap(lambda state, keys: jax.lax.scan(step, state, keys)[0])(states, keys)

        return many

    def run(self, program: Any, steps: int, seed: int) -> float:
        """Microseconds a step of all runs together."""
        keys = jax.random.split(jax.random.key(seed), (self.runs, steps))
        jax.block_until_ready(keys)
        began = time.perf_counter()
        self.states = jax.block_until_ready(program(keys, self.states))
        return (time.perf_counter() - began) / steps * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capacities", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    device = jax.devices()[0].device_kind
    print(f"{device}, jax {jax.__version__}, {arguments.runs} runs; microseconds for all runs")
    print("| rule | capacity | add | sample 64 + update | cycle | MB a run |")
    print("|---|---|---|---|---|---|")
    for capacity in arguments.capacities:
        for name, buffer in rules(capacity).items():
            meter = Meter(buffer, arguments.runs)
            size = sum(leaf.nbytes for leaf in jax.tree.leaves(meter.states)) / arguments.runs
            steps = arguments.steps
            for seed in range(-(-capacity * 5 // 4 // steps)):
                meter.run(meter.adds, steps, seed)
            costs = []
            for program in (meter.adds, meter.learns, meter.cycles):
                meter.run(program, steps, 1)
                costs.append(sorted(meter.run(program, steps, seed) for seed in (2, 3, 4))[1])
            numbers = " | ".join(f"{cost:.1f}" for cost in costs)
            print(f"| {name} | {capacity:,} | {numbers} | {size / 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    main()
