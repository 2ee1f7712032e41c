"""Compute the coverage sets that ship with the package: `make oracle-data`.

The paper's instance at its discount, stochastic and deterministic.
"""

from rich.console import Console

from windvane import oracle
from windvane.envs.minecart import Minecart
from windvane.oracle import minecart
from windvane.progress import progress_display

GAMMA = 0.98


def main() -> None:
    """Solve, save, and tell where."""
    console = Console()
    for env in (Minecart(), Minecart(deterministic=True)):
        with progress_display(console) as progress:
            coverage = minecart.solve(env, GAMMA, progress)
        path = oracle.shipped_path(env, GAMMA)
        coverage.save(path)
        console.print(f"{path}: {len(coverage)} entries, {coverage.errors}")


if __name__ == "__main__":
    main()
