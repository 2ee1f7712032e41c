# ruff: noqa: E501 (the lines of the report are as long as they are)
"""Try to catch the oracle lying, at full size, and write down what came out: `make oracle-check`.

Every plan of the paper's instance is played 10,000 times; a million random rollouts and the
peer's own policies are replayed against it at 1,000 random weight vectors.
"""

import argparse
import time
from pathlib import Path

import jax
import numpy as np

from tests.oracle import attack
from windvane import oracle
from windvane.envs.minecart import Minecart

GAMMA = 0.98


def main() -> None:
    """Run all checks and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rollouts", type=int, default=1_000_000)
    parser.add_argument("--plays", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("results/oracle.md"))
    arguments = parser.parse_args()
    began = time.perf_counter()
    env = Minecart()
    coverage = oracle.coverage_set(env, GAMMA)
    weights = np.random.default_rng(3).dirichlet(np.ones(3), 1000)
    optimal = np.asarray(coverage.optimal_value(weights), float)

    deviations = attack.plan_deviations(env, coverage, arguments.plays)
    print(f"plans played, largest deviation {deviations.max():.2f}", flush=True)
    lists = attack.random_shooting(env, GAMMA, arguments.rollouts, weights)
    shooting = attack.judge(env, GAMMA, lists, weights, optimal, plays=500, again=50_000)
    print(f"random shooting: {shooting}", flush=True)
    short = Minecart(time_limit=60)
    lists = attack.peer_policies(env)
    peer = attack.judge(short, GAMMA, lists, weights, optimal, plays=200, again=5000)
    print(f"the peer's policies: {peer}", flush=True)

    groups = list(dict.fromkeys(coverage.groups))
    errors = "\n".join(f"| {what} | {error:.2g} |" for what, error in coverage.errors.items())
    device = jax.devices()[0].device_kind
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(f"""# The oracle of Minecart under attack

`make oracle-check` ({device}, jax {jax.__version__}, {time.perf_counter() - began:.0f} s). The
paper's instance at a discount of {GAMMA}: {len(coverage)} policies, {len(groups)} distinct behaviours.

| stated error | |
|---|---|
{errors}

- **Plans.** Each played {arguments.plays:,} times: of {deviations.size} mean returns (an entry and objective
  each) the one furthest from its stated value is {deviations.max():.2f} standard errors away,
  {int((deviations > 3).sum())} are more than 3.
- **Random shooting.** {arguments.rollouts:,} rollouts; {shooting.lists:,} action lists that were the luckiest
  for some of 1,000 random weight vectors were replayed 500 times and the best 20 of them 50,000 times: at
  most {shooting.excess:+.5f} above the optimum (standard error {shooting.error:.5f}).
- **The peer.** {peer.lists} policies behind MO-Gymnasium's `pareto_front`, replayed at the same weights: at
  most {peer.excess:+.5f} above the optimum (standard error {peer.error:.5f}).
""")
    print(f"written: {arguments.out}")
    if deviations.max() >= 3.6 or shooting.beaten or peer.beaten:
        raise SystemExit("the oracle was caught")


if __name__ == "__main__":
    main()
