"""Grids: which cells an experiment has. A cell is what a table of the paper has a number for.

The grids of the paper are read off its tables, so that a grid holds exactly what they print.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

from windvane.errors import InputError, choose
from windvane.experiments.published import published_results
from windvane.training.config import TrainConfig
from windvane.training.settings import AgentName, PresetName, ReplayName, WeightsName

GridName = Literal["dst", "minecart", "selection", "naive"]

_TABLES: dict[str, dict[str, str]] = {
    "dst": {"table": "table:results-dst"},
    "minecart": {"table": "table:results"},
    "selection": {"problem": "minecart"},
    "naive": {"problem": "minecart", "agent": "naive"},
}


class Cell(NamedTuple):
    """What is compared: an agent, what it remembers, and how weights change."""

    agent: AgentName
    replay: ReplayName
    weights: WeightsName

    def __str__(self) -> str:
        return "-".join(self)


@dataclass(frozen=True)
class Grid:
    """Cells with the same settings otherwise, those of a preset."""

    name: str
    preset: PresetName
    cells: tuple[Cell, ...]

    @staticmethod
    def paper(name: str) -> "Grid":
        """A grid of the paper: `dst` is the DST table, `minecart` Table 1, `selection` the four
        tables with SEL and EXP beside the others, and `naive` their NAIVE rows.
        """
        choose("grid", name, get_args(GridName))
        rows = published_results(**_TABLES[name])
        cells = dict.fromkeys(Cell(row.agent, row.replay, row.weights) for row in rows)
        return Grid(name, "paper-dst" if name == "dst" else "paper-minecart", tuple(cells))

    @staticmethod
    def of(
        name: str,
        preset: PresetName,
        agents: Iterable[AgentName],
        replays: Iterable[ReplayName] = ("standard", "der"),
        weights: Iterable[WeightsName] = ("sparse", "regular"),
    ) -> "Grid":
        """A grid of one's own: every agent with every replay under all weight changes."""
        cells = (Cell(*of) for of in product(agents, replays, weights))
        return Grid(name, preset, tuple(cells))

    def select(self, patterns: Iterable[str]) -> "Grid":
        """The cells whose names match one of the patterns, such as `cn-der-sparse` or `mo-*`, in
        the order of the patterns; without patterns, all.
        """
        kept: dict[Cell, None] = {}
        for pattern in (patterns := tuple(patterns)):
            matching = [cell for cell in self.cells if fnmatchcase(str(cell), pattern)]
            if not matching:
                raise InputError(
                    f"no cell of {self.name} matches {pattern!r}; they are: "
                    f"{', '.join(map(str, self.cells))}"
                )
            kept |= dict.fromkeys(matching)
        return Grid(self.name, self.preset, tuple(kept) if patterns else self.cells)

    def runs(self, seeds: int | tuple[int, ...], **settings: Any) -> tuple[TrainConfig, ...]:
        """Every run of the grid, cell by cell, as a configuration of that run alone."""
        cells = (
            TrainConfig.preset(self.preset, **(settings | cell._asdict() | {"seeds": seeds}))
            for cell in self.cells
        )
        return tuple(run for cell in cells for run in cell.runs)
