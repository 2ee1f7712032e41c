"""From runs to tables, as plain data: our number for every cell and, where it has one, the paper's.

What may not live here: how a table looks anywhere (see `layout`).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from windvane.errors import InputError
from windvane.experiments.paper.orderings import Ordering, key, orderings
from windvane.experiments.paper.published import PeriodName, Published, published_tables
from windvane.experiments.report.statistics import Estimate, Runs, change, mean, measured
from windvane.experiments.report.summary import Measure, RunSummary
from windvane.experiments.report.titles import (
    agent_order,
    agent_titles,
    env_order,
    env_titles,
    printable,
    replay_order,
    schedule_order,
)
from windvane.experiments.runs.cells import Cell, paper_preset, setting
from windvane.training.config import TrainConfig

PAPER_RUNS = 10
"""Runs that each of the paper's numbers is a mean of."""
BASELINE = ("mo", "standard")
EXTRA, UTILITY = "extra", "utility"
"""Labels of tables that the paper does not have: of regrets, and of scalarised returns."""

CellKey = tuple[str, str, str, str]
"""Schedule, agent, replay, period."""


@dataclass(frozen=True)
class TableCell:
    """A cell of a table in one period: the mean of our runs and the paper's numbers."""

    row: str
    """The agent's title."""
    schedule: str
    agent: str
    replay: str
    period: str
    seeds: tuple[int, ...]
    """The runs that the mean is of."""
    failed: tuple[int, ...]
    """Seeds of runs that diverged and stopped learning; where they have a number, they are part of
    the mean.
    """
    no_episode: tuple[int, ...]
    """Seeds of runs that are not part of the mean, as no episode ended in the period."""
    unknown: tuple[int, ...]
    """Seeds of runs that are not part of the mean, as the measure of their episodes is not known.
    """
    mean: Estimate | None
    """The section's measure, or None where nothing was run."""
    change: Estimate | None
    """Percent more than the baseline; None for the baseline, or without it."""
    paper: float | None
    paper_change: float | None
    over_time: Estimate | None = None
    """The mean regret over stretches of time, of the runs that have it; None where none has."""
    seeds_over_time: tuple[int, ...] = ()
    """The runs that it is of."""
    exploded: tuple[int, ...] = ()
    """Seeds of runs that diverged although their loss stayed finite; they count as others do."""
    unjudged: tuple[int, ...] = ()
    """Seeds of runs of which that is not known."""
    common: Estimate | None = None
    """The mean of the runs with the seeds that all measured cells of the schedule and period have,
    where this cell has more and at least two are common."""
    common_seeds: tuple[int, ...] = ()
    """The runs that it is of."""

    @property
    def unmeasured(self) -> tuple[int, ...]:
        """Seeds of all runs that are not part of the mean."""
        return tuple(sorted((*self.no_episode, *self.unknown)))

    @property
    def compared(self) -> Estimate | None:
        """The mean that stands beside those of other cells: on common seeds."""
        return self.common or self.mean

    @property
    def is_baseline(self) -> bool:
        """Whether percents are of this cell."""
        return (self.agent, self.replay) == BASELINE

    @property
    def contains_paper(self) -> bool:
        """Whether the paper's number lies in our interval."""
        return self.mean is not None and self.paper is not None and self.mean.contains(self.paper)


@dataclass(frozen=True)
class ResultTable:
    """A table of the paper, or one of runs that the paper does not have."""

    label: str
    """The paper's LaTeX label, `EXTRA` or `UTILITY`."""
    title: str
    cells: tuple[TableCell, ...]
    orderings: tuple[Ordering, ...]

    @property
    def is_paper(self) -> bool:
        """Whether the paper has this table."""
        return self.label not in (EXTRA, UTILITY)

    @property
    def missing(self) -> tuple[TableCell, ...]:
        """Cells that the paper has and that were not run, each once whatever its periods."""
        return tuple(cell for cell in self._each() if not cell.seeds and not cell.unmeasured)

    @property
    def short(self) -> tuple[TableCell, ...]:
        """Cells with fewer runs than the paper's, each once."""
        some = (cell for cell in self._each() if cell.seeds or cell.unmeasured)
        return tuple(cell for cell in some if len(cell.seeds) < PAPER_RUNS)

    def _each(self) -> list[TableCell]:
        """Of a cell's periods, the one with the fewest runs."""
        fewest: dict[tuple[str, str, str], TableCell] = {}
        for cell in self.cells:
            name = cell.schedule, cell.agent, cell.replay
            if name not in fewest or len(cell.seeds) < len(fewest[name].seeds):
                fewest[name] = cell
        return list(fewest.values())


@dataclass(frozen=True)
class Section:
    """All runs that share their settings, so that their numbers may stand in one table."""

    problem: str
    problem_title: str
    measure: Measure
    """The regret, or the scalarised return where the optimum is not known."""
    setting: dict[str, Any]
    """Settings that differ from the paper's, or from other sections about the same problem."""
    steps: int
    summaries: tuple[RunSummary, ...]
    tables: tuple[ResultTable, ...]
    absent: tuple[str, ...]
    """Titles of the paper's tables about the problem that none of the runs is new in."""

    @property
    def title(self) -> str:
        """The problem, and what is special about these runs."""
        special = [f"{name} {setting_text(value)}" for name, value in self.setting.items()]
        return ", ".join([self.problem_title, *special])

    @property
    def has_baseline(self) -> bool:
        """Whether percents of the baseline are shown."""
        return any(cell.change is not None for table in self.tables for cell in table.cells)

    @property
    def has_paper(self) -> bool:
        """Whether numbers of the paper are shown."""
        return any(cell.paper is not None for table in self.tables for cell in table.cells)


def setting_text(value: Any) -> str:
    """The value of a setting in a title."""
    if isinstance(value, dict):
        return printable(" ".join(f"{name}={item}" for name, item in value.items())) or "none"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def sections(summaries: Sequence[RunSummary]) -> tuple[Section, ...]:
    """The tables of every problem and setting, whatever the order of the summaries."""
    groups: dict[str, list[RunSummary]] = defaultdict(list)
    settings: dict[str, dict[str, Any]] = {}
    for summary in summaries:
        shared = setting(summary.config)
        group = str(tuple(shared.items()))
        settings[group] = shared
        groups[group].append(summary)
    titles = env_titles(dict.fromkeys(shared["env"] for shared in settings.values()))
    order = sorted(groups, key=lambda group: (env_order(settings[group]["env"]), group))
    return tuple(
        _section(
            groups[group],
            titles[settings[group]["env"]],
            _special(settings[group], list(settings.values())),
        )
        for group in order
    )


def _special(own: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """What differs between `own` and the paper or the other groups of its problem."""
    others = [group for group in groups if group["env"] == own["env"]]
    preset = paper_preset(own["env"])
    if preset is not None:
        paper = setting(TrainConfig.preset(preset))
        paper["precision"] = own["precision"]  # which the paper does not give
        others.append(paper)
    return {
        name: value for name, value in own.items() if any(other[name] != value for other in others)
    }


def _section(
    summaries: Sequence[RunSummary], problem_title: str, special: dict[str, Any]
) -> Section:
    config = summaries[0].config
    measure = _measure(summaries)
    by_cell = _by_cell(summaries)
    shown: set[CellKey] = set()
    tables, absent = [], []
    published = published_tables(config.env) if measure == "regret" else {}
    for cells in published.values():
        ours = {key(cell) for cell in cells} & by_cell.keys()
        # The appendix repeats Table 1 beside its own columns: that alone is nothing new to show.
        if ours - shown:
            shown |= ours
            tables.append(_paper_table(cells, by_cell, problem_title))
        else:
            absent.append(_title(cells, problem_title))
    rest = [cell for cell in by_cell if cell not in shown]
    if rest:
        tables.append(_extra_table(problem_title, measure, rest, by_cell))
    return Section(
        problem=config.env,
        problem_title=problem_title,
        measure=measure,
        setting=special,
        steps=config.steps,
        summaries=tuple(sorted(summaries, key=_cell_and_seed)),
        tables=tuple(tables),
        absent=tuple(absent),
    )


def _measure(summaries: Sequence[RunSummary]) -> Measure:
    """The utility where no run has a regret and some run has a utility."""
    regrets = any(math.isfinite(summary.overall) for summary in summaries)
    utilities = any(math.isfinite(summary.overall_utility) for summary in summaries)
    return "utility" if utilities and not regrets else "regret"


def _by_cell(summaries: Sequence[RunSummary]) -> dict[CellKey, dict[int, RunSummary]]:
    """The runs of every cell by seed, in the order of their seeds."""
    by_cell: dict[CellKey, dict[int, RunSummary]] = defaultdict(dict)
    for summary in sorted(summaries, key=_cell_and_seed):
        agent, replay, schedule = summary.cell
        for period in get_args(PeriodName):
            runs = by_cell[schedule, agent, replay, period]
            if summary.seed in runs:
                raise InputError(
                    f"seed {summary.seed} of {agent} with {replay} replay and {schedule} schedule "
                    "was given twice: one run of it can be reported"
                )
            runs[summary.seed] = summary
    return dict(by_cell)


def _cell_and_seed(summary: RunSummary) -> tuple[Cell, int]:
    return summary.cell, summary.seed


def _paper_table(
    published: Sequence[Published], by_cell: dict[CellKey, dict[int, RunSummary]], problem: str
) -> ResultTable:
    regrets = {cell: _values(runs, "regret", cell[3]) for cell, runs in by_cell.items()}
    return ResultTable(
        label=published[0].table,
        title=_title(published, problem),
        cells=_with_common(
            [
                _cell(key(cell), by_cell, "regret", cell.row, cell.regret, cell.change)
                for cell in published
            ],
            by_cell,
            "regret",
        ),
        orderings=orderings(published, regrets),
    )


def _extra_table(
    problem: str,
    measure: Measure,
    keys: Sequence[CellKey],
    by_cell: dict[CellKey, dict[int, RunSummary]],
) -> ResultTable:
    """What the paper does not have, with known names in its order."""
    ordered = sorted(keys, key=_order)
    titles = agent_titles(dict.fromkeys(agent for _, agent, _, _ in ordered))
    made = [_cell(cell, by_cell, measure, titles[cell[1]], None, None) for cell in ordered]
    cells = _with_common(made, by_cell, measure)
    about = " (not in the paper)" if measure == "regret" else " (scalarised return)"
    return ResultTable(EXTRA if measure == "regret" else UTILITY, problem + about, cells, ())


def _order(cell: CellKey) -> tuple[tuple[int, str], tuple[int, str], tuple[int, str], bool]:
    schedule, agent, replay, period = cell
    known = schedule_order(schedule), agent_order(agent), replay_order(replay)
    return *known, period != "overall"


def _cell(
    cell: CellKey,
    by_cell: dict[CellKey, dict[int, RunSummary]],
    measure: Measure,
    row: str,
    paper: float | None,
    paper_change: float | None,
) -> TableCell:
    schedule, agent, replay, period = cell
    runs = by_cell.get(cell, {})
    values = _values(runs, measure, period)
    over_time, seeds_over_time = _over_time(runs, period) if measure == "regret" else (None, ())
    base = _values(by_cell.get((schedule, *BASELINE, period), {}), measure, period)
    reasons = {seed: run.unmeasured(measure, period) for seed, run in runs.items()}
    return TableCell(
        row=row,
        schedule=schedule,
        agent=agent,
        replay=replay,
        period=period,
        seeds=tuple(measured(values)),
        failed=tuple(seed for seed in runs if runs[seed].failed),
        no_episode=tuple(seed for seed in runs if reasons[seed] == "no episode"),
        unknown=tuple(seed for seed in runs if reasons[seed] == "unknown"),
        mean=mean(values),
        change=None if (agent, replay) == BASELINE else change(values, base),
        paper=paper,
        paper_change=paper_change,
        over_time=over_time,
        seeds_over_time=seeds_over_time,
        exploded=tuple(seed for seed in runs if runs[seed].exploded),
        unjudged=tuple(seed for seed in runs if runs[seed].unjudged),
    )


def _with_common(
    cells: Sequence[TableCell], by_cell: dict[CellKey, dict[int, RunSummary]], measure: Measure
) -> tuple[TableCell, ...]:
    """The cells, with their means on common seeds where these are fewer than their own."""
    groups: dict[tuple[str, str], list[tuple[int, ...]]] = defaultdict(list)
    for cell in cells:
        if cell.seeds:
            groups[cell.schedule, cell.period].append(cell.seeds)
    found = []
    for cell in cells:
        common = common_seeds(groups[cell.schedule, cell.period])
        if common and cell.seeds and common != cell.seeds:
            runs = by_cell[cell.schedule, cell.agent, cell.replay, cell.period]
            values = _values({seed: runs[seed] for seed in common}, measure, cell.period)
            cell = replace(cell, common=mean(values), common_seeds=common)
        found.append(cell)
    return tuple(found)


def common_seeds(each: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """The seeds that all of several cells have, if these are two or more: runs with the same seed
    have the same weights, so that cells are compared on them.
    """
    sets = [set(seeds) for seeds in each]
    common = set.intersection(*sets) if sets else set()
    return tuple(sorted(common)) if len(common) >= 2 else ()


def comparable(summaries: Sequence[RunSummary]) -> list[RunSummary]:
    """The runs with the seeds that all cells of their schedule have, as in tables."""
    seeds: dict[str, dict[Cell, set[int]]] = {}
    for summary in summaries:
        seeds.setdefault(summary.schedule, {}).setdefault(summary.cell, set()).add(summary.seed)
    common = {schedule: common_seeds(cells.values()) for schedule, cells in seeds.items()}
    return [
        run for run in summaries if not common[run.schedule] or run.seed in common[run.schedule]
    ]


def _over_time(runs: dict[int, RunSummary], period: str) -> tuple[Estimate | None, tuple[int, ...]]:
    """The mean over stretches of time and the runs that it is of, which are those that have it."""
    values = {seed: run.over_time(period) for seed, run in runs.items()}
    return mean(values), tuple(measured(values))


def _values(runs: dict[int, RunSummary], measure: str, period: str) -> Runs:
    """The measure of each run in a period."""
    return {seed: float(summary.value(measure, period)) for seed, summary in runs.items()}


def _title(cells: Sequence[Published], problem: str) -> str:
    """What a table of the paper is about, as far as it is about one thing."""
    location = "Table 1" if cells[0].table == "table:results" else "appendix"
    with_others = " with SEL and EXP" if any(cell.replay == "sel" for cell in cells) else ""
    parts = [problem + with_others]
    schedules, periods = {cell.schedule for cell in cells}, {cell.period for cell in cells}
    if len(schedules) == 1:
        parts.append(f"{schedules.pop()} weight changes")
    if len(periods) == 1:
        parts.append({"overall": "overall", "last": "last quarter of the steps"}[periods.pop()])
    return f"{', '.join(parts)} (the paper's {location})"
