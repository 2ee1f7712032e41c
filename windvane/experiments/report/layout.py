"""What every form of a report shares: rows and columns as the paper has them, numbers as text.

What may not live here: the syntax of any one form, such as Markdown's or LaTeX's.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from windvane.experiments.paper.orderings import VERDICTS, Ordering, counts
from windvane.experiments.paper.published import Published
from windvane.experiments.report.statistics import Estimate
from windvane.experiments.report.tables import (
    PAPER_RUNS,
    UTILITY,
    ResultTable,
    Section,
    TableCell,
)
from windvane.experiments.report.titles import (
    env_source,
    printable,
    replay_order,
    replay_titles,
    schedule_name,
    schedule_names,
)
from windvane.replay import REPLAYS
from windvane.runs.divergence import FACTOR
from windvane.runs.stretches import STRETCH

_BAND = "the mean over the seeds that all cells beside it have, with its 95% band (Student)"
_CUMULATIVE = (
    f"{_BAND}. It grows when an episode ends, so that an agent that goes in circles adds little: "
    "the table has the regret per episode."
)
_SINCE_CHANGE = (
    "by the steps since the last sparse change of weights, in the second half of the training: the "
    "mean over changes and the seeds that all have, with its 95% band (Student) over seeds."
)
_UTILITY_BAND = (
    "the returns of the episodes that ended in a window of the steps, scalarised by their weights "
    f"and averaged; higher is better. Shown is {_BAND}."
)
_CAPTIONS = {
    ("regret", "regret"): f"Cumulative regret, lower is better: {_CUMULATIVE}",
    ("replays", "regret"): f"Cumulative regret of all replays, lower is better: {_CUMULATIVE}",
    ("adaptation", "regret"): f"Regret {_SINCE_CHANGE}",
    ("utility", "utility"): f"Scalarised return: {_UTILITY_BAND}",
    ("adaptation", "utility"): f"Scalarised return {_SINCE_CHANGE}",
}
_CONTENT = (
    "What a diverse buffer held in the end, as in the paper's Figure 3: each dot is the return "
    "of a trajectory."
)
MISSING = "-"
OVER_EPISODES, OVER_TIME = "over episodes", "over time"
_PAPER_DECIMALS = {"minecart": 3, "dst": 4}
"""Of our regrets; the paper prints three, which are few for Deep Sea Treasure's."""
_MOST_DECIMALS = 10
CAVEAT = (
    "A pair holds or is reversed by the 95% interval of the mean difference on the seeds that both "
    "cells have (Student); of many, some differ by chance, so that only what remains after Holm's "
    "correction for all pairs of a table is confirmed. Pairs for which the paper prints equal "
    "numbers are not judged."
)
PAIR_HEADER = ("schedule, period", "paper's order", "here", "paper", "ours", "p, corrected p")


@dataclass(frozen=True)
class Picture:
    """A figure that was saved, and its caption."""

    path: Path
    caption: str


@dataclass(frozen=True)
class CellText:
    """A cell's numbers as text, a line each."""

    ours: str
    label: str
    """What `ours` is a mean over, where there are two means."""
    common: str
    """The mean on the seeds that all cells beside it have; empty where the cell has no others."""
    over_time: str
    """The mean over stretches of time, or that it was not recorded; empty where nothing was run,
    and of returns."""
    change: str
    """Empty for the baseline, and without one."""
    paper: str
    """Empty where the paper has none."""
    runs: str
    best: bool
    """Whether ours, on common seeds, is the best of its schedule and period."""
    meets_paper: bool
    """Whether the paper's number lies in our interval."""


@dataclass(frozen=True)
class Row:
    """A line of a table: an agent under one schedule."""

    schedule: str
    name: str
    cells: tuple[CellText | None, ...]
    """None where the table has no such cell."""


@dataclass(frozen=True)
class TableLayout:
    """A table as it is printed: periods over replays, schedules beside agents."""

    columns: tuple[tuple[str, str], ...]
    """Period and replay of each."""
    rows: tuple[Row, ...]


def lay_out(section: Section, table: ResultTable) -> TableLayout:
    """Lay out a table, with rows in the order of its cells, which is the paper's."""
    columns = sorted(
        {(cell.period, cell.replay) for cell in table.cells},
        key=lambda column: (column[0] != "overall", replay_order(column[1])),
    )
    cells = {(c.schedule, c.agent, c.period, c.replay): c for c in table.cells}
    names = {cell.agent: cell.row for cell in table.cells}
    schedules = schedule_names(dict.fromkeys(cell.schedule for cell in table.cells))
    replays = replay_titles(dict.fromkeys(replay for _, replay in columns))
    best = _best(section, table.cells)
    rows = []
    for schedule, agent in dict.fromkeys((cell.schedule, cell.agent) for cell in table.cells):
        of_row = [cells.get((schedule, agent, *column)) for column in columns]
        texts = [cell and _cell_text(section, cell, cell in best) for cell in of_row]
        rows.append(Row(schedules[schedule], names[agent], tuple(texts)))
    titles = [(period_title(section, period), replays[replay]) for period, replay in columns]
    return TableLayout(tuple(titles), tuple(rows))


def report_title(sections: Sequence[Section]) -> str:
    """What a report is called."""
    beside = any(section.has_paper for section in sections)
    return "Results beside the paper's" if beside else "Results"


def legend(section: Section) -> str:
    """How to read the tables of a section: what is measured, and what stands in a cell."""
    if section.measure == "regret":
        what, best = "Average episodic regret, lower is better", "lowest"
    else:
        what = (
            "Average return of an episode, scalarised by its weights, higher is better; regret is "
            "not known, as the optimum is not"
        )
        best = "highest"
    parts = ["our mean with its 95% interval (Student)"]
    if section.measure == "regret":
        parts = [
            f'our mean with its 95% interval (Student), first "{OVER_EPISODES}", in which every '
            f'episode counts the same, then "{OVER_TIME}", in which every stretch of {STRETCH} '
            "steps does, by the mean of the episodes that end in it"
        ]
    if section.has_baseline:
        parts.append("then the difference to MO with standard replay on the seeds that both have")
    if section.has_paper:
        parts.append("then the paper's numbers")
    text = (
        f"{what}: {', '.join(parts)}. The {best} of ours on the seeds that all cells have is bold, "
        "significant or not"
    )
    if section.measure == "regret":
        text += f"; it and differences are {OVER_EPISODES}"
    if section.has_paper:
        text += (
            "; the paper does not say which mean it prints, and ≈ marks numbers of it that lie in "
            "our interval"
        )
    shared = section.summaries[0].config
    return f"{text}. {env_source(shared.env, shared.args('env'))}".rstrip()


def caption(section: Section, name: str) -> str:
    """What is said below a figure, by what it shows."""
    return _CONTENT if name == "replay-content" else _CAPTIONS[name, section.measure]


def period_title(section: Section, period: str) -> str:
    """The period as the paper prints it: the last quarter is named by its number of steps."""
    return "Overall" if period == "overall" else f"Last {section.steps // 4:,} steps"


def cell_name(cell: TableCell | Published) -> str:
    """An agent and its replay as in the paper's text, such as CN+DER."""
    return (
        cell.row
        if cell.replay == "standard"
        else f"{cell.row}+{printable(REPLAYS.title(cell.replay))}"
    )


def notes(table: ResultTable) -> list[str]:
    """What a reader must know about a table: which cells are missing, and which runs are odd."""
    measured = "return" if table.label == UTILITY else "regret"
    said = {
        "Not run": [_full_name(cell) for cell in table.missing],
        f"Fewer than {PAPER_RUNS} seeds, so that intervals are wide, or missing": [
            f"{_full_name(cell)} ({len(cell.seeds)})" for cell in table.short
        ],
        "Diverged and stopped learning, as a loss or gradient was not finite; where they have a "
        "number, included in means": _odd(table, "failed"),
        f"Diverged with a finite loss, above {FACTOR:g} times what their returns allow, and went "
        "on learning; included in means": _odd(table, "exploded"),
        "Not known whether they diverged with a finite loss, as losses were not kept": _unjudged(
            table
        ),
        "Not counted, as no episode ended in the period": _odd(table, "no_episode"),
        f"Not counted, as the {measured} of their episodes is not known": _odd(table, "unknown"),
    }
    return [f"{what}: {'; '.join(names)}." for what, names in said.items() if names]


def absent_text(section: Section) -> str:
    """Which of the paper's tables are left out; empty if none is."""
    titles = "; ".join(section.absent)
    return f"Left out, as no cell was run that only they have: {titles}." if titles else ""


def verdict_text(pairs: Sequence[Ordering]) -> str:
    """How many of the paper's orders hold, in one sentence."""
    if not pairs:
        return "No two cells that the paper orders were run."
    counted = counts(pairs)
    parts = ", ".join(f"{counted[verdict]} {_plural(verdict)}" for verdict in VERDICTS)
    confirmed = Counter(pair.verdict for pair in pairs if pair.confirmed)
    return (
        f"Of {len(pairs)} pairs that the paper puts in an order: {parts}. Corrected for that many "
        f"comparisons (Holm), {confirmed['holds']} hold and {confirmed['reversed']} are reversed."
    )


def pair_texts(section: Section, pair: Ordering) -> tuple[str, str, str, str, str, str]:
    """Schedule and period of a pair, the paper's order, the verdict, the paper's difference, ours,
    and its p-values.
    """
    period = period_title(section, pair.lower.period).lower()
    return (
        f"{pair.lower.schedule}, {period}",
        f"{cell_name(pair.lower)} < {cell_name(pair.higher)}",
        _judged(pair),
        f"{pair.paper:+.3f}",
        estimate_text(pair.ours, f"+.{decimals(section)}f"),
        p_texts(pair),
    )


def p_texts(pair: Ordering) -> str:
    """The p-value of a difference and the one that is corrected for all pairs of the table."""
    known = [value for value in (pair.ours.p, pair.corrected) if value is not None]
    return ", ".join("<0.001" if value < 0.0005 else f"{value:.3f}" for value in known) or MISSING


def estimate_text(estimate: Estimate, form: str, unit: str = "") -> str:
    """A number and, where it has one, its interval."""
    value = f"{estimate.value:{form}}{unit}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{estimate.low:{form}}, {estimate.high:{form}}]"


def decimals(section: Section) -> int:
    """Decimals of our numbers: fixed for the paper's, else three digits of a typical number."""
    if section.measure == "regret" and section.problem in _PAPER_DECIMALS:
        return _PAPER_DECIMALS[section.problem]
    means = [cell.mean.value for table in section.tables for cell in table.cells if cell.mean]
    sizes = [abs(value) for value in means if value]
    if not sizes:
        return 3
    return min(max(2 - math.floor(math.log10(np.median(sizes))), 0), _MOST_DECIMALS)


def _cell_text(section: Section, cell: TableCell, best: bool) -> CellText:
    ours = cell.mean and estimate_text(cell.mean, f".{decimals(section)}f")
    return CellText(
        ours=ours or MISSING,
        label=OVER_EPISODES if ours and section.measure == "regret" else "",
        common=_common_text(section, cell),
        over_time=_over_time_text(section, cell) if ours else "",
        change=estimate_text(cell.change, "+.1f", "%") if cell.change else "",
        paper=_paper_text(cell),
        runs=_runs_text(section, cell),
        best=best,
        meets_paper=cell.contains_paper,
    )


def _common_text(section: Section, cell: TableCell) -> str:
    if cell.common is None:
        return ""
    mean = estimate_text(cell.common, f".{decimals(section)}f")
    return f"{mean} on the {len(cell.common_seeds)} seeds that all have"


def _over_time_text(section: Section, cell: TableCell) -> str:
    if section.measure != "regret":
        return ""
    if cell.over_time is None:
        return f"{OVER_TIME} not recorded"
    text = f"{estimate_text(cell.over_time, f'.{decimals(section)}f')} {OVER_TIME}"
    if cell.seeds_over_time != cell.seeds:
        text += f" ({len(cell.seeds_over_time)} of {len(cell.seeds)} seeds)"
    near = cell.paper is not None and cell.over_time.contains(cell.paper)
    return f"{text} ≈" if near else text


def _paper_text(cell: TableCell) -> str:
    if cell.paper is None:
        return ""
    text = f"paper {cell.paper:.3f}"
    if cell.paper_change is not None and not cell.is_baseline:
        text += f", {cell.paper_change:+.2f}%"
    return f"{text} ≈" if cell.contains_paper else text


def _runs_text(section: Section, cell: TableCell) -> str:
    seeds = "1 seed" if len(cell.seeds) == 1 else f"{len(cell.seeds)} seeds"
    measured = "regret" if section.measure == "regret" else "return"
    diverged = (*cell.failed, *cell.exploded)
    parts = {
        seeds: cell.seeds,
        f"{len(diverged)} diverged": diverged,
        f"no episode ended in {len(cell.no_episode)}": cell.no_episode,
        f"{measured} unknown of {len(cell.unknown)}": cell.unknown,
    }
    return ", ".join(text for text, those in parts.items() if those)


def _best(section: Section, cells: Sequence[TableCell]) -> list[TableCell]:
    """The best of our cells per schedule and period, on the seeds that all have: lowest regret, or
    highest utility.
    """
    sign = 1 if section.measure == "regret" else -1
    best: dict[tuple[str, str], tuple[float, TableCell]] = {}
    for cell in cells:
        group, ours = (cell.schedule, cell.period), cell.compared
        if ours and (group not in best or sign * ours.value < best[group][0]):
            best[group] = sign * ours.value, cell
    return [cell for _, cell in best.values()]


def _full_name(cell: TableCell) -> str:
    return f"{schedule_name(cell.schedule)} {cell_name(cell)}"


def _unjudged(table: ResultTable) -> list[str]:
    """Cells and the seeds of their runs of which it is not known whether they diverged."""
    every = all(set(cell.unjudged) >= {*cell.seeds} for cell in table.cells)
    return (
        ["all of them"]
        if every and any(cell.seeds for cell in table.cells)
        else _odd(table, "unjudged")
    )


def _odd(table: ResultTable, which: str) -> list[str]:
    """Cells with such runs and the seeds of these, each once whatever its periods."""
    names: dict[str, set[int]] = {}
    for cell in table.cells:
        names.setdefault(_full_name(cell), set()).update(getattr(cell, which))
    return [
        f"{name} (seed {', '.join(map(str, sorted(seeds)))})"
        for name, seeds in names.items()
        if seeds
    ]


def _judged(pair: Ordering) -> str:
    significant = pair.verdict in ("holds", "reversed")
    uncertain = significant and not pair.confirmed
    return f"{pair.verdict}, but not after correction" if uncertain else pair.verdict


def _plural(verdict: str) -> str:
    if verdict in ("holds", "reversed"):
        return {"holds": "hold", "reversed": "are reversed"}[verdict]
    return f"go in the {verdict.replace(', not significant', ' but not significantly')}"
