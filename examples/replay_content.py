"""What diverse replay keeps: the returns in its two halves (the paper's Figure 3, middle).

    python -m examples.replay_content --out out/replay-content.png

A cart follows the best plan for weights that change now and then, and sometimes tries another, as a
trained agent would. Its steps are added to a `DiverseReplay`. In the end the first-in
first-out half has what the last weights asked for; the diverse half still has something for all.
"""

import argparse
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from rich.console import Console

from windvane.batching import where
from windvane.envs.episodes import reset_episode, step_autoreset
from windvane.envs.minecart import Minecart
from windvane.learning.state_codec import StateCodec
from windvane.oracle import coverage_set
from windvane.plots import replay_content, save
from windvane.progress import progress_display
from windvane.replay.diverse import DiverseReplay
from windvane.replay.signature import ReturnSignature
from windvane.weights import sample_weights

GAMMA = 0.98


@eqx.filter_jit
def play_on(env, buffer, codec, state, plans, best, key, steps: int, curiosity: float):
    """Play the plan number `best` for `steps` steps, or another one for an episode, into replay."""

    def choose(key):
        other_key, choice_key = jax.random.split(key)
        other = jax.random.randint(other_key, (), 0, jax.tree.leaves(plans)[0].shape[0])
        return jnp.where(jax.random.uniform(choice_key) < curiosity, other, best)

    def step(carry, key):
        state, episode, index, memory = carry
        choice_key, step_key = jax.random.split(key)
        plan = jax.tree.map(lambda leaf: leaf[index], plans)
        action, memory = plan.act(memory, episode.state)
        episode, transition = step_autoreset(env, episode, action, step_key)
        state = buffer.add(state, codec.encode(transition), transition.ended)
        fresh = (choose(choice_key), plan.start())
        return (state, episode, *where(transition.ended, fresh, (index, memory))), None

    memory = jax.tree.map(lambda leaf: leaf[best], plans).start()
    first = (state, reset_episode(env, key), choose(key), memory)
    return jax.lax.scan(step, first, jax.random.split(key, steps))[0][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/replay-content.png"))
    parser.add_argument("--capacity", type=int, default=20_000)
    parser.add_argument("--weights", type=int, default=12, help="number of weight vectors")
    parser.add_argument("--steps", type=int, default=10_000, help="steps with each of them")
    parser.add_argument("--curiosity", type=float, default=0.1, help="share of other plans")
    arguments = parser.parse_args()
    env = Minecart()
    coverage = coverage_set(env, GAMMA)
    buffer = DiverseReplay(arguments.capacity, ReturnSignature(env.num_objectives, GAMMA))
    key = jax.random.key(0)
    codec = StateCodec(env)
    state = buffer.init(codec.blank(), key)
    with progress_display(Console()) as report:
        for change in range(arguments.weights):
            report("weights", change, arguments.weights)
            weights = sample_weights(jax.random.fold_in(key, change), env.num_objectives)
            best = coverage.best(weights)
            step_key = jax.random.fold_in(key, 1000 + change)
            how = (best, step_key, arguments.steps, arguments.curiosity)
            state = play_on(env, buffer, codec, state, coverage.plans, *how)
        report("weights", arguments.weights, arguments.weights)
    recent, diverse = buffer.signatures(state)
    path = save(replay_content(recent, diverse, env.objective_names), arguments.out)
    print(f"{int(buffer.size(state)):,} transitions held; the picture is in {path}")
    for name, returns in (("first-in first-out", recent), ("diverse", diverse)):
        spread = " ".join(f"{value:.3f}" for value in returns.std(0))
        print(f"{name:>18} half: {len(returns):4d} trajectories, standard deviation {spread}")


if __name__ == "__main__":
    main()
