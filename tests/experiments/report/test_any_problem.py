"""Reports about any agent, replay rule, schedule and environment, with and without an oracle."""

import csv
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.experiments.synthetic import make_cell, make_run
from tests.runs.small import small
from windvane.experiments.report.csv_table import to_csv
from windvane.experiments.report.figures import section_figures
from windvane.experiments.report.latex import to_latex
from windvane.experiments.report.layout import decimals, lay_out
from windvane.experiments.report.markdown import to_markdown
from windvane.experiments.report.palette import colour, line_style
from windvane.experiments.report.report import print_report, write_report
from windvane.experiments.report.summarise import summarise_run
from windvane.experiments.report.summary import POINTS, RunSummary
from windvane.experiments.report.tables import UTILITY, sections
from windvane.experiments.runs.cells import SCHEDULE
from windvane.experiments.runs.paths import fingerprint, relative_path
from windvane.experiments.runs.store import Store, read_summary

ENV, AGENT, REPLAY = "my_lab.envs:Rover", "my_lab.agents:Dreamer", "my_lab.replay:Reservoir"
SCHEDULE_NAME = "my_lab.weights:Drift"
NAMES = {"env": ENV, "agent": AGENT, "replay": REPLAY, "schedule": SCHEDULE_NAME}


def renamed(summary: RunSummary, **names: str) -> RunSummary:
    """The same run with parts of other names, whether a configuration may name them yet or not."""
    config = replace(summary.config)
    for what, name in names.items():
        object.__setattr__(config, SCHEDULE if what == "schedule" else what, name)
    return replace(summary, config=config)


def without_oracle(values: list[float], **names: Any) -> list[RunSummary]:
    """Runs with these utilities and no regret."""
    unknown = np.full(POINTS, np.nan)
    return [
        replace(
            make_run(np.nan, seed=seed, **names), curve=unknown, overall_utility=value,
            last_utility=2 * value, utility_curve=np.full(POINTS, value),
        )
        for seed, value in enumerate(values)
    ]  # fmt: skip


def custom(summaries: list[RunSummary], **names: str) -> list[RunSummary]:
    return [renamed(summary, **(NAMES | names)) for summary in summaries]


# --- names that the paper does not have


def test_a_report_about_parts_of_others(tmp_path: Path) -> None:
    summaries = [
        *custom(make_cell([0.2, 0.4])),
        *custom(make_cell([0.1, 0.2]), agent="cn"),
        *custom(make_cell([0.3, 0.5]), replay="der"),
    ]
    [section] = sections(summaries)
    assert section.title == "Rover"
    [table] = section.tables
    assert (table.is_paper, table.title) == (False, "Rover (not in the paper)")
    layout = lay_out(section, table)
    assert [row.name for row in layout.rows] == ["CN", "Dreamer"]  # known ones come first
    assert [replay for _, replay in layout.columns] == ["DER", "Reservoir"] * 2
    assert {row.schedule for row in layout.rows} == {"Drift"}
    assert "MO with standard replay" not in to_markdown([section], {})
    assert "paper's numbers" not in to_markdown([section], {})
    names = [path.name for path in write_report(summaries, tmp_path)]
    assert names[4:] == ["my_lab.envs-Rover-regret.png"]
    assert "Drift weight changes" in (tmp_path / "report.html").read_text()
    for form in (to_latex, to_csv):
        assert "nan" not in form([section]).lower()


def test_parts_with_the_same_title_are_told_apart() -> None:
    summaries = [*custom(make_cell([0.2])), *custom(make_cell([0.4]), agent="other.agents:Dreamer")]
    [section] = sections(summaries)
    rows = [row.name for row in lay_out(section, section.tables[0]).rows]
    assert rows == ["my_lab.agents:Dreamer", "other.agents:Dreamer"]
    problems = [*custom(make_cell([0.2])), *custom(make_cell([0.2]), env="other.envs:Rover")]
    assert [s.title for s in sections(problems)] == ["my_lab.envs:Rover", "other.envs:Rover"]


def test_percents_need_the_baseline() -> None:
    summaries = [
        *custom(make_cell([0.2, 0.2]), schedule="sparse"),
        *custom(make_cell([0.4, 0.4]), agent="mo", replay="standard", schedule="sparse"),
    ]
    [section] = sections(summaries)
    assert section.has_baseline
    assert "-50.0% [-50.0, -50.0]" in to_markdown([section], {})
    [alone] = sections(summaries[:2])
    assert not alone.has_baseline
    assert "%" not in to_markdown([alone], {}).replace("95%", "")


def test_a_mixed_store_has_a_section_per_problem_and_setting() -> None:
    summaries = [
        *custom(without_oracle([3.0])),
        *custom(make_cell([0.2], learning_rate=0.5)),
        *make_cell([0.02]),
        *make_cell([0.3], problem="minecart"),
    ]
    found = sections(summaries)
    assert [(section.title, section.measure) for section in found] == [
        ("Minecart", "regret"),
        ("Deep Sea Treasure", "regret"),
        ("Rover, learning_rate 0.02", "utility"),
        ("Rover, learning_rate 0.5", "regret"),
    ]
    text = to_markdown(found, {})
    assert text.startswith("# Results beside the paper's")
    assert text.count("lower is better") == 3
    assert text.count("higher is better") == 1


# --- runs without an oracle


def test_without_an_oracle_returns_are_shown(tmp_path: Path, capsys: Any) -> None:
    summaries = [
        *custom(without_oracle([3.0, 5.0])),
        *custom(without_oracle([1.0, 1.0]), agent="cn"),
        *custom(without_oracle([2.0, 2.0]), agent="mo", replay="standard"),
    ]
    [section] = sections(summaries)
    assert (section.measure, section.tables[0].label) == ("utility", UTILITY)
    layout = lay_out(section, section.tables[0])
    cells = {(row.name, i): cell for row in layout.rows for i, cell in enumerate(row.cells) if cell}
    best = {name: cell.ours for (name, _), cell in cells.items() if cell.best}
    assert best == {"Dreamer": "8.00 [-17.41, 33.41]"}  # of the last quarter, and overall
    assert {cell.change for cell in cells.values()} >= {"+100.0% [-535.3, +735.3]"}
    write_report(summaries, tmp_path)
    print_report(Console(width=120), summaries)
    for text in (*(p.read_text() for p in tmp_path.glob("report.*")), capsys.readouterr().out):
        assert "nan" not in text.lower().replace("image/png", "")[:20_000]
    assert "higher is better" in (tmp_path / "report.md").read_text()
    assert "Scalarised return: " in (tmp_path / "report.md").read_text()
    lines = list(csv.DictReader((tmp_path / "report.csv").read_text().splitlines()))
    assert {line["table"] for line in lines} == {"utility"}
    assert [line["mean"] for line in lines if line["agent"] == "cn"] == ["1.0", "2.0"]


def test_the_papers_numbers_are_not_beside_returns() -> None:
    [section] = sections(without_oracle([3.0]))
    assert section.title == "Deep Sea Treasure"
    assert not section.has_paper
    assert section.absent == ()


def test_curves_of_returns_skip_windows_without_an_episode() -> None:
    values = np.full(POINTS, np.nan)
    values[10], values[100] = 1.0, 3.0
    [one] = custom(without_oracle([2.0]))
    [section] = sections([replace(one, utility_curve=values)])
    figures = section_figures(section)
    assert list(figures) == ["utility"]
    [axes] = figures["utility"].axes
    x, y = axes.lines[0].get_data()
    assert len(x) == POINTS - 10
    np.testing.assert_allclose(np.asarray(y)[[0, 89, 90, -1]], [1, 1, 3, 3])
    assert figures["utility"].get_supylabel() == "scalarised return"


def test_returns_after_a_change_of_weights() -> None:
    after = np.tile([1.0] + [2.0] * 9, 20)
    [section] = sections([replace(s, utility_curve=after) for s in without_oracle([1.9, 1.9])])
    [axes] = section_figures(section)["adaptation"].axes
    np.testing.assert_allclose(axes.lines[0].get_data()[1], [1.0] + [2.0] * 9)


def test_many_schedules_have_rows_of_panels() -> None:
    summaries = [
        each
        for name in ("sparse", "regular", "a:Drift", "a:Jump")
        for each in custom(make_cell([0.1]), schedule=name)
    ]
    [section] = sections(summaries)
    figure = section_figures(section)["regret"]
    assert [axes.get_title() for axes in figure.axes] == [
        "sparse weight changes", "regular weight changes", "Drift weight changes",
        "Jump weight changes",
    ]  # fmt: skip
    rows = [axes.get_subplotspec().rowspan.start for axes in figure.axes]
    assert rows == [0, 0, 1, 1]
    assert all(axes.get_window_extent().height > 100 for axes in figure.axes)


# --- summaries of episodes with returns


def episodes(**columns: Any) -> dict[str, np.ndarray]:
    records = {
        "step": np.asarray([2, 3, 240, 470]),
        "regret": np.full(4, np.nan),
        "weights_0": np.asarray([0.5, 0.5, 1.0, 0.0]),
        "weights_1": np.asarray([0.5, 0.5, 0.0, 1.0]),
        "return_0": np.asarray([1.0, 3.0, 3.0, 4.0]),
        "return_1": np.asarray([1.0, 1.0, 9.0, 6.0]),
    }
    return records | {name: np.asarray(column) for name, column in columns.items()}


@pytest.mark.parametrize("column", [{}, {"utility": [1.0, 2.0, 3.0, 6.0]}])
def test_the_utility_of_episodes_by_hand(column: dict[str, Any]) -> None:
    found = summarise_run(small(seeds=(3,)), episodes(**column), False, {})
    assert (found.overall_utility, found.last_utility) == (3.0, 6.0)
    assert np.isnan(found.overall)
    curve = found.utility_curve
    assert curve is not None
    # Windows of 2.4 steps.
    assert {k: v for k, v in enumerate(curve) if np.isfinite(v)} == {
        0: 1.0,
        1: 2.0,
        99: 3.0,
        195: 6,
    }


def test_no_episode_makes_no_warning() -> None:
    nothing = {name: column[:0] for name, column in episodes().items()}
    with warnings.catch_warnings(action="error"):
        found = summarise_run(small(seeds=(3,)), nothing, False, {})
    assert found.episodes == 0
    assert np.isnan([found.overall, found.last, found.overall_utility]).all()
    assert found.utility_curve is None
    assert found.curve.tolist() == [0.0] * POINTS


def test_a_run_without_an_oracle_is_stored_and_summarised(tmp_path: Path) -> None:
    run = small(seeds=(3,))
    summary = read_summary(Store(tmp_path).write(run, episodes(), False, {}))
    assert summary.overall_utility == 3.0
    [section] = sections([summary])
    assert section.measure == "utility"


# --- colours, styles, decimals, paths


def test_every_agent_and_replay_has_a_look_of_its_own() -> None:
    agents = ["mo", "mn", "cn", "cn-uvfa", "cn-active", "uvfa", "naive", AGENT, "a:B", "a:C"]
    assert len({colour(agent) for agent in agents}) == len(agents)
    assert colour(AGENT) == colour(AGENT)
    replays = ["standard", "der", "sel", "exp", REPLAY, "a:B", "a:C"]
    assert len({str(line_style(replay)) for replay in replays}) == len(replays)


@pytest.mark.parametrize(
    ("size", "number"), [(0.0, 3), (0.0004, 6), (0.05, 4), (0.5, 3), (3.0, 2), (42.0, 1), (1e6, 0)]
)
def test_decimals_follow_the_size_of_the_numbers(size: float, number: int) -> None:
    [section] = sections(custom(make_cell([size, size])))
    assert decimals(section) == number
    [negative] = sections(custom(without_oracle([-size, -size])))
    assert decimals(negative) == decimals(sections(custom(without_oracle([size, size])))[0])
    [paper] = sections(make_cell([size]))
    assert decimals(paper) == 4


def test_import_paths_are_part_of_a_path() -> None:
    [one], [other] = (
        custom(make_cell([0.1])),
        custom(make_cell([0.1]), agent="my_lab.agents-Dreamer"),
    )
    path, another = relative_path(one.config), relative_path(other.config)
    assert len(path.parts) == 4
    assert not set(":*?<>|") & set(str(path))
    assert path.parent == another.parent
    assert fingerprint(one.config) != fingerprint(other.config)
