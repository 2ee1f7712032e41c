"""Reports: every form has every number, is well formed, and says what is missing."""

import csv
import dataclasses
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from tests.experiments.synthetic import PROVENANCE, make_cell, make_run, paper_runs
from windvane.errors import InputError
from windvane.experiments.paper.published import published_results
from windvane.experiments.report.csv_table import COLUMNS, PAIR_COLUMNS, pairs_to_csv, to_csv
from windvane.experiments.report.figures import curve_figure, section_figures
from windvane.experiments.report.latex import escape, to_latex
from windvane.experiments.report.layout import Picture
from windvane.experiments.report.markdown import to_markdown
from windvane.experiments.report.provenance import provenance_facts
from windvane.experiments.report.report import print_report, write_report
from windvane.experiments.report.tables import sections
from windvane.experiments.report.webpage import to_html
from windvane.experiments.runs.cells import Cell
from windvane.figure_style import GREY

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Balance(HTMLParser):
    """Complains about an element that is not closed, or closed where it was not open."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes.extend(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def parse(page):
    parser = Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def both():
    """All of the paper's cells, by two seeds each."""
    return sections([*paper_runs("minecart", 2), *paper_runs("dst", 2)])


@pytest.fixture(scope="module")
def some():
    """A few cells: one that failed, one that the paper does not have, two settings."""
    return [
        *make_cell([0.02, 0.03, 0.05]),
        *make_cell([0.04, 0.05, 0.06], agent="mo", replay="standard"),
        make_run(0.07, agent="uvfa", failed=True),
        *make_cell([0.03, 0.04], replay="sel"),
        *make_cell([0.03, 0.04], observation="features", schedule="regular"),
    ]


# --- every cell, in every form


def printed(cell):
    """A cell of the paper as the forms that are read by people show it."""
    if (cell.agent, cell.replay) == ("mo", "standard"):
        return f"paper {cell.regret:.3f}"
    return f"paper {cell.regret:.3f}, {cell.change:+.2f}%"


def in_order(texts, document):
    """Assert that they all are in the document, one after the other."""
    at = 0
    for text in texts:
        at = document.find(text, at)
        assert at >= 0, text
        at += len(text)


@pytest.mark.parametrize("form", ["markdown", "html", "latex"])
def test_every_published_cell_is_in_every_form(both, form):
    if form == "latex":
        document = to_latex(both).replace("\\%", "%")
    else:
        document = to_markdown(both, {}) if form == "markdown" else to_html(both, {})
    cells = [*published_results(problem="minecart"), *published_results(problem="dst")]
    assert len(cells) == 216
    in_order([printed(cell) for cell in cells], document)


def test_ours_stands_beside_the_papers():
    summaries = [
        *make_cell([0.02, 0.04]),
        *make_cell([0.06, 0.06], agent="mo", replay="standard"),
    ]
    found = sections(summaries)
    expected = "0.0300 [-0.0971, 0.1571]", "-50.0% [-261.8, +161.8]", "paper 0.021, -43.24% ≈"
    markdown, unknown = to_markdown(found, {}), "over time not recorded"
    lines = f"{unknown}<br>{expected[1]}<br>{expected[2]}<br>2 seeds"
    assert f"| **{expected[0]}** over episodes<br>{lines} |" in markdown
    assert "| -<br>paper 0.031, -16.22% |" in markdown
    page = to_html(found, {})
    divs = "".join(f"<div>{text}</div>" for text in (unknown, *expected[1:], "2 seeds"))
    label = "<small>over episodes</small>"
    assert f'<td class="cell meets"><b>{expected[0]}</b> {label}{divs}</td>' in page
    latex = to_latex(found)
    assert r"\textbf{0.0300 {[}-0.0971, 0.1571{]}} over episodes" in latex
    assert latex.count(unknown) == 4
    assert r"-50.0\% {[}-261.8, +161.8{]}" in latex


def test_both_means_stand_beside_the_papers():
    """One cell recorded both, and one for two of its three seeds."""
    both = [
        dataclasses.replace(summary, overall_over_time=0.3 + 0.1 * summary.seed, last_over_time=0.2)
        for summary in make_cell([0.1, 0.2], problem="minecart")
    ]
    some = make_cell([0.1, 0.2, 0.3], problem="minecart", agent="mo")
    some[0], some[2] = (
        dataclasses.replace(some[number], overall_over_time=0.28 + 0.01 * number)
        for number in (0, 2)
    )
    found = sections([*both, *some])
    text = to_markdown(found, {})
    assert "0.150 [-0.485, 0.785] over episodes<br>0.350 [-0.285, 0.985] over time ≈<br>" in text
    assert "over episodes<br>**0.150 [-0.485, 0.785] on the 2 seeds that all have**<br>" in text
    assert "<br>0.200 [0.200, 0.200] over time<br>" in text
    assert "<br>0.290 [0.163, 0.417] over time (2 of 3 seeds) ≈<br>" in text
    assert text.count("over time not recorded") == 1  # MO's last quarter
    lines = list(csv.DictReader(to_csv(found).splitlines()))
    [line] = [x for x in lines if x["agent"] == "mo" and x["over_time"]]
    assert float(line["over_time"]) == pytest.approx(0.29)
    assert (line["period"], line["over_time_seeds"]) == ("overall", "2")
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(console, [*both, *some])
    assert "0.350 [-0.285, 0.985] over time" in console.export_text()
    console.file.close()


def test_cells_stand_beside_each_other_on_common_seeds():
    """CN is the lowest of all by its later seeds alone, which MO does not have."""
    summaries = [
        *make_cell([0.05, 0.07, 0.01, 0.01], last=0.2),
        *make_cell([0.04, 0.04], agent="mo", replay="standard", last=0.3),
        make_run(0.5, agent="uvfa", schedule="regular"),  # of another schedule
    ]
    found = sections(summaries)
    text = to_markdown(found, {})
    common = "0.0600 [-0.0671, 0.1871] on the 2 seeds that all have"
    last = "0.2000 [0.2000, 0.2000] on the 2 seeds that all have"
    assert f"over episodes<br>{common}<br>over time" in text
    assert "| **0.0400 [0.0400, 0.0400]** over episodes<br>over time" in text
    assert f"<br>**{last}**<br>" in text
    assert text.count("that all have") == 2
    assert common in "".join(parse(to_html(found, {})).text)
    assert f"<b>{last}</b>" in to_html(found, {})
    assert escape(common) in to_latex(found)
    assert f"\\textbf{{{escape(last)}}}" in to_latex(found)
    lines = csv.DictReader(to_csv(found).splitlines())
    [line, _] = [line for line in lines if line["agent"] == "cn" and line["seeds"] == "4"]
    assert (float(line["common"]), line["common_seeds"]) == (pytest.approx(0.06), "2")
    assert float(line["mean"]) == pytest.approx(0.035)
    # A curve ends at 100 times the mean regret of the runs that are compared.
    cells = {Cell("cn", "der", "sparse"), Cell("mo", "standard", "sparse")}
    lines = [line for axes in curve_figure(found[0], cells).axes for line in axes.lines]
    ends = {round(float(np.ravel(line.get_ydata())[-1]), 6) for line in lines}
    assert 6.0 in ends
    assert 3.5 not in ends


def test_pairs_are_written_with_their_p_values():
    summaries = [
        *make_cell([0.02, 0.03, 0.02], last=0.5),
        *make_cell([0.05, 0.06, 0.08], agent="mo", replay="standard", last=0.4),
    ]
    found = sections(summaries)
    lines = list(csv.DictReader(pairs_to_csv(found).splitlines()))
    assert tuple(lines[0]) == PAIR_COLUMNS
    for line, pair in zip(lines, found[0].tables[0].orderings, strict=True):
        assert (line["lower_agent"], line["lower_replay"]) == ("cn", "der")
        assert (line["higher_agent"], line["higher_replay"]) == ("mo", "standard")
        numbers = [float(line[name]) for name in ("difference", "low", "high", "p", "corrected_p")]
        ours = pair.ours
        assert numbers == [ours.value, ours.low, ours.high, ours.p, pair.corrected]
        assert (line["verdict"], line["confirmed"]) == (pair.verdict, str(pair.confirmed).lower())
    assert [line["period"] for line in lines] == ["overall", "last"]
    assert [float(line["paper"]) for line in lines] == [0.016, 0.018]


def test_reports_say_which_map_was_used():
    dcrac = 'The map "dcrac" is that of the program published with DCRAC (Nian, Irissappane and'
    found = sections(make_cell([0.02]))
    assert dcrac in to_markdown(found, {})
    assert dcrac in "".join(parse(to_html(found, {})).text)
    assert "DCRAC" in to_latex(found)
    other = sections(make_cell([0.02], env_args={"map": "tenths"}))
    assert 'The map "tenths" has the cells of Vamplew et al.' in to_markdown(other, {})
    assert "The map" not in to_markdown(sections(make_cell([0.2], problem="minecart")), {})


def test_reports_say_which_runs_are_missing_or_odd(some):
    _, pixels = sections(some)
    text = to_markdown([pixels], {})
    [missing] = [line for line in text.splitlines() if line.startswith("Not run: ")]
    names = missing.removeprefix("Not run: ").removesuffix(".").split("; ")
    every = {
        f"{c.schedule} {c.row}{'+DER' if c.replay == 'der' else ''}"
        for c in published_results(table="table:results-dst")
    }
    assert set(names) == every - {"sparse CN+DER", "sparse MO", "sparse UVFA+DER"}
    assert len(names) == len(set(names))
    assert (
        "Fewer than 10 seeds, so that intervals are wide, or missing: "
        "sparse MO (3); sparse CN+DER (3); sparse UVFA+DER (1)." in text
    )
    assert "included in means: sparse UVFA+DER (seed 0)." in text
    assert "1 seed, 1 diverged" in text


def test_reports_say_of_which_runs_it_is_not_known_whether_they_diverged():
    said = "Not known whether they diverged with a finite loss, as losses were not kept:"
    runs = make_cell([0.02, 0.03])
    assert f"{said} all of them." in to_markdown(sections(runs), {})
    known = [dataclasses.replace(run, largest_loss=9.0, loss_limit=5.0) for run in runs[:1]]
    text = to_markdown(sections([*known, runs[1]]), {})
    assert f"{said} sparse CN+DER (seed 1)." in text
    assert "went on learning; included in means: sparse CN+DER (seed 0)." in text
    assert said not in to_markdown(sections(known), {})


def test_reports_say_which_tables_are_left_out():
    found = sections(make_cell([0.2], problem="minecart"))
    said = "Left out, as no cell was run that only they have: Minecart with SEL and EXP, sparse"
    for document in (to_markdown(found, {}), to_html(found, {}), to_latex(found)):
        assert document.count(said) == 1
    assert "Left out" not in to_markdown(sections(make_cell([0.02])), {})


def test_reports_count_the_orders():
    """The paper has CN+DER before MO in both periods; here only overall."""
    summaries = [
        *make_cell([0.02, 0.03], last=0.5),
        *make_cell([0.05, 0.06], agent="mo", replay="standard", last=0.4),
    ]
    sentence = (
        "Of 2 pairs that the paper puts in an order: 1 hold, 0 go in the same direction but not "
        "significantly, 0 go in the other direction but not significantly, 1 are reversed. "
        "Corrected for that many comparisons (Holm), 1 hold and 1 are reversed."
    )
    text = to_markdown(sections(summaries), {})
    assert sentence in text
    line = "| sparse, last 25,000 steps | CN+DER < MO | reversed | +0.018 | "
    assert f"{line}-0.1000 [-0.1000, -0.1000] | <0.001, <0.001 |" in text
    assert sentence in "".join(parse(to_html(sections(summaries), {})).text)


# --- LaTeX


def test_special_characters_are_escaped():
    assert escape("50% of a_b & {c} #1 $2") == r"50\% of a\_b \& \{c\} \#1 \$2"
    assert escape("a\\b~c^d") == r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d"
    assert escape("a|b") == r"a\textbar{}b"
    assert escape("[1] < 2 > 0 ≈ 1") == r"{[}1{]} $<$ 2 $>$ 0 $\approx$ 1"


def test_latex_is_well_formed(both, some):
    odd = make_cell([0.02], learning_rate=0.5, provenance=PROVENANCE | {"device": "A_B & 100% #1"})
    for found in (both, sections(some), sections(odd)):
        text = to_latex(found)
        assert text.isascii()
        body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
        bare = re.sub(r"\\[\\{}$&#_%]", "", body)  # without what is escaped
        assert not set(bare) & set("%#^~")
        assert "_" not in bare
        depth = np.cumsum([{"{": 1, "}": -1}.get(character, 0) for character in bare])
        assert depth.min() >= 0
        assert depth[-1] == 0
        assert bare.count("$") % 2 == 0
        stack = []
        for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
            assert kind == "begin" or stack.pop() == name
            stack.extend([name] if kind == "begin" else [])
        assert stack == []
    assert r"Device: A\_B \& 100\% \#1" in text
    assert r"\subsection*{Deep Sea Treasure, learning\_rate 0.5}" in text


def test_lines_of_a_latex_table_fill_its_columns(both, some):
    for found in (both, sections(some)):
        tables = re.findall(
            r"\\begin\{tabular\}\{(.*?)\}\n(.*?)\\end\{tabular\}", to_latex(found), re.S
        )
        assert len(tables) == sum(len(section.tables) for section in found)
        for columns, body in tables:
            for line in body.strip().splitlines():
                if line.startswith((r"\hline", r"\cline")):
                    continue
                assert line.endswith(r" \\")
                spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d)\}", line)]
                assert len(re.findall(r"(?<!\\)&", line)) + sum(spans) == columns.count("l") - 1


def test_labels_of_latex_tables_differ(some):
    labels = re.findall(r"\\label\{(.*?)\}", to_latex(sections(some)))
    assert len(set(labels)) == len(labels) == 3


# --- CSV


def test_csv_has_all_digits_of_every_cell(both):
    lines = list(csv.DictReader(to_csv(both).splitlines()))
    assert tuple(lines[0]) == COLUMNS
    cells = [(section, t, cell) for section in both for t in section.tables for cell in t.cells]
    assert len(lines) == len(cells) == 216

    def number(text):
        return float(text) if text else None

    for line, (section, table, cell) in zip(lines, cells, strict=True):
        assert (line["problem"], line["setting"], line["table"]) == (
            (section.problem, "", table.label)
        )
        for name in ("schedule", "agent", "replay", "period"):
            assert line[name] == getattr(cell, name)
        assert (int(line["seeds"]), int(line["failed"])) == (2, 0)
        ends = [number(line[name]) for name in ("mean", "low", "high")]
        assert ends == [cell.mean.value, cell.mean.low, cell.mean.high]
        ends = [number(line[name]) for name in ("change", "change_low", "change_high")]
        change = cell.change
        assert ends == ([None] * 3 if change is None else [change.value, change.low, change.high])
        assert number(line["paper"]) == cell.paper
        assert number(line["paper_change"]) == cell.paper_change


def test_csv_tells_settings_apart_and_leaves_the_unknown_empty(some):
    lines = list(csv.DictReader(to_csv(sections(some)).splitlines()))
    settings = {"observation=features", "observation=pixels"}
    assert {line["setting"] for line in lines} == settings
    unknown = [line for line in lines if line["seeds"] == "0"]
    assert all(not line["mean"] and not line["change_high"] for line in unknown)
    [failed] = [line for line in lines if line["failed"] == "1" and line["period"] == "last"]
    assert (failed["agent"], failed["mean"], failed["low"]) == ("uvfa", "0.07", "")
    assert [line["paper"] for line in lines if line["table"] == "extra"] == ["", ""]


# --- HTML


def test_html_is_well_formed_and_needs_nothing_else(both, some, tmp_path):
    picture = Picture(tmp_path / "picture.png", "a < b & c")
    picture.path.write_bytes(b"not really an image")
    for found in (both, sections(some)):
        page = to_html(found, {found[0].title: [picture]})
        parser = parse(page)
        assert "http" not in page
        assert "@import" not in page
        assert "url(" not in page
        links = [value for name, value in parser.attributes if name in ("src", "href")]
        assert len(links) == 1
        assert links[0].startswith("data:image/png;base64,")


def test_html_shows_any_text_as_it_is():
    provenance = PROVENANCE | {"device": "<b>A & B</b>"}
    page = to_html(sections(make_cell([0.02], provenance=provenance)), {})
    assert "<b>A" not in page
    assert "<b>A & B</b>" in parse(page).text


# --- where runs come from


def test_provenance_names_what_differs_and_adds_up_the_time():
    """Twice ten runs in parallel, which took 20 seconds and 40 seconds."""
    early = [make_run(0.02, seed=seed) for seed in range(10)]
    later = PROVENANCE | {"commit": "def456", "date": "2025-02-03", "seconds": 40.0}
    late = [make_run(0.02, seed=seed, provenance=later) for seed in range(10, 20)]
    known = provenance_facts([*late, *early])
    assert known["Runs"] == "20"
    assert known["Commit"] == "abc123, def456"
    assert known["Device"] == "CPU"
    assert known["Date"] == "2025-01-01 to 2025-02-03"
    assert known["Seconds"] == "60 in all"
    assert provenance_facts([make_run(0.02, provenance={})]) == {"Runs": "1"}


# --- figures


def test_a_figure_has_a_panel_for_each_kind_of_weights_that_was_run():
    [section] = sections([*make_cell([0.02, 0.03]), *make_cell([0.02], schedule="regular")])
    figures = section_figures(section)
    assert list(figures) == ["regret", "adaptation"]
    sparse, regular = figures["regret"].axes
    assert sparse.get_title() == "sparse weight changes"
    assert regular.get_title() == "regular weight changes"
    assert sparse.get_ylim() == regular.get_ylim()
    # Nineteen changes within 100,000 steps, and one curve, with a band only of several runs.
    assert (len(sparse.lines), len(sparse.collections)) == (20, 1)
    assert (len(regular.lines), len(regular.collections)) == (1, 0)
    one = curve_figure(section, {Cell("cn", "der", "regular")})
    assert [axes.get_title() for axes in one.axes] == ["regular weight changes"]


def test_curves_are_the_mean_over_all_the_steps():
    """The curves of runs grow evenly to a hundred times their regret."""
    [section] = sections(make_cell([0.02, 0.04], schedule="regular", steps=2_000))
    [axes] = section_figures(section)["regret"].axes
    x, y = axes.lines[0].get_data()
    np.testing.assert_allclose(x[[0, 1, -1]], [0, 10, 2_000])
    np.testing.assert_allclose(y, np.linspace(0, 3, 201))
    assert axes.lines[0].get_linestyle() == "--"


def test_how_regret_falls_after_a_change_of_weights():
    """Ten points a period of 5,000 steps. After a change regret is 1, then 0 until the next; in the
    first half of the training it is 9 more at every point, which does not count.
    """
    after = np.tile([1.0] + [0.0] * 9, 20) + np.repeat([9.0, 0.0], 100)
    once, thrice = (
        dataclasses.replace(make_run(0.1, seed=seed), curve=np.cumsum(factor * after))
        for seed, factor in ((0, 1), (1, 3))
    )
    nothing = dataclasses.replace(make_run(np.nan, seed=2), episodes=0, curve=np.zeros(200))
    [section] = sections([once, thrice, nothing, *make_cell([0.1], schedule="regular")])
    [axes] = section_figures(section)["adaptation"].axes
    [line] = axes.lines
    x, y = line.get_data()
    np.testing.assert_allclose(x, 250 + 500 * np.arange(10))
    np.testing.assert_allclose(y, [(1 + 3) / 2 * 2] + [0] * 9)  # of 500 steps, so twice that
    assert len(axes.collections) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "regular"},
        {"schedule_args": {"every": 2_700}},  # not where points are
        {"schedule_args": {"every": 1_500}},  # three points in between
        {"schedule_args": {"every": 50_000}},  # a single change
        {"schedule_args": {"every": 20}, "steps": 100},  # more points than steps
    ],
)
def test_changes_that_cannot_be_seen_have_no_figure(changes):
    [section] = sections(make_cell([0.1, 0.2], **changes))
    assert "adaptation" not in section_figures(section)


def test_other_replays_have_a_figure_of_their_own():
    summaries = [*make_cell([0.2], problem="minecart")]
    summaries += make_cell([0.3], problem="minecart", replay="exp")
    summaries += make_cell([0.4], problem="minecart", replay="standard", agent="naive")
    [section] = sections(summaries)
    figures = section_figures(section)
    curves = {name: [len(a.lines) for a in figure.axes] for name, figure in figures.items()}
    assert curves == {"regret": [19 + 1], "replays": [19 + 2, 19 + 1], "adaptation": [1]}
    labels = [[text.get_text() for text in axes.texts] for axes in figures["replays"].axes]
    assert [sorted(names) for names in labels] == [["CN", "DER", "EXP"], ["NAIVE", "Standard"]]


def test_panels_have_few_lines_and_say_what_they_are(both):
    """Of the paper's whole tables: an agent in each, with the baseline in grey beside it."""
    for section in both:
        for name, figure in section_figures(section).items():
            for axes in figure.axes:
                drawn = [line for line in axes.lines if line.get_zorder() > 0]
                [agent] = [text for text in axes.texts if text.get_weight() == "bold"]
                ends = [text for text in axes.texts if text is not agent]
                assert len(ends) == len(drawn) <= 4
                lines = {line.get_color() for line in drawn}
                assert lines <= {agent.get_color(), GREY}
                assert {text.get_color() for text in ends} == lines
                whole = name == "replays" and agent.get_text() != "MO"
                assert (GREY in lines) == (agent.get_text() != "MO" and not whole)
            said = " ".join(figure.get_supxlabel().split())
            assert "Bands: 95% interval of the mean over seeds (Student)." in said
            assert figure.get_figwidth() == pytest.approx(85 / 25.4)
            assert figure.get_supylabel() in ("cumulative regret", "regret per 1,000 steps")


def test_bands_that_are_cut_are_said_to_be():
    [section] = sections(make_cell([0.02, 0.2]))
    assert "they are cut" in section_figures(section)["regret"].get_supxlabel().replace("\n", " ")
    [section] = sections(make_cell([0.02, 0.021]))
    [axes] = section_figures(section)["regret"].axes
    assert axes.get_ylim()[1] >= axes.collections[0].get_datalim(axes.transData).y1
    assert "cut" not in section_figures(section)["regret"].get_supxlabel()


# --- files and the terminal


def test_a_report_is_written_and_can_be_written_again(some, tmp_path):
    paths = write_report(some, tmp_path / "new" / "report")
    names = ["report.md", "report.tex", "report.csv", "report.html", "pairs.csv", "adaptation.csv"]
    shown = ["regret", "2-regret", "2-replays", "2-adaptation"]
    figures = [f"dst-{name}.png" for name in shown]
    assert [path.name for path in paths] == names + figures
    assert sorted(path.name for path in (tmp_path / "new" / "report").iterdir()) == sorted(
        names + figures
    )
    for path in paths[6:]:
        with Image.open(path) as image:
            assert image.width > 500
        assert f"]({path.name})" in paths[0].read_text()
    assert parse(paths[3].read_text()).attributes.count(("class", "wide")) > 3
    assert paths[3].read_text().count("data:image/png") == len(figures)
    before = [path.read_bytes() for path in paths]
    assert write_report(some[::-1], tmp_path / "new" / "report") == paths
    assert [path.read_bytes() for path in paths] == before


def test_nothing_to_report_is_one_sentence(tmp_path):
    for report in (
        lambda: write_report([], tmp_path / "report"),
        lambda: print_report(Console(), []),
    ):
        with pytest.raises(InputError) as error:
            report()
        assert str(error.value) == "there is nothing to report: no run is finished"
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file"):
        write_report(make_cell([0.02]), tmp_path / "file")


def test_the_terminal_shows_what_was_run(some):
    console = Console(width=150, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(console, some)
    text = console.export_text()
    console.file.close()
    assert "Deep Sea Treasure, observation features" in text
    assert "0.0333 [-0.0046, 0.0713]" in text
    assert "(paper 0.021, -43.24% ≈)" in text
    assert "Not run: sparse NAIVE;" in text
    assert not re.search(r"sparse +│ MN", text)
    assert "Of 6 pairs that the paper puts in an order" in text


def test_many_contrary_pairs_are_shortened_on_the_terminal(capsys):
    """The paper's numbers upside down."""
    summaries = [
        make_run(0.2 - run.overall, agent=run.cell[0], replay=run.cell[1], schedule=run.cell[2])
        for run in paper_runs("dst", 1)
    ]
    print_report(Console(width=150), summaries)
    said = capsys.readouterr().out
    assert len(re.findall(r"^  other direction", said, re.M)) == 10
    [more] = re.findall(r"and (\d+) more pairs in the other direction", said)
    assert int(more) > 100


def test_reports_need_neither_the_command_line_nor_tables_of_episodes():
    """Polars takes its time to import."""
    code = (
        "import sys, windvane.experiments.report.report; "
        "print([name for name in ('windvane.cli', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
