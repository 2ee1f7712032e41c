"""Rollouts of many native environments in one compiled call, and how to time them.

    python -m benchmarks.rollout [--copies 4096] [--steps 64]

Run by itself it measures Minecart and Deep Sea Treasure on whatever device JAX finds; it needs
neither Gymnasium nor the peers.
"""

import argparse
import time
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.episodes import EpisodeState, reset_episode, step_autoreset
from windvane.envs.minecart import Minecart

NATIVE = {"Minecart": Minecart, "DST": DeepSeaTreasure}


def median_rate(run: Callable[[], int], seconds: float, repeats: int = 3) -> float:
    """Steps a second: the median of `repeats` measurements of about `seconds` each."""
    run()
    rates = []
    for _ in range(repeats):
        began, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - began) < seconds:
            steps += run()
        rates.append(steps / elapsed)
    return float(np.median(rates))


def our_rollout(problem: str, kind: str, copies: int, steps: int = 16) -> Callable[[], int]:
    """Steps of `copies` environments with random actions, `steps` of them a call."""
    env = NATIVE[problem](observation=kind)

    @eqx.filter_jit
    def chunk(episodes: EpisodeState, keys: jax.Array) -> tuple[EpisodeState, jax.Array, jax.Array]:
        def one(episode: EpisodeState, key: jax.Array):
            def step(carry, key):
                action_key, step_key = jax.random.split(key)
                action = jax.random.randint(action_key, (), 0, env.num_actions)
                carry, transition = step_autoreset(env, carry, action, step_key)
                current = env.views(carry.state)[1]
                # One new frame a step: the other one of the observation was drawn a step ago.
                new = env.frame(current) if kind == "pixels" else env.features(carry.state)
                return carry, (new.sum(dtype=new.dtype), transition.reward.sum())

            return jax.lax.scan(step, episode, jax.random.split(key, steps))

        after, (seen, rewards) = jax.vmap(one)(episodes, keys)
        return after, seen, rewards

    first = jax.random.split(jax.random.key(0), copies)
    episodes = eqx.filter_jit(jax.vmap(lambda key: reset_episode(env, key)))(first)
    keys = jax.random.split(jax.random.key(1), copies)
    holder = [episodes]

    def run() -> int:
        holder[0], *rest = chunk(holder[0], keys)
        jax.block_until_ready(rest)
        return copies * steps

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    print(f"{arguments.copies} copies on {jax.devices()[0].device_kind}, jax {jax.__version__}")
    for problem in NATIVE:
        for kind in ("features", "pixels"):
            run = our_rollout(problem, kind, arguments.copies, arguments.steps)
            rate = median_rate(run, arguments.seconds)
            print(f"{problem} {kind}: {rate:,.0f} steps a second", flush=True)


if __name__ == "__main__":
    main()
