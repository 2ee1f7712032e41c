"""From runs to the paper's tables, as plain data: ours and the paper's number for every cell.

What may not live here: how a table looks anywhere (see `layout`).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windvane.errors import InputError
from windvane.experiments.digest import Digest, setting
from windvane.experiments.orderings import Ordering, key, orderings
from windvane.experiments.published import Published, published_results
from windvane.experiments.statistics import Estimate, Runs, change, mean, measured
from windvane.training.config import TrainConfig

PAPER_RUNS = 10
"""Runs that each of the paper's numbers is a mean of."""
BASELINE = ("mo", "standard")
PROBLEMS = {"minecart": "Minecart", "dst": "Deep Sea Treasure"}
EXTRA = "extra"
"""Label of a table that the paper does not have."""

CellKey = tuple[str, str, str, str]
"""Weights, agent, replay, period."""


@dataclass(frozen=True)
class Cell:
    """What an agent with a replay came to in a period: our runs of it and the paper's numbers."""

    row: str
    """The agent as the paper prints it."""
    weights: str
    agent: str
    replay: str
    period: str
    seeds: tuple[int, ...]
    """The runs that the mean is of."""
    failed: tuple[int, ...]
    """Seeds of those runs, still part of the mean, that stopped learning."""
    unmeasured: tuple[int, ...]
    """Seeds of runs that are not part of it: no episode of theirs ended in the period."""
    mean: Estimate | None
    """Regret, or None where nothing was run."""
    change: Estimate | None
    """Percent more regret than the baseline; None for the baseline, or without it."""
    paper: float | None
    paper_change: float | None

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
    """One table of the paper, or one of what we ran and the paper did not."""

    label: str
    """The paper's LaTeX label."""
    title: str
    cells: tuple[Cell, ...]
    orderings: tuple[Ordering, ...]

    @property
    def missing(self) -> tuple[Cell, ...]:
        """Cells that the paper has and we have no run of, each once whatever its periods."""
        return tuple(cell for cell in self._each() if not cell.seeds and not cell.unmeasured)

    @property
    def short(self) -> tuple[Cell, ...]:
        """Cells of fewer runs than the paper's, each once."""
        some = (cell for cell in self._each() if cell.seeds or cell.unmeasured)
        return tuple(cell for cell in some if len(cell.seeds) < PAPER_RUNS)

    def _each(self) -> list[Cell]:
        """Of a cell's periods, the one with the fewest runs."""
        fewest: dict[tuple[str, str, str], Cell] = {}
        for cell in self.cells:
            name = cell.weights, cell.agent, cell.replay
            if name not in fewest or len(cell.seeds) < len(fewest[name].seeds):
                fewest[name] = cell
        return list(fewest.values())


@dataclass(frozen=True)
class Section:
    """All runs that share their settings, so that their numbers may stand in one table."""

    problem: str
    setting: dict[str, Any]
    """Settings that tell this from the paper, or from other sections about the same problem."""
    steps: int
    digests: tuple[Digest, ...]
    tables: tuple[ResultTable, ...]
    absent: tuple[str, ...]
    """Titles of the paper's tables about the problem that we have nothing to show in."""

    @property
    def title(self) -> str:
        """The problem, and what is special about these runs."""
        special = [
            f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
            for name, value in self.setting.items()
        ]
        return ", ".join([PROBLEMS[self.problem], *special])


def sections(digests: Sequence[Digest]) -> tuple[Section, ...]:
    """The tables of every problem and setting, whatever the order of the digests."""
    groups: dict[Any, list[Digest]] = defaultdict(list)
    for digest in digests:
        groups[tuple(setting(digest.config).items())].append(digest)
    order = sorted(groups, key=lambda group: (list(PROBLEMS).index(dict(group)["env"]), str(group)))
    return tuple(
        _section(groups[group], _special(dict(group), [dict(other) for other in groups]))
        for group in order
    )


def _special(own: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """What tells `own` from the paper and from the other groups of its problem."""
    paper = setting(TrainConfig.preset(f"paper-{own['env']}"))
    paper["precision"] = own["precision"]  # of which the paper does not tell
    rivals = [paper, *(group for group in groups if group["env"] == own["env"])]
    return {
        name: value for name, value in own.items() if any(rival[name] != value for rival in rivals)
    }


def _section(digests: Sequence[Digest], special: dict[str, Any]) -> Section:
    config = digests[0].config
    by_cell = _by_cell(digests)
    shown: set[CellKey] = set()
    tables, absent = [], []
    for label in dict.fromkeys(cell.table for cell in published_results(problem=config.env)):
        published = published_results(table=label)
        ours = {key(cell) for cell in published} & by_cell.keys()
        # The appendix repeats Table 1 beside its own columns: that alone is nothing new to show.
        if ours - shown:
            shown |= ours
            tables.append(_paper_table(published, by_cell))
        else:
            absent.append(_title(published))
    rest = [cell for cell in by_cell if cell not in shown]
    if rest:
        tables.append(_extra_table(config.env, rest, by_cell))
    return Section(
        problem=config.env,
        setting=special,
        steps=config.steps,
        digests=tuple(sorted(digests, key=_name_and_seed)),
        tables=tuple(tables),
        absent=tuple(absent),
    )


def _by_cell(digests: Sequence[Digest]) -> dict[CellKey, dict[int, Digest]]:
    """The runs of every cell by seed, in the order of their seeds."""
    by_cell: dict[CellKey, dict[int, Digest]] = defaultdict(dict)
    for digest in sorted(digests, key=_name_and_seed):
        agent, replay, weights = digest.cell
        for period in ("overall", "last"):
            runs = by_cell[weights, agent, replay, period]
            if digest.seed in runs:
                raise InputError(
                    f"seed {digest.seed} of {agent} with {replay} replay and {weights} weights was "
                    "given twice: one run of it can be reported"
                )
            runs[digest.seed] = digest
    return dict(by_cell)


def _name_and_seed(digest: Digest) -> tuple[tuple[str, str, str], int]:
    return digest.cell, digest.seed


def _paper_table(
    published: Sequence[Published], by_cell: dict[CellKey, dict[int, Digest]]
) -> ResultTable:
    regrets = {cell: _regrets(digests, cell[3]) for cell, digests in by_cell.items()}
    return ResultTable(
        label=published[0].table,
        title=_title(published),
        cells=tuple(
            _cell(key(cell), by_cell, cell.row, cell.regret, cell.change) for cell in published
        ),
        orderings=orderings(published, regrets),
    )


def _extra_table(
    problem: str, keys: Sequence[CellKey], by_cell: dict[CellKey, dict[int, Digest]]
) -> ResultTable:
    """What the paper does not have, in the order of its names of weights, agents and replays."""
    names = [
        list(dict.fromkeys(getattr(cell, part) for cell in published_results()))
        for part in ("weights", "agent", "replay", "period")
    ]
    ordered = sorted(
        keys, key=lambda cell: [known.index(name) for known, name in zip(names, cell, strict=True)]
    )
    title = f"{PROBLEMS[problem]} (not in the paper)"
    cells = tuple(_cell(cell, by_cell, cell[1].upper(), None, None) for cell in ordered)
    return ResultTable(EXTRA, title, cells, ())


def _cell(
    cell: CellKey,
    by_cell: dict[CellKey, dict[int, Digest]],
    row: str,
    paper: float | None,
    paper_change: float | None,
) -> Cell:
    weights, agent, replay, period = cell
    digests = by_cell.get(cell, {})
    regrets = _regrets(digests, period)
    base = _regrets(by_cell.get((weights, *BASELINE, period), {}), period)
    seeds = tuple(measured(regrets))
    return Cell(
        row=row,
        weights=weights,
        agent=agent,
        replay=replay,
        period=period,
        seeds=seeds,
        failed=tuple(seed for seed in seeds if digests[seed].failed),
        unmeasured=tuple(seed for seed in digests if seed not in seeds),
        mean=mean(regrets),
        change=None if (agent, replay) == BASELINE else change(regrets, base),
        paper=paper,
        paper_change=paper_change,
    )


def _regrets(digests: dict[int, Digest], period: str) -> Runs:
    """Regret of each run in a period that is named like a digest's field."""
    return {seed: float(getattr(digest, period)) for seed, digest in digests.items()}


def _title(cells: Sequence[Published]) -> str:
    """What a table of the paper is about, as far as it is about one thing."""
    place = "Table 1" if cells[0].table == "table:results" else "appendix"
    with_others = " with SEL and EXP" if any(cell.replay == "sel" for cell in cells) else ""
    parts = [PROBLEMS[cells[0].problem] + with_others]
    weights, periods = {cell.weights for cell in cells}, {cell.period for cell in cells}
    if len(weights) == 1:
        parts.append(f"{weights.pop()} weight changes")
    if len(periods) == 1:
        parts.append({"overall": "overall", "last": "last quarter of the steps"}[periods.pop()])
    return f"{', '.join(parts)} (the paper's {place})"
