"""Runs that have no number: every form of a report says which kind of nothing it is."""

import csv
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.experiments.report.test_any_problem import custom, without_oracle
from tests.experiments.report.test_report import parse
from tests.experiments.synthetic import make_cell, make_run
from windvane.experiments.report.csv_table import to_csv
from windvane.experiments.report.latex import to_latex
from windvane.experiments.report.markdown import to_markdown
from windvane.experiments.report.report import print_report
from windvane.experiments.report.summary import POINTS, RunSummary
from windvane.experiments.report.tables import sections
from windvane.experiments.report.webpage import to_html

NAN = math.nan


def unknown(seed: int = 0, **changes: Any) -> RunSummary:
    """A run of 913 episodes, of which no regret is known."""
    curve = np.full(POINTS, NAN)
    return replace(make_run(NAN, seed=seed), **({"episodes": 913, "curve": curve} | changes))


@pytest.mark.parametrize(
    ("changes", "measure", "overall", "last"),
    [
        ({}, "regret", "unknown", "unknown"),
        ({"overall_utility": 2.0, "last_utility": 1.0}, "regret", "unknown", "unknown"),
        ({"overall_utility": 2.0}, "regret", "unknown", "no episode"),
        ({"overall_utility": 2.0}, "utility", None, "no episode"),
        ({}, "utility", "unknown", "unknown"),
        ({"overall": 0.5}, "regret", None, "no episode"),
        ({"overall": 0.5, "last": 0.5}, "regret", None, None),
        ({"episodes": 0}, "regret", "no episode", "no episode"),
        ({"episodes": 0}, "utility", "no episode", "no episode"),
    ],
)
def test_why_a_run_has_no_number(
    changes: dict[str, Any], measure: Any, overall: str | None, last: str | None
) -> None:
    run = unknown(**changes)
    assert (run.unmeasured(measure, "overall"), run.unmeasured(measure, "last")) == (overall, last)


def forms(summaries: list[RunSummary]) -> list[str]:
    """The text of every form that people read."""
    found = sections(summaries)
    console = Console(width=300, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(console, summaries)
    console.file.close()
    html = "\n".join(parse(to_html(found, {})).text)
    return [to_markdown(found, {}), html, to_latex(found), console.export_text()]


def test_reports_say_why_there_is_no_number() -> None:
    """Besides one that is fine: one of each kind, and one that diverged before an episode ended."""
    summaries = [
        *make_cell([0.02]),
        unknown(1),
        unknown(2, episodes=0),
        unknown(3, episodes=0, failed=True),
        make_run(0.03, seed=4, last=NAN, failed=True),
    ]
    for text in forms(summaries):
        assert (
            "Diverged and stopped learning, as a loss or gradient was not finite; where they have "
            "a number, included in means: sparse CN+DER (seed 3, 4)."
        ) in text
        assert (
            "Not counted, as no episode ended in the period: sparse CN+DER (seed 2, 3, 4)." in text
        )
        assert (
            "Not counted, as the regret of their episodes is not known: sparse CN+DER (seed 1)."
        ) in text
    for text in forms(summaries)[:3]:
        assert "2 seeds, 2 diverged, no episode ended in 2, regret unknown of 1" in text
        assert "1 seed, 2 diverged, no episode ended in 3, regret unknown of 1" in text
    overall, last = [line for line in csv.DictReader(to_csv(sections(summaries)).splitlines())
                     if line["agent"] == "cn" and line["replay"] == "der"
                     and line["schedule"] == "sparse"]  # fmt: skip
    counts = [(line["seeds"], line["failed"], line["no_episode"], line["unknown"])
              for line in (overall, last)]  # fmt: skip
    assert counts == [("2", "2", "2", "1"), ("1", "2", "3", "1")]


def test_where_no_regret_is_known_no_report_says_that_no_episode_ended() -> None:
    for text in forms([unknown(0), unknown(1, failed=True)]):
        assert "no episode" not in text
        assert "Not counted, as the regret of their episodes is not known: sparse CN+DER" in text
        assert "Diverged and stopped learning" in text
    for text in forms([unknown(0), unknown(1, failed=True)])[:3]:
        assert "1 diverged, regret unknown of 2" in text


def test_returns_may_be_unknown_too() -> None:
    """Summaries of earlier versions have none."""
    summaries = [*custom(without_oracle([3.0]))]
    summaries += custom([unknown(seed=1)])
    for text in forms(summaries):
        assert "Not counted, as the return of their episodes is not known: Drift" in text
