# ruff: noqa: E501 (the lines of the report are as long as they are)
"""What the settings of the preset `quick-dst` do (`make study-quick`).

CN with DER beside MO with standard replay on Deep Sea Treasure's features, regular weight changes:
about five minutes on two cores. Interruptible and resumable; what is there is not trained again.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from scripts.shared import trained
from windvane.experiments.paper.grids import Grid
from windvane.experiments.report.markdown import pipes
from windvane.experiments.report.statistics import difference
from windvane.experiments.runs.cells import Cell
from windvane.experiments.runs.provenance import device
from windvane.experiments.runs.store import read_summary
from windvane.training.config import TrainConfig

GRID = Grid("quick", "quick-dst", (Cell("cn", "der", "regular"), Cell("mo", "standard", "regular")))
PAPER = TrainConfig.preset("paper-dst")
VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's learning rate and exploration": {
        "learning_rate": PAPER.learning_rate,
        "epsilon_end": PAPER.epsilon_end,
    },
    "`quick-dst`": {},
    "`quick-dst`, twice as long": {"steps": 200_000},
}
SEEDS = 5


def main() -> None:
    """Train what is missing and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path("out/study-quick"))
    parser.add_argument("--out", type=Path, default=Path("results/training.md"))
    arguments = parser.parse_args()
    console, lines = Console(), []
    for name, changes in VARIANTS.items():
        console.rule(name)
        paths = trained(GRID, arguments.store, SEEDS, console, **changes)
        lines.append(_line(name, changes, paths))
    arguments.out.write_text(_report(lines))
    console.print(f"written: {arguments.out}")


def _line(name: str, changes: dict[str, Any], paths: list[Path]) -> list[str]:
    config = TrainConfig.preset("quick-dst", **changes)
    last = [read_summary(path).last for path in paths]
    cn, mo = (dict(enumerate(part)) for part in (last[:SEEDS], last[SEEDS:]))
    means = [float(np.mean(list(runs.values()))) for runs in (cn, mo)]
    ours = difference(mo, cn)
    value = None if ours is None else ours.p
    p = "-" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"
    settings = [f"{config.learning_rate:g}", f"{config.epsilon_end:g}", f"{config.steps:,}"]
    return [name, *settings, *(f"{x:.4f}" for x in means), f"{means[0] / means[1]:.0%}", p]


def _report(lines: list[list[str]]) -> str:
    head = [
        "",
        "learning rate",
        "last exploration",
        "steps",
        "CN, DER",
        "MO, standard",
        "CN / MO",
        "p",
    ]
    return f"""# Deep Sea Treasure on features, on two cores

`make study-quick` on {device()}: preset `quick-dst`, map `dcrac` (that of the program published with DCRAC, not known to be the paper's), regular weight
changes, {SEEDS} seeds. Mean regret of the last quarter of the steps, and the p-value of the difference on the same seeds (Student):

{pipes(head, lines)}

Results on pixels, beside the paper's, are in [paper](paper/README.md), of speed in [training-speed.md](training-speed.md).
"""


if __name__ == "__main__":
    main()
