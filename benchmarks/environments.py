"""Speed of the environments beside MO-Gymnasium's, all measured in this one run.

    python -m benchmarks.environments [--quick] [--out FILE.md]

The peer's numbers are one environment stepped in a Python loop and its vector class. Ours are
many copies through the Gymnasium vector class (numbers handed over as NumPy arrays at every step),
many copies in one compiled rollout (as training uses them), and one copy through Gymnasium. All
take uniformly random actions and reset ended episodes. A run repeats each measurement and keeps
the median, since machines are noisy.
"""

import argparse
import os
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")

import cv2
import gymnasium
import jax
import mo_gymnasium
import numpy as np
from mo_gymnasium.wrappers.vector import MOSyncVectorEnv
from rich.console import Console
from rich.table import Table

from benchmarks.rollout import median_rate, our_rollout

PROBLEMS = {
    "Minecart": ("windvane/Minecart-v0", "minecart-v0", "minecart-rgb-v0"),
    "DST": ("windvane/DeepSeaTreasure-v0", "deep-sea-treasure-v0", "deep-sea-treasure-v0"),
}
GOALS = {
    ("Minecart", "features"): 100,
    ("Minecart", "pixels"): 200,
    ("DST", "features"): 50,
    ("DST", "pixels"): 500,
}


def shrink(picture: np.ndarray) -> np.ndarray:
    """A peer's picture at the paper's size."""
    return cv2.resize(picture, (48, 48), interpolation=cv2.INTER_AREA)


def peer_single(problem: str, kind: str) -> Callable[[], int]:
    _, features_id, pixels_id = PROBLEMS[problem]
    rendered = kind == "pixels" and problem == "DST"
    env = mo_gymnasium.make(
        pixels_id if kind == "pixels" else features_id,
        render_mode="rgb_array" if rendered else None,
    )
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, env.action_space.n, 200)

    def run() -> int:
        for action in actions[: 20 if kind == "pixels" else 200]:
            seen, _, terminated, truncated, _ = env.step(int(action))
            if kind == "pixels":
                shrink(env.render() if rendered else seen)
            if terminated or truncated:
                env.reset()
        return 20 if kind == "pixels" else 200

    return run


def peer_vector(problem: str, kind: str, copies: int = 16) -> Callable[[], int]:
    _, features_id, pixels_id = PROBLEMS[problem]
    name = pixels_id if kind == "pixels" else features_id
    rendered = kind == "pixels" and problem == "DST"
    mode = "rgb_array" if rendered else None
    envs = MOSyncVectorEnv([partial(mo_gymnasium.make, name, render_mode=mode)] * copies)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, envs.single_action_space.n, (8, copies))

    def run() -> int:
        for row in actions[: 2 if kind == "pixels" else 8]:
            seen = envs.step(row)[0]
            if kind == "pixels":
                for picture in [env.render() for env in envs.envs] if rendered else seen:
                    shrink(picture)
        return copies * (2 if kind == "pixels" else 8)

    return run


def our_vector(problem: str, kind: str, copies: int) -> Callable[[], int]:
    envs = gymnasium.make_vec(
        PROBLEMS[problem][0],
        num_envs=copies,
        vectorization_mode="vector_entry_point",
        observation=kind,
    )
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, envs.single_action_space.n, (8, copies))

    def run() -> int:
        for row in actions:
            envs.step(row)
        return copies * len(actions)

    return run


def our_single(problem: str, kind: str) -> Callable[[], int]:
    env = gymnasium.make(PROBLEMS[problem][0], observation=kind)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, env.action_space.n, 200)

    def run() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(int(action))
            if terminated or truncated:
                env.reset()
        return 200

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the time a measurement")
    parser.add_argument("--out", type=Path, help="also write the table, as Markdown")
    arguments = parser.parse_args()
    seconds = 0.2 if arguments.quick else 2.0
    console = Console(width=150)
    heads = [
        "problem", "peer, one", "peer, vector of 16", "ours, vector class", "ours, rollout",
        "vector class / peer one", "vector class / peer vector", "goal", "ours, one",
        "one / peer one",
    ]  # fmt: skip
    table = Table(*heads, title=f"steps a second; {os.cpu_count()} cores, {jax.devices()[0]}")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for (problem, kind), goal in GOALS.items():
        copies = 65_536 if kind == "features" else 1024
        one = median_rate(peer_single(problem, kind), seconds)
        many = median_rate(peer_vector(problem, kind), seconds)
        vector = median_rate(our_vector(problem, kind, copies), seconds)
        rollout = median_rate(our_rollout(problem, kind, copies), seconds)
        single = median_rate(our_single(problem, kind), seconds)
        row = [f"{problem} {kind}", f"{one:,.0f}", f"{many:,.0f}", f"{vector:,.0f} ({copies:,})",
               f"{rollout:,.0f}", f"{vector / one:,.0f}x", f"{vector / many:,.0f}x", f"{goal}x",
               f"{single:,.0f}", f"{single / one:.2f}x"]  # fmt: skip
        table.add_row(*row)
        lines.append("| " + " | ".join(row) + " |")
        console.print(" | ".join(row))
    console.print(table)
    if arguments.out:
        about = f"`python -m benchmarks.environments`, {platform.processor() or platform.machine()}"
        versions = f"jax {jax.__version__}, mo-gymnasium {mo_gymnasium.__version__}"
        text = f"{about}, {os.cpu_count()} cores, {versions}\n\n" + "\n".join(lines) + "\n"
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text)
        console.print(f"written: {arguments.out}")


if __name__ == "__main__":
    main()
