"""A report as CSV, with all digits: a line for every cell and period of every table, and one for
every pair of cells that the paper orders.
"""

import csv
import io
from collections.abc import Sequence

from windvane.experiments.report.statistics import Estimate
from windvane.experiments.report.tables import Section

COLUMNS = (
    "problem", "setting", "table", "schedule", "agent", "replay", "period", "seeds", "failed",
    "mean", "low", "high", "change", "change_low", "change_high", "paper", "paper_change",
    "no_episode", "unknown", "over_time", "over_time_low", "over_time_high", "over_time_seeds",
    "exploded", "common", "common_low", "common_high", "common_seeds",
)  # fmt: skip
"""`setting` has what differs from the paper, such as "observation=features steps=1000". `table` is
the paper's label, `extra` for other regrets, or `utility` for scalarised returns; means are of
regrets in all tables but the last, of as many runs as `seeds` says. Of others no episode ended in
the period (`no_episode`), or the measure is not known (`unknown`); `failed` are those of all these
runs that diverged and stopped learning, `exploded` those that diverged with a finite loss. Means
are over episodes; `over_time` are over stretches of time, of as many runs as `over_time_seeds`
says. `common` is the mean of the runs with the seeds that all cells beside it have, where it has
others, too. What is not known is empty."""

PAIR_COLUMNS = (
    "problem", "setting", "table", "schedule", "period", "lower_agent", "lower_replay",
    "higher_agent", "higher_replay", "paper", "difference", "low", "high", "p", "corrected_p",
    "verdict", "confirmed",
)  # fmt: skip
"""A pair of cells that the paper puts in an order: by how much the second is higher in the paper
and here, on the seeds that both have, the p-value of this difference, raw and corrected for all
pairs of the table (Holm), and whether the order holds by the one and, `confirmed`, by the other.
"""


def to_csv(sections: Sequence[Section]) -> str:
    """The tables, with a header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for section in sections:
        setting = " ".join(f"{name}={value}" for name, value in section.setting.items())
        for table in section.tables:
            for cell in table.cells:
                names = (cell.schedule, cell.agent, cell.replay, cell.period)
                numbers = (*_numbers(cell.mean), *_numbers(cell.change))
                counts = (len(cell.seeds), len(cell.failed))
                paper = (cell.paper, cell.paper_change)
                others = (len(cell.no_episode), len(cell.unknown))
                over_time = (*_numbers(cell.over_time), len(cell.seeds_over_time))
                first = (section.problem, setting, table.label)
                common = (*_numbers(cell.common), len(cell.common_seeds) if cell.common else None)
                last = (*others, *over_time, len(cell.exploded), *common)
                writer.writerow((*first, *names, *counts, *numbers, *paper, *last))
    return file.getvalue()


def pairs_to_csv(sections: Sequence[Section]) -> str:
    """The pairs of cells that the paper orders, with a header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(PAIR_COLUMNS)
    for section in sections:
        setting = " ".join(f"{name}={value}" for name, value in section.setting.items())
        for table in section.tables:
            for pair in table.orderings:
                low, high = pair.lower, pair.higher
                names = (low.agent, low.replay, high.agent, high.replay)
                numbers = (round(pair.paper, 6), *_numbers(pair.ours), pair.ours.p, pair.corrected)
                first = (section.problem, setting, table.label, low.schedule, low.period)
                verdict = (pair.verdict, str(pair.confirmed).lower())
                writer.writerow((*first, *names, *numbers, *verdict))
    return file.getvalue()


def _numbers(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    if estimate is None:
        return None, None, None
    return estimate.value, estimate.low, estimate.high
