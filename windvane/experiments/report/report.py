"""The whole report about a set of runs: as files, or on the terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windvane.errors import InputError
from windvane.experiments.paper.orderings import contrary
from windvane.experiments.report.adaptation import adaptations_to_csv
from windvane.experiments.report.csv_table import pairs_to_csv, to_csv
from windvane.experiments.report.figures import section_figures
from windvane.experiments.report.latex import to_latex
from windvane.experiments.report.layout import (
    CAVEAT,
    MISSING,
    CellText,
    Picture,
    absent_text,
    caption,
    lay_out,
    legend,
    notes,
    pair_texts,
    verdict_text,
)
from windvane.experiments.report.markdown import to_markdown
from windvane.experiments.report.summary import RunSummary
from windvane.experiments.report.tables import ResultTable, Section, sections
from windvane.experiments.report.webpage import to_html
from windvane.experiments.runs.paths import fingerprint, slug
from windvane.files import atomic_write, make_folder
from windvane.plots import save
from windvane.progress import say

PRINTED = 10
"""Pairs in the other direction that are printed to a terminal; the files have all."""

LONGEST = 100
"""Characters of a problem in the name of a figure's file, which a system may limit to 255."""


def write_report(
    summaries: Sequence[RunSummary],
    out: Path,
    more: Mapping[str, Mapping[str, Figure]] | None = None,
) -> list[Path]:
    """Write report.md, report.tex, report.csv, report.html and the figures, and return their paths.

    `more` are other figures, by the fingerprint of a setting and then by what they show.
    """
    found = _sections(summaries)
    make_folder(out)
    pictures = _save_figures(found, out, more or {})
    texts = {
        "report.md": to_markdown(found, pictures),
        "report.tex": to_latex(found),
        "report.csv": to_csv(found),
        "report.html": to_html(found, pictures),
    }
    if any(table.orderings for section in found for table in section.tables):
        texts["pairs.csv"] = pairs_to_csv(found)
    if after := adaptations_to_csv(found):
        texts["adaptation.csv"] = after
    for name, text in texts.items():
        atomic_write(out / name, lambda file, text=text: file.write(text.encode()))
    made = (picture.path for saved in pictures.values() for picture in saved)
    return [*(out / name for name in texts), *made]


def print_report(console: Console, summaries: Sequence[RunSummary]) -> None:
    """Print the tables, what is missing from them, and which of the paper's orders hold."""
    found = _sections(summaries)
    for section in found:
        say(console, section.title, "bold")
        say(console, legend(section), "dim")
        for table in section.tables:
            console.print(_printed(section, table))
            for line in _lines(section, table):
                say(console, line)
        if section.absent:
            say(console, absent_text(section))
    if any(section.has_paper for section in found):
        say(console, f"In tables the paper's numbers are in parentheses. {CAVEAT}", "dim")


def _sections(summaries: Sequence[RunSummary]) -> tuple[Section, ...]:
    if not summaries:
        raise InputError("there is nothing to report: no run is finished")
    return sections(summaries)


def _save_figures(
    found: Sequence[Section], out: Path, more: Mapping[str, Mapping[str, Figure]]
) -> dict[str, list[Picture]]:
    """Files by section; sections about one problem are numbered, but for the first."""
    saved: dict[str, list[Picture]] = {}
    seen: Counter[str] = Counter()
    for section in found:
        problem = slug(section.problem)[:LONGEST]
        seen[problem] += 1
        stem = problem if seen[problem] == 1 else f"{problem}-{seen[problem]}"
        fingerprints = dict.fromkeys(fingerprint(each.config) for each in section.summaries)
        others = next((more[name] for name in fingerprints if name in more), {})
        saved[section.title] = [
            Picture(save(figure, out / f"{stem}-{name}.png"), caption(section, name))
            for name, figure in (section_figures(section) | dict(others)).items()
        ]
    return saved


def _printed(section: Section, table: ResultTable) -> Table:
    """The rows that something was run for; the lines below the table name the others."""
    laid_out = lay_out(section, table)
    # Text, as Rich could take what is in brackets for markup.
    printed = Table(title=Text(table.title), title_justify="left")
    printed.add_column("schedule")
    printed.add_column("algorithm")
    for period, replay in laid_out.columns:
        printed.add_column(Text(f"{period}\n{replay}"))
    for _, rows in groupby(laid_out.rows, key=lambda row: row.schedule):
        printed.add_section()
        for row in rows:
            if any(cell and cell.runs for cell in row.cells):
                names = Text(row.schedule), Text(row.name)
                printed.add_row(*names, *(_cell(cell) for cell in row.cells))
    return printed


def _cell(cell: CellText | None) -> Text:
    if cell is None:
        return Text(MISSING)
    text = Text(cell.ours, style="bold" if cell.best and not cell.common else "")
    if cell.label:
        text.append(f" {cell.label}", style="not bold")
    if cell.common:
        text.append(f"\n{cell.common}", style="bold" if cell.best else "not bold")
    if cell.over_time:
        text.append(f"\n{cell.over_time}", style="not bold")
    if cell.paper:
        text.append(f"\n({cell.paper})", style="not bold dim")
    return text


def _lines(section: Section, table: ResultTable) -> list[str]:
    """What is printed below a table."""
    lines = notes(table)
    if table.is_paper:
        lines.append(verdict_text(table.orderings))
    pairs = contrary(table.orderings)
    for pair in pairs[:PRINTED]:
        where, order, verdict, paper, ours, p = pair_texts(section, pair)
        lines.append(f"  {verdict}: {order} ({where}): paper {paper}, ours {ours}, p {p}")
    if len(pairs) > PRINTED:
        lines.append(f"  and {len(pairs) - PRINTED} more pairs in the other direction")
    return lines
