"""The page of `benchmarks.time_to_utility`, from results made by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.utility_looks import Clock
from benchmarks.utility_page import (
    NAMES,
    ORDER,
    median_seconds,
    missing,
    page,
    seconds_to,
    verdict,
    write_page,
)


def result(agent: str, shares: list[float], *, seed: int = 0, pace: float = 1.0) -> dict[str, Any]:
    """Looks after 1, 2, 4, ... times `pace` seconds that found these shares."""
    rows = [
        {"seconds": pace * 2**index, "with_compilation": pace * 2**index + 10, "share": share,
         "utility": 4 * share, "worst": 0.1, "steps": 100 * index, "load": [0.5, 0.4, 0.3]}
        for index, share in enumerate(shares)
    ]  # fmt: skip
    return {
        "env": "four-room-v0", "agent": agent, "seed": seed, "optimum": 4.0, "random": 0.3,
        "optimum_from": "a search", "gamma": 0.99, "rows": rows, "processor": "a processor",
        "versions": {"numpy": "2"}, "load_at_start": [0.1, 0.1, 0.1],
    }  # fmt: skip


def test_the_first_look_that_found_so_much_counts():
    run = result("fast", [0.5, 0.93, 0.91, 0.96])
    assert seconds_to(run, 0.9) == 2
    assert seconds_to(run, 0.95) == 8
    assert seconds_to(run, 0.95, "with_compilation") == 18
    assert seconds_to(run, 0.99) is None


def test_a_seed_that_never_gets_there_counts_as_later_than_all():
    runs = [result("fast", [0.5, 0.96]), result("fast", [0.96]), result("fast", [0.2])]
    assert median_seconds(runs, 0.95) == 2
    assert median_seconds(runs[1:], 0.95) is None
    assert median_seconds([], 0.95) is None


def test_who_never_gets_there_is_shown_with_what_was_reached():
    text = page([result("fast", [0.5, 0.96]), result("morl-envelope", [0.3, 0.7, 0.6])], "x.png")
    assert "not in 4 s (reached 70.0%)" in text
    assert "no peer is within 4 s, more than 2.0 times as long" in text
    assert "99%: nobody." in text


@pytest.mark.parametrize(("pace", "said"), [(0.5, "4.0 times later"), (8.0, "4.0 times sooner")])
def test_the_page_says_who_wins(pace: float, said: str):
    here = {
        "fast": [result("fast", [0.5, 0.96])],
        "morl-gpi-ls": [result("morl-gpi-ls", [0.97], pace=pace)],
    }
    text = verdict(here)
    assert said in text
    assert ("A peer wins." in text) == (pace < 1)


def test_files_become_a_page_and_a_figure(tmp_path: Path):
    source = tmp_path / "runs"
    source.mkdir()
    for agent in ("fast", "morl-envelope"):
        for seed in (0, 1):
            run = result(agent, [0.2, 0.5, 0.96], seed=seed)
            (source / f"four-room-v0-{agent}-{seed}.json").write_text(json.dumps(run))
    write_page(source, tmp_path / "page.md")
    assert "| Windvane `fast` | 2 | 4 s | 4 s |" in (tmp_path / "page.md").read_text()
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_what_is_compiled_within_a_compilation_counts_once():
    now = [100.0]
    clock = Clock(lambda: now[0], lambda: now[0])
    for at, seconds in ((110, 2), (111, 4), (120, 1)):  # the second holds the first
        now[0] = at
        clock.compiled(seconds)
    clock.looking = True
    now[0] = 125
    clock.compiled(3)
    clock.looked(5)
    assert (clock.with_compilation, clock.compilation, clock.seconds) == (20, 5, 15)


def test_what_the_processor_does_for_others_does_not_count():
    now = [100.0]
    clock = Clock(lambda: now[0], lambda: now[0] / 2)  # half of it is at work elsewhere
    now[0] = 110
    clock.compiled(6)
    assert (clock.with_compilation, clock.compilation, clock.seconds) == (5, 3, 2)


def test_contenders_that_are_missing_are_named():
    run = result("fast", [0.5, 0.96])
    (text,) = missing(
        [run | {"finished": "training"}, result("envelope", [0.1]) | {"finished": ""}]
    )
    here = next(part for part in text.split("; ") if "four-room-v0" in part)
    assert "Windvane `fast`" not in here
    assert "Windvane Envelope" in here
    everything = [
        run | {"env": env, "agent": name, "finished": "minutes"} for env in ORDER for name in NAMES
    ]
    assert missing(everything) == []
