"""What long jobs show: how much is done, for how long, and how long the rest will take."""

import io

import pytest
from rich.console import Console

from windvane import progress
from windvane.progress import duration, progress_display, time_left


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (119, "119 s"), (300, "5 min"), (7_140, "119 min"), (9_000, "2 h 30 min")],
)
def test_durations_are_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_time_left_is_known_once_something_is_done() -> None:
    assert time_left(10, 0, 4) == "10 s so far"
    assert time_left(10, 1, 4) == "10 s so far, about 30 s left"
    assert time_left(10, 4, 4) == "10 s so far"


def test_a_log_says_how_long_each_part_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 0.0, 12.0, 13.0, 33.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    text = io.StringIO()
    with progress_display(Console(file=text, width=40)) as report:
        report("routes", 0, 4)
        report("routes", 1, 4)
        report("trips", 0, 2_000)
        report("trips", 1_000, 2_000)
    assert text.getvalue().splitlines() == [
        "routes: 1 of 4, 12 s so far, about 36 s left",
        "trips: 1,000 of 2,000, 20 s so far, about 20 s left",
    ]


def test_a_terminal_gets_a_bar_with_the_time_left() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120)
    with progress_display(console) as report:
        report("routes", 1, 4)
        report("routes", 4, 4)
    assert "4/4" in text.getvalue()
    assert "so far" in text.getvalue()
