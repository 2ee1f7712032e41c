"""A report as CSV: a line for every cell and period of every table, with all digits."""

import csv
import io
from collections.abc import Sequence

from windvane.experiments.report.statistics import Estimate
from windvane.experiments.report.tables import Section

COLUMNS = (
    "problem", "setting", "table", "schedule", "agent", "replay", "period", "seeds", "failed",
    "mean", "low", "high", "change", "change_low", "change_high", "paper", "paper_change",
    "no_episode", "unknown", "over_time", "over_time_low", "over_time_high", "over_time_seeds",
    "exploded",
)  # fmt: skip
"""`setting` has what differs from the paper, such as "observation=features steps=1000". `table` is
the paper's label, `extra` for other regrets, or `utility` for scalarised returns; means are of
regrets in all tables but the last, of as many runs as `seeds` says. Of others no episode ended in
the period (`no_episode`), or the measure is not known (`unknown`); `failed` are those of all these
runs that diverged and stopped learning, `exploded` those that diverged with a finite loss. Means
are over episodes; `over_time` are over stretches of time, of as many runs as `over_time_seeds`
says. What is not known is empty."""


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
                last = (*others, *over_time, len(cell.exploded))
                writer.writerow((*first, *names, *counts, *numbers, *paper, *last))
    return file.getvalue()


def _numbers(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    if estimate is None:
        return None, None, None
    return estimate.value, estimate.low, estimate.high
