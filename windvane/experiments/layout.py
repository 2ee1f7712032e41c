"""What every form of a report shares: rows and columns as the paper has them, numbers as text.

What may not live here: the marks of any one form, such as Markdown's or LaTeX's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windvane.experiments.orderings import VERDICTS, Ordering, counts
from windvane.experiments.published import Published
from windvane.experiments.statistics import Estimate
from windvane.experiments.tables import PAPER_RUNS, Cell, ResultTable, Section

_BAND = (
    "the mean over seeds with its 95% bootstrap band. It grows when an episode ends, so that an "
    "agent that goes in circles adds little: the table has the regret of an episode."
)
CAPTIONS = {
    "regret": f"Cumulative regret: {_BAND}",
    "replays": f"Cumulative regret of all replays: {_BAND}",
    "adaptation": "Regret by the steps since the last sparse change of weights, in the second half "
    "of the training: the mean over changes and seeds with its 95% bootstrap band over seeds.",
    "replay-content": (
        "What a diverse buffer held in the end, as in the paper's Figure 3: each dot is the return "
        "of a trajectory."
    ),
}
"""What is said below a figure, by what it shows."""
MISSING = "-"
REPLAYS = {"standard": "Standard ER", "der": "DER", "sel": "SEL", "exp": "EXP"}
DECIMALS = {"minecart": 3, "dst": 4}
"""Of our regrets; the paper prints three, which are few for Deep Sea Treasure's."""
LEGEND = (
    "Average episodic regret, lower is better: ours with its 95% bootstrap interval, then the "
    "difference to MO with standard replay, then the paper's numbers. The lowest of ours is bold; "
    "≈ marks numbers of the paper that lie in our interval."
)
CAVEAT = (
    "Pairs are judged one by one, by the 95% interval of the difference of their means: of many, "
    "some go astray by chance. Pairs for which the paper prints equal numbers are not judged."
)


@dataclass(frozen=True)
class Picture:
    """A figure that was saved, and what to say below it."""

    path: Path
    caption: str


@dataclass(frozen=True)
class CellText:
    """A cell's numbers as text, a line each."""

    ours: str
    change: str
    """Empty for the baseline, and without one."""
    paper: str
    """Empty where the paper has none."""
    runs: str
    lowest: bool
    """Whether ours is the lowest of its weights and period."""
    meets_paper: bool
    """Whether the paper's number lies in our interval."""


@dataclass(frozen=True)
class Row:
    """A line of a table: an agent under one kind of weight changes."""

    weights: str
    name: str
    cells: tuple[CellText | None, ...]
    """None where the table has no such cell."""


@dataclass(frozen=True)
class Grid:
    """A table as it is printed: periods over replays, weights beside agents."""

    columns: tuple[tuple[str, str], ...]
    """Period and replay of each."""
    rows: tuple[Row, ...]


def grid(section: Section, table: ResultTable) -> Grid:
    """Lay out a table, with rows in the order of its cells, which is the paper's."""
    columns = sorted(
        {(cell.period, cell.replay) for cell in table.cells},
        key=lambda column: (column[0] != "overall", list(REPLAYS).index(column[1])),
    )
    places = {(cell.weights, cell.row, cell.period, cell.replay): cell for cell in table.cells}
    lowest = _lowest(table.cells)
    rows = []
    for weights, name in dict.fromkeys((cell.weights, cell.row) for cell in table.cells):
        cells = [places.get((weights, name, *column)) for column in columns]
        texts = [cell and _cell_text(section, cell, cell in lowest) for cell in cells]
        rows.append(Row(weights, name, tuple(texts)))
    titles = tuple(
        (period_title(section, period), REPLAYS[replay]) for period, replay in columns
    )  # fmt: skip
    return Grid(titles, tuple(rows))


def period_title(section: Section, period: str) -> str:
    """The period as the paper prints it: the last quarter is named by its number of steps."""
    return "Overall" if period == "overall" else f"Last {section.steps // 4:,} steps"


def cell_name(cell: Cell | Published) -> str:
    """An agent and its replay as in the paper's text, such as CN+DER."""
    return cell.row if cell.replay == "standard" else f"{cell.row}+{REPLAYS[cell.replay]}"


def notes(table: ResultTable) -> list[str]:
    """What a reader must know about a table: what is missing from it, and which runs are odd."""
    said = {
        "Not run": [_full_name(cell) for cell in table.missing],
        f"Fewer than {PAPER_RUNS} seeds, so that intervals are too narrow or none": [
            f"{_full_name(cell)} ({len(cell.seeds)})" for cell in table.short
        ],
        "Stopped learning when their loss or gradient was not finite, and counted all the same": (
            _odd(table, "failed")
        ),
        "Not counted, as no episode ended in the period": _odd(table, "unmeasured"),
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
    return f"Of {len(pairs)} pairs that the paper puts in an order: {parts}."


def pair_texts(section: Section, pair: Ordering) -> tuple[str, str, str, str, str]:
    """Where a pair is, the paper's order, the verdict, the paper's difference and ours."""
    period = period_title(section, pair.lower.period).lower()
    return (
        f"{pair.lower.weights}, {period}",
        f"{cell_name(pair.lower)} < {cell_name(pair.higher)}",
        pair.verdict,
        f"{pair.paper:+.3f}",
        estimate_text(pair.ours, f"+.{DECIMALS[section.problem]}f"),
    )


PAIR_HEADER = ("weights, period", "paper's order", "here", "paper", "ours")


def estimate_text(estimate: Estimate, form: str, unit: str = "") -> str:
    """A number and, where it has one, its interval."""
    value = f"{estimate.value:{form}}{unit}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{estimate.low:{form}}, {estimate.high:{form}}]"


def _cell_text(section: Section, cell: Cell, lowest: bool) -> CellText:
    ours = cell.mean and estimate_text(cell.mean, f".{DECIMALS[section.problem]}f")
    return CellText(
        ours=ours or MISSING,
        change=estimate_text(cell.change, "+.1f", "%") if cell.change else "",
        paper=_paper_text(cell),
        runs=_runs_text(cell),
        lowest=lowest,
        meets_paper=cell.contains_paper,
    )


def _paper_text(cell: Cell) -> str:
    if cell.paper is None:
        return ""
    text = f"paper {cell.paper:.3f}"
    if cell.paper_change is not None and not cell.is_baseline:
        text += f", {cell.paper_change:+.2f}%"
    return f"{text} ≈" if cell.contains_paper else text


def _runs_text(cell: Cell) -> str:
    if not cell.seeds:
        return ""
    seeds = "1 seed" if len(cell.seeds) == 1 else f"{len(cell.seeds)} seeds"
    return f"{seeds}, {len(cell.failed)} failed" if cell.failed else seeds


def _lowest(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of ours with the lowest regret of their weights and period."""
    best: dict[tuple[str, str], tuple[float, Cell]] = {}
    for cell in cells:
        place = cell.weights, cell.period
        if cell.mean and (place not in best or cell.mean.value < best[place][0]):
            best[place] = cell.mean.value, cell
    return [cell for _, cell in best.values()]


def _full_name(cell: Cell) -> str:
    return f"{cell.weights} {cell_name(cell)}"


def _odd(table: ResultTable, which: str) -> list[str]:
    """Cells with such runs and the seeds of these, each once whatever its periods."""
    names = {_full_name(cell): getattr(cell, which) for cell in table.cells if getattr(cell, which)}
    return [
        f"{name} (seed {', '.join(map(str, seeds))})" for name, seeds in names.items()
    ]  # fmt: skip


def _plural(verdict: str) -> str:
    if verdict in ("holds", "reversed"):
        return {"holds": "hold", "reversed": "are reversed"}[verdict]
    return f"go in the {verdict.replace(', not significant', ' but not significantly')}"
