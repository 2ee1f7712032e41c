"""The numbers that the paper printed: every cell of its results tables, by what was run."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from windvane.agents import AGENTS
from windvane.envs import ENVS
from windvane.errors import choose
from windvane.experiments.runs.cells import SCHEDULES, Cell
from windvane.registry import CUSTOM, is_import_path
from windvane.replay import REPLAYS

PeriodName = Literal["overall", "last"]
"""All episodes, or those that ended in the last quarter of the steps."""
_REGISTRIES = {"problem": ENVS, "agent": AGENTS, "replay": REPLAYS}


@dataclass(frozen=True)
class Published:
    """One cell of one of the paper's tables. Some cells are printed in two tables."""

    table: str
    """The table's LaTeX label."""
    row: str
    """The algorithm as it is printed."""
    problem: str
    schedule: str
    agent: str
    replay: str
    period: PeriodName
    """All steps, or the last 250,000 of Minecart and the last 25,000 of Deep Sea Treasure."""
    regret: float
    """Average episodic regret; results are of 10 runs."""
    change: float | None
    """Percent more regret than MO with standard replay, or None where the paper prints a dash."""
    bold: bool
    """Whether the paper prints the cell in bold, as it does the lowest regret."""

    @property
    def cell(self) -> Cell:
        """What was run."""
        return Cell(self.agent, self.replay, self.schedule)


def published_results(
    *,
    problem: str | None = None,
    schedule: str | None = None,
    agent: str | None = None,
    replay: str | None = None,
    period: str | None = None,
    table: str | None = None,
) -> tuple[Published, ...]:
    """The cells with all the given names, in the order of the paper: every cell, if none is given.

    The order is that of tables, then rows, then columns. Of environments, agents and replay rules
    that are not the paper's there is none.
    """
    given = {
        "problem": problem,
        "schedule": schedule,
        "agent": agent,
        "replay": replay,
        "period": period,
        "table": table,
    }
    wanted = {what: _check(what, name) for what, name in given.items() if name is not None}
    return tuple(
        cell for cell in _load() if all(getattr(cell, what) == wanted[what] for what in wanted)
    )


def published_tables(problem: str) -> dict[str, tuple[Published, ...]]:
    """The paper's tables about a problem by their labels; of any other problem, none."""
    cells = [cell for cell in _load() if cell.problem == problem]
    labels = dict.fromkeys(cell.table for cell in cells)
    return {label: tuple(cell for cell in cells if cell.table == label) for label in labels}


def published_regret(
    problem: str, schedule: str, agent: str, replay: str, period: str
) -> float | None:
    """The regret that the paper prints for this, or None where it prints none.

    Where two tables have the cell, they print the same number.
    """
    cells = published_results(
        problem=problem, schedule=schedule, agent=agent, replay=replay, period=period
    )
    return cells[0].regret if cells else None


def _check(what: str, name: str) -> str:
    """A name that can be meant, whether the paper has it or not."""
    if what in _REGISTRIES:
        return _REGISTRIES[what].check(name)
    if what == "schedule":
        custom = is_import_path(name) or name.startswith(CUSTOM)
        return name if custom else choose(what, name, SCHEDULES)
    if what == "period":
        return choose(what, name, get_args(PeriodName))
    return choose(what, name, tuple(dict.fromkeys(cell.table for cell in _load())))


@cache
def _load() -> tuple[Published, ...]:
    package = files("windvane.experiments.paper")
    text = package.joinpath("published.json").read_text(encoding="utf-8")
    return tuple(Published(**record) for record in json.loads(text)["results"])
