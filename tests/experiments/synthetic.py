"""Summaries of runs that nobody ran, with numbers of the test's choice."""

from typing import Any

import numpy as np

from windvane.experiments.paper.published import published_results
from windvane.experiments.report.summary import POINTS, RunSummary
from windvane.experiments.runs.cells import Cell
from windvane.training.config import TrainConfig

PROVENANCE = {
    "version": "0.1.0",
    "commit": "abc123",
    "device": "CPU",
    "jax": "0.10.0",
    "date": "2025-01-01",
    "parallel_runs": 10,
    "seconds": 20.0,
}


def make_run(
    overall,
    *,
    agent="cn",
    replay="der",
    schedule="sparse",
    seed=0,
    last=None,
    failed=False,
    problem="dst",
    provenance=PROVENANCE,
    **changes,
):
    """One run with this regret; `changes` are to the paper's settings of the problem."""
    names: dict[str, Any] = Cell(agent, replay, schedule).settings()
    return RunSummary(
        config=TrainConfig.preset(f"paper-{problem}", **names, seeds=(seed,), **changes),
        failed=failed,
        episodes=100,
        overall=float(overall),
        last=float(overall if last is None else last),
        curve=np.linspace(0.0, 100 * float(overall), POINTS + 1)[1:],
        provenance=provenance,
    )


def make_cell(regrets, **names):
    """A cell of runs with these regrets, seeded 0, 1, 2 and so on."""
    return [make_run(regret, seed=seed, **names) for seed, regret in enumerate(regrets)]


def paper_runs(problem, seeds=10, noise=0.02, **changes):
    """All cells of the problem's tables: runs that differ a little and have the paper's means."""
    cells: dict[tuple, dict] = {}
    for cell in published_results(problem=problem):
        names = cell.cell
        cells.setdefault(names, {})[cell.period] = cell.regret
    factors = 1 + noise * np.linspace(-1, 1, seeds)
    return [
        make_run(
            regret["overall"] * factor,
            last=regret["last"] * factor,
            agent=agent,
            replay=replay,
            schedule=schedule,
            seed=seed,
            problem=problem,
            **changes,
        )
        for (agent, replay, schedule), regret in cells.items()
        for seed, factor in enumerate(factors)
    ]
