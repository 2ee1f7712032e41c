"""Names and facts of others' files: every form of a report shows them as they are, on one line."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from tests.experiments.report.test_any_problem import renamed
from tests.experiments.report.test_report import parse
from tests.experiments.synthetic import PROVENANCE, make_cell
from windvane.experiments.report.csv_table import to_csv
from windvane.experiments.report.latex import to_latex
from windvane.experiments.report.markdown import to_markdown
from windvane.experiments.report.report import print_report, write_report
from windvane.experiments.report.summary import RunSummary
from windvane.experiments.report.tables import sections
from windvane.experiments.report.titles import printable
from windvane.experiments.report.webpage import to_html

SPECIAL = (
    "_a|b`c`<script>alert(1)</script>\r\n\n# d $\\frac$ 5% e_f __g__ \\h [i](j) \x1b[31mk \u202el "
    "&amp; *m* ~~n~~ {o} ^p ![q](r) [/bold] <!-- s -->"
)
SHOWN = (
    "_a|b`c`<script>alert(1)</script> # d $\\frac$ 5% e_f __g__ \\h [i](j) [31mk l "
    "&amp; *m* ~~n~~ {o} ^p ![q](r) [/bold] <!-- s -->"
)
NAMES = {name: f"custom:{name[0]}{SPECIAL}" for name in ("env", "agent", "replay", "schedule")}


@pytest.fixture(scope="module")
def hostile() -> list[RunSummary]:
    provenance = PROVENANCE | {"device": f"dev {SPECIAL}", "commit": "|"}
    found = []
    for number, summary in enumerate(make_cell([0.2, 0.4], provenance=provenance)):
        diverged = replace(summary, failed=number == 1)
        found.append(renamed(diverged, **NAMES))
        # Others in the same places that differ in their beginnings, and a setting of any text.
        other = replace(summary, config=replace(summary.config, env_args={"map": SPECIAL}))
        found.append(renamed(other, **(NAMES | {"agent": f"custom:x{SPECIAL}"})))
    return found


def expected(text: str) -> list[str]:
    """What is to be read in the text of a document, whatever its form."""
    return [f"e{SHOWN}", f"a{SHOWN}", f"r{SHOWN}", f"s{SHOWN}", f"map={SHOWN}", f"dev {SHOWN}"]


def test_one_line_is_left_of_any_text() -> None:
    assert printable(SPECIAL) == SHOWN
    assert printable("Deep Sea Treasure, 90 °C ≈ ü") == "Deep Sea Treasure, 90 °C ≈ ü"


def test_markdown_shows_names_as_they_are(hostile: list[RunSummary]) -> None:
    text = to_markdown(sections(hostile), {})
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    page = parse(reader.render(text))
    assert {name for name, _ in page.attributes} <= {"style"}
    for shown in expected(text):
        assert shown in "".join(page.text)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    rendered = reader.render(text)
    assert rendered.count("<tr>") == sum(table.count("\n") - 1 for table in tables)
    assert {len(re.findall(r"<t[hd]\b", row)) for row in rendered.split("<tr>")[1:]} == {4}


def test_html_shows_names_as_they_are(hostile: list[RunSummary], tmp_path: Path) -> None:
    page = to_html(sections(hostile), {})
    assert "<script" not in page
    for shown in expected(page):
        assert shown in "".join(parse(page).text)


def test_latex_shows_names_as_they_are(hostile: list[RunSummary]) -> None:
    text = to_latex(sections(hostile))
    read = text
    for special, shown in {
        "textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^",
        "textbar{}": "|",
    }.items():  # fmt: skip
        read = read.replace(f"\\{special}", f"\0{shown}")
    bare = re.sub(r"\0.|\\[{}$&#_%]|\$[<>]\$|^%.*$", "", read, flags=re.M)
    assert not set(bare) & set("%#^~_|$") - {"|", "%"}
    plain = re.sub(r"\\([{}$&#_%])", r"\1", re.sub(r"\$([<>])\$", r"\1", read)).replace("\0", "")
    plain = plain.replace("{[}", "[").replace("{]}", "]")
    for shown in expected(text):
        assert shown in plain


def test_csv_has_names_as_they_are(hostile: list[RunSummary]) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(sections(hostile)), newline="")))
    assert len(lines) == 4
    assert {line["problem"] for line in lines} == {NAMES["env"]}
    assert {line["agent"] for line in lines} == {NAMES["agent"], f"custom:x{SPECIAL}"}
    assert {line["seeds"] for line in lines} == {"2"}


def test_the_terminal_and_figures_show_them(hostile: list[RunSummary], tmp_path: Path) -> None:
    console = Console(width=1000, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(console, hostile)
    console.file.close()
    said = console.export_text()
    assert "\x1b" not in said
    assert "\u202e" not in said
    for shown in (f"e{SHOWN}", f"a{SHOWN}", f"r{SHOWN}", f"s{SHOWN}"):
        assert shown in said
    long = [renamed(summary, env=f"custom:{'e' * 190}") for summary in make_cell([0.1, 0.2])]
    for path in write_report([*hostile, *long], tmp_path):
        assert path.stat().st_size > 500
