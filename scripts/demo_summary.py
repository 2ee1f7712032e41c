"""The last lines of `make demo`: in words, what was learned, and which file to open first.

python -m scripts.demo_summary demo-out
"""

import argparse
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import windvane
from windvane.envs.environment import Environment

WEIGHTS = {
    "80% of the weight on ore 1": (0.8, 0.1, 0.1),
    "80% of the weight on ore 2": (0.1, 0.8, 0.1),
    "90% of the weight on fuel": (0.05, 0.05, 0.9),
}
TRIPS = 20


def trips(policy: windvane.Policy, weights: tuple[float, ...]) -> tuple[np.ndarray, float]:
    """What a trip earns in each objective and how many steps it takes, on average."""
    env = policy.world
    assert isinstance(env, Environment)
    reset, step, observe = (
        eqx.filter_jit(eqx.filter_vmap(function)) for function in (env.reset, env.step, env.observe)
    )
    key = jax.random.key(0)
    states, under_way = reset(jax.random.split(key, TRIPS)), np.ones(TRIPS, bool)
    earned, steps = np.zeros((TRIPS, policy.spec.num_objectives)), 0
    for time in range(env.time_limit):
        actions = jnp.asarray(policy.act(np.asarray(observe(states)), weights))
        keys = jax.random.split(jax.random.fold_in(key, time), TRIPS)
        states, rewards, ended = step(states, actions, keys)
        earned += np.where(under_way[:, None], rewards, 0)
        steps += under_way.sum()
        under_way &= ~np.asarray(ended)
        if not under_way.any():
            break
    return earned.mean(0), steps / TRIPS


def below_optimum(policy: windvane.Policy) -> tuple[float, float]:
    """Mean and largest regret over a grid of weights."""
    found = windvane.evaluate(policy, episodes=2)
    return float(found.regret.mean()), float(found.regret.max())


def main() -> None:
    """Load, play and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    fast, cn = (
        windvane.Policy.load(folder / name / "policies" / "seed-0.safetensors")
        for name in ("fast", "cn")
    )
    mean, worst = below_optimum(fast)
    print("\nWhat was learned")
    print("  One network now drives the cart for every weight vector. Over a grid of weights it is")
    print(f"  {mean:.3f} below the optimum on average, {worst:.3f} at worst. An average trip with")
    for weight, weights in WEIGHTS.items():
        (first, second, fuel), steps = trips(fast, weights)
        print(f"    {weight} takes {steps:.0f} steps and {-fuel:.2f} of fuel,")
        print(f"      and brings {first:.2f} of ore 1 and {second:.2f} of ore 2")
    mean, worst = below_optimum(cn)
    print(f"  CN, the paper's agent, has seen 60,000 steps of one cart. It is {mean:.3f} below the")
    print(f"  optimum on average, {worst:.3f} at worst; it goes on learning while it acts.")
    print("\nOpen first")
    print(f"  {folder}/first-ore.gif, {folder}/second-ore.gif  the same network at other mines")
    print(f"  {folder}/front/front.png  all values that it reaches")
    print(f"  .venv/bin/windvane studio {folder}  drag the weights yourself, in the browser")


if __name__ == "__main__":
    main()
