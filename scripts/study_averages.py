# ruff: noqa: E501 (the lines of the report are as long as they are)
"""What a mean regret is a mean over: `python -m scripts.study_averages out/paper`.

The paper prints average episodic regrets and does not say how they were averaged over a run. Early
episodes are long and bad, so there are few of them, and it matters whether every episode counts the
same or every stretch of steps. This takes the means of a store's Minecart runs in several ways;
nothing is trained.
"""

import argparse
from itertools import groupby
from pathlib import Path
from typing import get_args

import numpy as np
from jaxtyping import Float, Int
from rich.console import Console

from windvane.errors import InputError
from windvane.experiments.digest import setting
from windvane.experiments.markdown import pipes
from windvane.experiments.published import PeriodName, published_regret
from windvane.experiments.store import Store, read_run
from windvane.training.config import TrainConfig

PRESET = TrainConfig.preset("paper-minecart")
STRETCHES = (5_000, 1_000, 200)
"""The paper says of its plots that they are smoothed over 200 steps."""
HEAD = [
    "",
    "seeds",
    "episodes",
    *(f"stretches of {n:,} steps" for n in STRETCHES),
    "steps",
    "paper",
]


def main() -> None:
    """Write the report of a store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", type=Path, help="of `windvane reproduce minecart`")
    parser.add_argument("--out", type=Path, default=Path("results/minecart-averages.md"))
    arguments = parser.parse_args()
    try:
        text = report(arguments.store)
    except InputError as error:
        parser.error(str(error))
    arguments.out.write_text(text)
    Console().print(f"written: {arguments.out}")


def report(folder: Path) -> str:
    """The tables of a store's runs at the preset's settings."""
    runs = [read_run(path) for path in Store(folder).paths()]
    runs = [run for run in runs if setting(run[0]) == setting(PRESET)]
    if not runs:
        raise InputError(f"{folder} has no run of preset paper-minecart")
    lines, ratios = [], []
    for cell, group in groupby(
        runs, lambda run: (run[0].agent, run[0].replay, str(run[0].weights))
    ):
        means = [run_means(run[1], PRESET.steps) for run in group]
        ours, printed = np.mean(means, 0), _printed(*cell)
        lines.append(["-".join(cell), str(len(means)), *map(_pair, ours), _pair(printed)])
        ratios.append(ours / printed)
    middle = np.nanmedian(ratios, 0)
    lines.append(["ours / the paper's, median of the cells", "", *map(_pair, middle), ""])
    return f"""# What a mean regret is a mean over

`python -m scripts.study_averages out/paper`. This needs the records of all episodes, which are too large to be kept here, and are there
after the commands of [paper/README.md](paper/README.md) that train them. What it says about the paper's table is in
[docs/differences.md](../docs/differences.md#minecart).

Mean regret of all / of the last quarter of a run's steps, where what counts the same is every episode (as everywhere else here), every
stretch of steps (by the mean of the episodes that end in it; those where none ends do not count), or every step (by the regret of its
episode).

{pipes(HEAD, lines)}
"""


def run_means(records: dict[str, np.ndarray], steps: int) -> Float[np.ndarray, "ways 2"]:
    """A run's mean regret overall and in its last quarter, in every way of the table."""
    ends, regrets = records["step"].astype(int), records["regret"]
    late = ends > steps * 3 // 4
    lengths = records["length"]
    return np.asarray(
        [
            (regrets.mean(), regrets[late].mean()),
            *(stretch_means(ends, regrets, steps, each) for each in STRETCHES),
            (
                np.average(regrets, weights=lengths),
                np.average(regrets[late], weights=lengths[late]),
            ),
        ]
    )


def stretch_means(
    ends: Int[np.ndarray, " n"], regrets: Float[np.ndarray, " n"], steps: int, each: int
) -> tuple[float, float]:
    """The mean over stretches of `each` steps of the mean regret of the episodes that end there:
    of all stretches, and of those in the last quarter.
    """
    number = (ends - 1) // each
    counts = np.bincount(number, minlength=steps // each)
    ended = counts > 0
    means = np.bincount(number, regrets, minlength=steps // each)[ended] / counts[ended]
    late = np.flatnonzero(ended) * each >= steps * 3 // 4
    return float(means.mean()), float(means[late].mean())


def _printed(agent: str, replay: str, weights: str) -> Float[np.ndarray, " 2"]:
    values = [published_regret("minecart", weights, agent, replay, p) for p in get_args(PeriodName)]
    return np.asarray([np.nan if value is None else value for value in values])


def _pair(pair: Float[np.ndarray, " 2"]) -> str:
    return " / ".join(f"{value:.3f}" for value in pair)


if __name__ == "__main__":
    main()
