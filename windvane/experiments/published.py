"""The numbers that the paper printed: every cell of its results tables, by what was run."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from windvane.errors import choose
from windvane.training.settings import AgentName, EnvName, ReplayName, WeightsName

PeriodName = Literal["overall", "last"]


@dataclass(frozen=True)
class Published:
    """One cell of one of the paper's tables. Some cells are printed in two tables."""

    table: str
    """The table's LaTeX label."""
    row: str
    """The algorithm as it is printed."""
    problem: EnvName
    weights: WeightsName
    agent: AgentName
    replay: ReplayName
    period: PeriodName
    """All steps, or the last 250,000 of Minecart and the last 25,000 of Deep Sea Treasure."""
    regret: float
    """Average episodic regret; results are of 10 runs."""
    change: float | None
    """Percent more regret than MO with standard replay, or None where the paper prints a dash."""
    bold: bool
    """Whether the paper prints the cell in bold, as it does the lowest regret."""


_CHOICES: dict[str, tuple[str, ...]] = {
    "problem": get_args(EnvName),
    "weights": get_args(WeightsName),
    "agent": get_args(AgentName),
    "replay": get_args(ReplayName),
    "period": get_args(PeriodName),
}


def published_results(
    *,
    problem: str | None = None,
    weights: str | None = None,
    agent: str | None = None,
    replay: str | None = None,
    period: str | None = None,
    table: str | None = None,
) -> tuple[Published, ...]:
    """The cells with all the given names, in the order of the paper: every cell, if none is given.

    The order is that of tables, then rows, then columns.
    """
    every = _load()
    choices = _CHOICES | {"table": tuple(dict.fromkeys(cell.table for cell in every))}
    given = {
        "problem": problem,
        "weights": weights,
        "agent": agent,
        "replay": replay,
        "period": period,
        "table": table,
    }
    wanted = {
        what: choose(what, name, choices[what]) for what, name in given.items() if name is not None
    }
    return tuple(
        cell for cell in every if all(getattr(cell, what) == wanted[what] for what in wanted)
    )


def published_regret(
    problem: str, weights: str, agent: str, replay: str, period: str
) -> float | None:
    """The regret that the paper prints for this, or None where it prints none.

    Where two tables have the cell, they print the same number.
    """
    cells = published_results(
        problem=problem, weights=weights, agent=agent, replay=replay, period=period
    )
    return cells[0].regret if cells else None


@cache
def _load() -> tuple[Published, ...]:
    text = files("windvane.experiments").joinpath("published.json").read_text(encoding="utf-8")
    return tuple(Published(**record) for record in json.loads(text)["results"])
