"""From runs to tables: every cell finds its runs, and every verdict is the one it should be."""

import csv
import dataclasses
from collections import Counter

import numpy as np
import pytest

from tests.experiments.synthetic import make_cell, make_run, paper_runs
from windvane.errors import InputError
from windvane.experiments.paper.orderings import VERDICTS, contrary, counts, key
from windvane.experiments.paper.published import published_results
from windvane.experiments.report.csv_table import to_csv
from windvane.experiments.report.markdown import to_markdown
from windvane.experiments.report.tables import EXTRA, sections

MAIN, DST = "table:results", "table:results-dst"
SPARSE_OVERALL = "table:sel-result-table-sparse-overall"

T1 = 12.7062047
"""The 97.5% point of Student's t with one degree of freedom: of two runs."""


def only_section(summaries):
    [section] = sections(summaries)
    return section


def table_of(summaries, label=DST):
    [table] = [table for table in only_section(summaries).tables if table.label == label]
    return table


def cell_of(table, agent="cn", replay="der", schedule="sparse", period="overall"):
    names = schedule, agent, replay, period
    [cell] = [c for c in table.cells if (c.schedule, c.agent, c.replay, c.period) == names]
    return cell


def named(cells):
    return [(cell.schedule, cell.agent, cell.replay) for cell in cells]


# --- cells


def test_a_cell_has_our_numbers_and_the_papers():
    summaries = [
        *make_cell([0.02, 0.04], last=0.01),
        *make_cell([0.06, 0.06], agent="mo", replay="standard", last=0.04),
    ]
    table = table_of(summaries)
    cell = cell_of(table)
    assert (cell.row, cell.seeds, cell.failed, cell.unmeasured) == ("CN", (0, 1), (), ())
    assert cell.mean is not None
    assert (cell.mean.value, cell.mean.low, cell.mean.high) == pytest.approx(
        (0.03, 0.03 - T1 * 0.01, 0.03 + T1 * 0.01)
    )
    assert cell.change is not None
    ends = (cell.change.value, cell.change.low, cell.change.high)
    # The baseline has no variance, so the interval is the mean's in other units.
    assert ends == pytest.approx((-50, -50 - T1 * 100 / 6, -50 + T1 * 100 / 6))
    assert (cell.paper, cell.paper_change) == (0.021, -43.24)
    late = cell_of(table, period="last")
    assert late.mean is not None
    assert late.change is not None
    assert (late.mean.value, late.change.value) == pytest.approx((0.01, -75))
    assert (late.paper, late.paper_change) == (0.009, -66.67)


def test_percents_are_of_the_baseline_with_the_same_schedule():
    base = {"agent": "mo", "replay": "standard"}
    summaries = [
        *make_cell([0.03], schedule="regular"),
        *make_cell([0.06], schedule="sparse", **base),
        *make_cell([0.02], schedule="regular", **base),
    ]
    table = table_of(summaries)
    changed = cell_of(table, schedule="regular").change
    assert changed is not None
    assert changed.value == pytest.approx(50)
    for schedule in ("sparse", "regular"):
        assert cell_of(table, schedule=schedule, **base).change is None


def test_without_the_baseline_there_are_no_percents():
    assert cell_of(table_of(make_cell([0.02, 0.03]))).change is None


def test_the_papers_number_may_lie_in_our_interval():
    inside, outside = make_cell([0.02, 0.03]), make_cell([0.028, 0.029])
    assert cell_of(table_of(inside)).contains_paper
    assert not cell_of(table_of(outside)).contains_paper
    assert not cell_of(table_of(make_cell([0.021]))).contains_paper


def test_a_run_whose_loss_exploded_counts_and_is_told():
    exploded = dataclasses.replace(make_run(0.09, seed=2), largest_loss=837.0, loss_limit=50.0)
    fine = dataclasses.replace(make_run(0.02), largest_loss=1.9, loss_limit=50.0)
    [section] = sections([fine, make_run(0.04, seed=1, failed=True), exploded])
    [cell] = [c for t in section.tables for c in t.cells if c.seeds and c.period == "overall"]
    assert (cell.seeds, cell.failed, cell.exploded) == ((0, 1, 2), (1,), (2,))
    text = to_markdown([section], {})
    assert "3 seeds, 2 diverged" in text
    assert "finite loss, above 10 times what their returns allow, and went on learning" in text
    assert "included in means: sparse CN+DER (seed 2)." in text
    assert "included in means: sparse CN+DER (seed 1)." in text
    lines = list(csv.DictReader(to_csv([section]).splitlines()))
    assert {(x["failed"], x["exploded"]) for x in lines} == {("0", "0"), ("1", "1")}


def test_a_failed_run_counts_and_is_told():
    summaries = [*make_cell([0.02, 0.04]), make_run(0.09, seed=2, failed=True)]
    cell = cell_of(table_of(summaries))
    assert cell.mean is not None
    assert cell.mean.value == pytest.approx(0.05)
    assert (cell.seeds, cell.failed) == ((0, 1, 2), (2,))


def test_a_run_without_an_episode_does_not_count_and_is_told():
    summaries = [*make_cell([0.02, 0.04]), make_run(0.03, seed=2, last=np.nan)]
    table = table_of(summaries)
    overall, late = cell_of(table), cell_of(table, period="last")
    assert (overall.seeds, overall.unmeasured) == ((0, 1, 2), ())
    assert (late.seeds, late.unmeasured) == ((0, 1), (2,))
    assert late.mean is not None
    assert late.mean.value == pytest.approx(0.03)


def test_a_seed_given_twice_is_refused():
    with pytest.raises(InputError, match="seed 0 of cn with der replay and sparse schedule was"):
        sections([make_run(0.02), make_run(0.03)])


# --- tables


@pytest.mark.parametrize("problem", ["minecart", "dst"])
def test_tables_have_the_papers_cells_in_its_order(problem):
    section = only_section(paper_runs(problem, 2))
    labels = dict.fromkeys(cell.table for cell in published_results(problem=problem))
    assert [table.label for table in section.tables] == list(labels)
    assert section.absent == ()
    for table in section.tables:
        published = published_results(table=table.label)
        assert [(c.schedule, c.agent, c.replay, c.period) for c in table.cells] == [
            key(cell) for cell in published
        ]
        for ours, paper in zip(table.cells, published, strict=True):
            assert (ours.row, ours.paper, ours.paper_change) == (
                (paper.row, paper.regret, paper.change)
            )
            assert ours.mean is not None
            assert ours.mean.value == pytest.approx(paper.regret)
            if ours.change is not None:
                assert ours.change.value == pytest.approx(paper.change, abs=0.005)


def test_the_order_of_runs_does_not_matter():
    summaries = paper_runs("dst", 3)
    assert sections(summaries[::-1])[0].tables == sections(summaries)[0].tables


def test_the_appendix_is_shown_for_what_only_it_has():
    main = make_cell([0.2, 0.3], problem="minecart")
    section = only_section(main)
    assert [table.label for table in section.tables] == [MAIN]
    assert len(section.absent) == 4
    assert section.absent[0] == (
        "Minecart with SEL and EXP, sparse weight changes, overall (the paper's appendix)"
    )
    section = only_section([*main, *make_cell([0.4], replay="sel", problem="minecart")])
    labels = [table.label for table in section.tables]
    assert labels == [MAIN, SPARSE_OVERALL, "table:sel-result-table-sparse-final"]
    assert cell_of(section.tables[1]).seeds == (0, 1)


def test_what_the_paper_does_not_have_is_shown_apart():
    section = only_section([*make_cell([0.02]), *make_cell([0.5, 0.7], replay="sel")])
    assert [table.label for table in section.tables] == [DST, EXTRA]
    extra = section.tables[1]
    assert named(extra.cells) == [("sparse", "cn", "sel")] * 2
    assert [cell.period for cell in extra.cells] == ["overall", "last"]
    found = extra.cells[0].mean
    assert found is not None
    expected = (0.6, 0.6 - T1 * 0.1, 0.6 + T1 * 0.1)
    assert (found.value, found.low, found.high) == pytest.approx(expected)
    assert extra.cells[0].paper is None
    assert extra.orderings == ()


# --- settings are not mixed


def test_variants_have_sections_that_name_their_difference():
    summaries = [
        *make_cell([0.02, 0.04]),
        *make_cell([0.5, 0.7], observation="features"),
        *make_cell([0.1, 0.3], observation="features", steps=2_000),
        *make_cell([0.4, 0.4], problem="minecart"),
    ]
    found = sections(summaries)
    means = {section.title: cell_of(section.tables[0]).mean for section in found}
    assert {title: mean and mean.value for title, mean in means.items()} == {
        "Minecart": pytest.approx(0.4),
        "Deep Sea Treasure, observation pixels, steps 100,000": pytest.approx(0.03),
        "Deep Sea Treasure, observation features, steps 100,000": pytest.approx(0.6),
        "Deep Sea Treasure, observation features, steps 2,000": pytest.approx(0.2),
    }


def test_a_single_variant_names_what_is_not_the_papers():
    [section] = sections(make_cell([0.02], learning_rate=0.1, precision="float32"))
    assert section.setting == {"learning_rate": 0.1}
    assert section.title == "Deep Sea Treasure, learning_rate 0.1"


def test_the_precision_is_named_where_it_tells_variants_apart():
    summaries = [*make_cell([0.02], precision="float32"), *make_cell([0.03], precision="bfloat16")]
    titles = [section.title for section in sections(summaries)]
    assert titles == [
        "Deep Sea Treasure, precision bfloat16",
        "Deep Sea Treasure, precision float32",
    ]


def test_settings_that_change_nothing_do_not_part_runs():
    summaries = [make_run(0.02, seed=0, chunk=10), make_run(0.04, seed=1, checkpoint_seconds=0)]
    assert cell_of(table_of(summaries)).seeds == (0, 1)


# --- orders


def verdict_on(ours_lower, ours_higher):
    """Of CN+DER, which the paper has at 0.021, against MO+DER, which it has at 0.031."""
    summaries = [*make_cell(ours_lower), *make_cell(ours_higher, agent="mo")]
    [overall, late] = table_of(summaries).orderings
    assert (overall.lower.agent, overall.higher.agent) == ("cn", "mo")
    assert (overall.lower.period, late.lower.period) == ("overall", "last")
    assert overall.paper == pytest.approx(0.01)
    return overall.verdict


def test_verdicts():
    low, high = [0.01, 0.011, 0.012], [0.03, 0.031, 0.032]
    assert verdict_on(low, high) == "holds"
    assert verdict_on(high, low) == "reversed"
    # Better for most seeds, much worse for one: the mean's direction is not sure.
    assert verdict_on([0.01, 0.02, 0.03], [0.02, 0.04, 0.025]) == "same direction, not significant"
    assert verdict_on([0.02, 0.04, 0.025], [0.01, 0.02, 0.03]) == "other direction, not significant"
    assert verdict_on(low, low) == "other direction, not significant"


def test_single_runs_are_never_significant():
    assert verdict_on([0.01], [0.05]) == "same direction, not significant"
    assert verdict_on([0.05], [0.01]) == "other direction, not significant"


def test_runs_of_the_same_seeds_are_compared_in_pairs():
    shared = np.asarray([0.01, 0.05, 0.09, 0.02])
    assert verdict_on(shared, shared + 0.001) == "holds"
    summaries = [
        *make_cell(shared),
        *(make_run(r + 0.001, agent="mo", seed=9 + s) for s, r in enumerate(shared)),
    ]
    assert table_of(summaries).orderings[0].verdict == "same direction, not significant"


@pytest.mark.parametrize("problem", ["minecart", "dst"])
def test_all_the_papers_orders_hold_for_the_papers_numbers(problem):
    for table in only_section(paper_runs(problem, 3)).tables:
        groups: dict = {}
        for cell in published_results(table=table.label):
            groups.setdefault((cell.schedule, cell.period), []).append(cell.regret)
        # Pairs in all, less those with equal numbers.
        pairs = sum(
            len(group) * (len(group) - 1) // 2
            - sum(n * (n - 1) // 2 for n in Counter(group).values())
            for group in groups.values()
        )
        assert counts(table.orderings) == dict.fromkeys(VERDICTS, 0) | {"holds": pairs}
        assert contrary(table.orderings) == ()


def test_equal_numbers_of_the_paper_are_not_judged():
    """MO and MN with DER and MN without: 0.031, 0.030 and 0.031 overall; 0.022, 0.019, 0.020."""
    summaries = [
        *make_cell([0.03], agent="mo"),
        *make_cell([0.04], agent="mn"),
        *make_cell([0.05], agent="mn", replay="standard"),
    ]
    pairs = table_of(summaries).orderings
    assert Counter(pair.lower.period for pair in pairs) == {"overall": 2, "last": 3}


def test_pairs_that_go_the_other_way_begin_with_the_surest_and_largest():
    """The paper has CN+DER 0.021, UVFA+DER 0.030, MO+DER 0.031 and NAIVE+DER 0.060."""
    summaries = [
        *make_cell([0.05, 0.05]),
        *make_cell([0.04, 0.04], agent="mo"),
        *make_cell([0.02, 0.02], agent="naive"),
        *make_cell([0.0, 0.064], agent="uvfa"),
    ]
    pairs = [pair for pair in table_of(summaries).orderings if pair.lower.period == "overall"]
    assert len(pairs) == 6
    assert [(pair.lower.agent, pair.higher.agent, pair.verdict) for pair in contrary(pairs)] == [
        ("cn", "naive", "reversed"),
        ("mo", "naive", "reversed"),
        ("cn", "mo", "reversed"),
        ("cn", "uvfa", "other direction, not significant"),
        ("uvfa", "naive", "other direction, not significant"),
    ]
    assert list(counts(pairs).values()) == [0, 1, 2, 3]


# --- what is missing


def test_a_full_grid_misses_nothing():
    for table in only_section(paper_runs("dst")).tables:
        assert table.missing == ()
        assert table.short == ()


def test_an_incomplete_grid_names_exactly_what_is_missing():
    gone = {("cn", "der", "sparse"), ("naive", "standard", "regular")}
    few = ("mo", "standard", "sparse")
    summaries = [
        summary
        for summary in paper_runs("dst")
        if summary.cell not in gone and not (summary.cell == few and summary.seed >= 7)
    ]
    table = table_of(summaries)
    assert set(named(table.missing)) == {("sparse", "cn", "der"), ("regular", "naive", "standard")}
    assert len(table.missing) == 2
    assert named(table.short) == [("sparse", "mo", "standard")]
    assert len(table.short[0].seeds) == 7
    assert cell_of(table).mean is None
    assert cell_of(table).paper == 0.021


def test_a_cell_is_short_if_it_is_so_in_one_period():
    summaries = [*make_cell([0.02] * 9), make_run(0.02, seed=9, last=np.nan)]
    [short] = table_of(summaries).short
    assert (short.period, len(short.seeds)) == ("last", 9)
