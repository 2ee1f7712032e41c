# ruff: noqa: E501 (the lines of the report are as long as they are)
"""What the episodes of Minecart's runs tell: `python -m scripts.study_records out/paper`.

The paper prints average episodic regrets and does not say how they were averaged over a run. Early
episodes are long and bad, so there are few of them, and it matters whether every episode counts the
same or every stretch of steps. This takes the means of a store's runs in several ways, and tells how
long episodes are and which runs diverged; nothing is trained.
"""

import argparse
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from rich.console import Console

from scripts.shared import largest, mean, pair, printed
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.experiments.report.markdown import pipes
from windvane.experiments.runs.cells import Cell, cell_of, setting
from windvane.experiments.runs.store import Store, read_run
from windvane.runs.tables import Records
from windvane.training.config import TrainConfig

PRESET = TrainConfig.preset("paper-minecart")
STEPS, LIMIT = PRESET.steps, Minecart().time_limit
STRETCHES = (5_000, 1_000, 200)
"""The paper says of its plots that they are smoothed over 200 steps."""
LOST = 10.0
"""Loss of a run whose values diverge; 0.03 is usual."""
AROUND, EACH = 60_000, 10_000
"""Steps told of before and after the moment when a lost run's loss exceeds 1, and of a line."""


def main() -> None:
    """Write the report of a store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", type=Path, help="of `windvane reproduce minecart`")
    parser.add_argument("--out", type=Path, default=Path("results/minecart-records.md"))
    arguments = parser.parse_args()
    try:
        text = report(arguments.store)
    except InputError as error:
        parser.error(str(error))
    arguments.out.write_text(text)
    Console().print(f"written: {arguments.out}")


def report(folder: Path) -> str:
    """What is told of a store's runs at the preset's settings."""
    runs = [read_run(path)[:2] for path in Store(folder).paths()]
    runs = [run for run in runs if setting(run[0]) == setting(PRESET)]
    if not runs:
        raise InputError(f"{folder} has no run of preset paper-minecart")
    grouped = groupby(runs, lambda run: cell_of(run[0]))
    cells = {cell: [records for _, records in group] for cell, group in grouped}
    lost = "\n\n".join(_lost(*run) for run in runs if largest(run[1]["loss"]) > LOST) or "None."
    ways = ["episodes", *(f"stretches of {n:,} steps" for n in STRETCHES), "steps"]
    episodes = ["steps an episode", "stopped", "from the first tenth", "largest losses"]
    return f"""# What the episodes of Minecart's runs tell

`python -m scripts.study_records out/paper`. This needs the records of all episodes, which are too large to be kept here, and are there
after the commands of [paper/README.md](paper/README.md) that train them. What it says about the paper's table is in
[docs/differences.md](../docs/differences.md#minecart).

## A mean over what

Mean regret of all / of the last quarter of a run's steps, where what counts the same is every episode (as everywhere else here), every
stretch of steps (by the mean of the episodes that end in it; those where none ends do not count), or every step (by the regret of its
episode).

{pipes(["", "seeds", *ways, "paper"], _mean_lines(cells))}

## Episodes

Their mean length, how many are stopped after {LIMIT:,} steps, and how many end in the first tenth of the steps (the least and the most of
the runs); then the largest loss of each run.

{pipes(["", *episodes], [_episode_line(*cell) for cell in cells.items()])}

## Lost runs

Those whose loss exceeds {LOST:.0f}, around the moment when it exceeds 1.

{lost}
"""


def run_means(records: Records, steps: int) -> Float[np.ndarray, "ways 2"]:
    """A run's mean regret overall and in its last quarter, in every way of the table: they differ
    in how much an episode counts.
    """
    ends, regrets = records["step"], records["regret"]
    late = ends > steps * 3 // 4
    stretches = [stretch_counts(ends, each) for each in STRETCHES]
    ways = [np.ones_like(regrets), *stretches, records["length"]]
    return np.asarray(
        [(mean(regrets, counts), mean(regrets[late], counts[late])) for counts in ways]
    )


def stretch_counts(ends: Int[np.ndarray, " n"], each: int) -> Float[np.ndarray, " n"]:
    """How much episodes count that end at these steps if every stretch of `each` steps in which one
    ends counts 1.
    """
    stretch = (ends - 1) // each
    return 1 / np.bincount(stretch)[stretch]


def _mean_lines(cells: dict[Cell, list[Records]]) -> list[list[str]]:
    """A line a cell, and how ours compare with the paper's."""
    lines, ratios = [], []
    for cell, runs in cells.items():
        ours, paper = np.mean([run_means(run, STEPS) for run in runs], 0), printed("minecart", cell)
        lines.append(["-".join(cell), str(len(runs)), *map(pair, ours), pair(paper)])
        ratios.append(ours / np.asarray(paper, float))
    known = [ratio for ratio in ratios if np.isfinite(ratio).all()]
    middle = np.median(known, 0) if known else np.full_like(ratios[0], np.nan)
    return [*lines, ["ours / the paper's, median of the cells", "", *map(pair, middle), ""]]


def _episode_line(cell: Cell, runs: list[Records]) -> list[str]:
    length = np.mean([STEPS / len(run["step"]) for run in runs])
    stopped = [(run["length"] >= LIMIT).mean() for run in runs]
    early = [(run["step"] <= STEPS // 10).mean() for run in runs]
    losses = ", ".join(f"{largest(run['loss']):.2f}" for run in runs)
    shares = [f"{min(x):.1%} to {max(x):.1%}" for x in (stopped, early)]
    return ["-".join(cell), f"{length:.0f}", *shares, losses]


def _lost(config: TrainConfig, records: Records) -> str:
    """How it came about, and how the run went on to its end."""
    ends = records["step"]
    moment = int(ends[np.flatnonzero(records["loss"] > 1)[0]]) // EACH * EACH
    near = range(moment - AROUND, moment + AROUND + EACH, EACH)
    edges = [edge for edge in near if 0 <= edge < STEPS] + [STEPS]
    lines = []
    for start, end in pairwise(edges):
        here = (ends > start) & (ends <= end)
        if here.any():
            loss, regret, length = (records[x][here].mean() for x in ("loss", "regret", "length"))
            told = [f"{loss:.3f}", f"{regret:.3f}", f"{length:.0f}"]
            lines.append([f"{start:,} to {end:,}", *told])
    name = f"{'-'.join(cell_of(config))}, seed {config.seed_numbers[0]}"
    return pipes([name, "loss", "regret", "steps an episode"], lines)


if __name__ == "__main__":
    main()
