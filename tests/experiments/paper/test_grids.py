import pytest

from windvane.errors import InputError
from windvane.experiments.paper.grids import Grid
from windvane.experiments.paper.published import published_results
from windvane.experiments.runs.cells import Cell, cell_of


@pytest.mark.parametrize(("name", "number"), [("dst", 28), ("minecart", 24), ("naive", 8)])
def test_a_grid_has_the_cells_of_its_table(name: str, number: int) -> None:
    grid = Grid.paper(name)
    assert len(grid.cells) == len(set(grid.cells)) == number


def test_selection_holds_every_cell_that_the_paper_prints_for_minecart() -> None:
    printed = {r.cell for r in published_results(problem="minecart")}
    assert set(Grid.paper("selection").cells) == printed
    assert set(Grid.paper("minecart").cells) < printed
    assert set(Grid.paper("naive").cells) == {cell for cell in printed if cell[0] == "naive"}


def test_cells_are_chosen_by_pattern() -> None:
    grid = Grid.paper("dst")
    assert grid.select(["cn-der-sparse"]).cells == (Cell("cn", "der", "sparse"),)
    # A dash is part of names, so that a pattern may match more than one agent.
    assert {c.agent for c in grid.select(["cn-*"]).cells} == {"cn", "cn-active", "cn-uvfa"}
    assert len(grid.select(["mo-*", "*-regular"]).cells) == 4 + 14 - 2
    chosen = grid.select(["uvfa-der-*", "cn-der-sparse", "uvfa-*"]).cells
    assert [str(cell) for cell in chosen] == [
        "uvfa-der-sparse", "uvfa-der-regular", "cn-der-sparse",
        "uvfa-standard-sparse", "uvfa-standard-regular",
    ]  # fmt: skip
    assert grid.select([]).cells == grid.cells
    with pytest.raises(InputError, match=r"no cell of dst matches 'cn-sel-\*'; they are: naive-"):
        grid.select(["cn-sel-*"])


def test_unknown_grids_are_named() -> None:
    with pytest.raises(InputError, match="unknown grid 'atari'; choose one of: dst, minecart"):
        Grid.paper("atari")


def test_runs_are_of_one_seed_and_one_cell() -> None:
    runs = Grid.paper("dst").select(["cn-der-*"]).runs(2, steps=2000)
    assert [(cell_of(run).schedule, run.seeds) for run in runs] == [
        ("sparse", (0,)), ("sparse", (1,)), ("regular", (0,)), ("regular", (1,)),
    ]  # fmt: skip
    assert {run.steps for run in runs} == {2000}
    assert {run.gamma for run in runs} == {0.95}


def test_a_custom_grid() -> None:
    grid = Grid.of("mine", "paper-minecart", ["cn"], ["sel"], ["sparse"])
    assert grid.cells == (Cell("cn", "sel", "sparse"),)
    assert grid.runs(1)[0].env == "minecart"
