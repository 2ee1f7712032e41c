"""Grids: the cells of an experiment. The paper's grids are read off its tables, so that a grid has
exactly the cells that they print.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Literal, get_args

from windvane.errors import InputError, choose
from windvane.experiments.paper.published import published_results
from windvane.experiments.runs.cells import SCHEDULES, Cell
from windvane.training.config import TrainConfig

GridName = Literal["dst", "minecart", "selection", "naive"]

_TABLES: dict[str, dict[str, str]] = {
    "dst": {"table": "table:results-dst"},
    "minecart": {"table": "table:results"},
    "selection": {"problem": "minecart"},
    "naive": {"problem": "minecart", "agent": "naive"},
}


@dataclass(frozen=True)
class Grid:
    """Cells with the same settings otherwise, those of a preset."""

    name: str
    preset: str
    cells: tuple[Cell, ...]

    @staticmethod
    def paper(name: str) -> "Grid":
        """A grid of the paper: `dst` is the DST table, `minecart` Table 1, `selection` the four
        tables with SEL and EXP beside the others, and `naive` their NAIVE rows.
        """
        choose("grid", name, get_args(GridName))
        cells = dict.fromkeys(row.cell for row in published_results(**_TABLES[name]))
        return Grid(name, "paper-dst" if name == "dst" else "paper-minecart", tuple(cells))

    @staticmethod
    def of(
        name: str,
        preset: str,
        agents: Iterable[str],
        replays: Iterable[str] = ("standard", "der"),
        schedules: Iterable[str] = SCHEDULES,
    ) -> "Grid":
        """A custom grid: every agent with every replay rule under every schedule."""
        cells = (Cell(*names) for names in product(agents, replays, schedules))
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
            TrainConfig.preset(self.preset, **(settings | cell.settings() | {"seeds": seeds}))
            for cell in self.cells
        )
        return tuple(run for cell in cells for run in cell.runs)
