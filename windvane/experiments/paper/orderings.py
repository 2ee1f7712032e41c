"""Whether the paper's order of every pair of cells holds here, too.

A reproduction can confirm the paper's claims, which are about order, without meeting its numbers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, get_args

from windvane.experiments.paper.published import Published
from windvane.experiments.report.statistics import Estimate, Runs, difference, holm

Verdict = Literal[
    "holds",
    "same direction, not significant",
    "other direction, not significant",
    "reversed",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Ordering:
    """Two cells with the same schedule and period, of which the paper prints different regrets."""

    lower: Published
    """The cell that has the lower regret in the paper."""
    higher: Published
    ours: Estimate
    """How much higher ours is of the other: positive where we agree with the paper."""
    corrected: float | None = None
    """The p-value of our difference, corrected for all pairs of the table (Holm)."""

    @property
    def paper(self) -> float:
        """How much higher the paper's is."""
        return self.higher.regret - self.lower.regret

    @property
    def verdict(self) -> Verdict:
        """A difference is significant if its interval excludes 0. No difference at all is not the
        paper's direction.
        """
        low, high = self.ours.low, self.ours.high
        if low is not None and low > 0:
            return "holds"
        if high is not None and high < 0:
            return "reversed"
        if self.ours.value > 0:
            return "same direction, not significant"
        return "other direction, not significant"

    @property
    def confirmed(self) -> bool:
        """Whether the difference is significant among as many as the table has."""
        return self.corrected is not None and self.corrected < SIGNIFICANT


def orderings(
    cells: Iterable[Published], runs: Mapping[tuple[str, str, str, str], Runs]
) -> tuple[Ordering, ...]:
    """All pairs of one table's cells that the paper orders and that we have runs of.

    `runs` is by schedule, agent, replay and period. Equal printed numbers are no order.
    """
    found = []
    for one, other in combinations(cells, 2):
        if (one.schedule, one.period) != (other.schedule, other.period):
            continue
        if one.regret == other.regret:
            continue
        lower, higher = sorted((one, other), key=lambda cell: cell.regret)
        ours = difference(runs.get(key(higher), {}), runs.get(key(lower), {}))
        if ours is not None:
            found.append(Ordering(lower, higher, ours))
    corrected = holm([pair.ours.p for pair in found])
    return tuple(replace(pair, corrected=p) for pair, p in zip(found, corrected, strict=True))


def key(cell: Published) -> tuple[str, str, str, str]:
    """The key of a cell's runs."""
    return cell.schedule, cell.agent, cell.replay, cell.period


def counts(pairs: Iterable[Ordering]) -> dict[Verdict, int]:
    """The number of pairs with each verdict."""
    counted = Counter(pair.verdict for pair in pairs)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def contrary(pairs: Iterable[Ordering]) -> tuple[Ordering, ...]:
    """The pairs in the other direction: the significant ones first, then by size."""
    other = [pair for pair in pairs if pair.verdict in VERDICTS[2:]]
    return tuple(sorted(other, key=lambda pair: (pair.verdict != "reversed", pair.ours.value)))
