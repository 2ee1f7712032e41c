"""Tables on narrow terminals."""

import io

import pytest
from rich.console import Console

from windvane.cli.printing import print_table

COLUMNS = ("run", "points", "hypervolume", "expected utility", "IGD", "IGD+", "max. utility loss")
NUMBERS = ("10", "0.0677612", "0.136512", "0.0347512", "0.0244312", "0.0539112")


def printed(width: int, name: str) -> str:
    text = io.StringIO()
    title = "Fronts (discounted by 0.95, rewards times 0.01)"
    front = ("known front", *NUMBERS)
    print_table(Console(file=text, width=width), title, COLUMNS, [(name, *NUMBERS)], [front])
    return text.getvalue()


@pytest.mark.parametrize("name", ["seed-0", "a long name", "/folders/" * 12])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_numbers_are_whole_and_lines_fit(width: int, name: str) -> None:
    said = printed(width, name)
    assert max(map(len, said.splitlines())) <= width
    assert "…" not in said
    for number in NUMBERS:
        assert said.count(f" {number} ") == 2
    for word in " ".join(COLUMNS[1:]).split():
        assert f" {word} " in said


def test_a_wide_terminal_gets_one_table_and_a_narrow_one_even_parts() -> None:
    assert printed(200, "seed-0").count(" run ") == 1
    assert " expected utility " in printed(200, "seed-0")
    narrow = [line for line in printed(70, "seed-0").splitlines() if "seed-0" in line]
    assert [line.count("│") for line in narrow] == [5, 5]
