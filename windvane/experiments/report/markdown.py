"""A report as Markdown, for a repository's pages."""

import re
from collections.abc import Iterable, Mapping, Sequence

from windvane.experiments.paper.orderings import contrary
from windvane.experiments.report.layout import (
    CAVEAT,
    MISSING,
    PAIR_HEADER,
    CellText,
    Picture,
    absent_text,
    lay_out,
    legend,
    notes,
    pair_texts,
    report_title,
    verdict_text,
)
from windvane.experiments.report.provenance import provenance_facts
from windvane.experiments.report.tables import ResultTable, Section

_SPECIAL = re.compile(r"[\\`*|~$&\[\]]|<(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def to_markdown(sections: Sequence[Section], figures: Mapping[str, Sequence[Picture]]) -> str:
    """The report; `figures` are by the title of a section."""
    parts = [f"# {report_title(sections)}"]
    if any(section.has_paper for section in sections):
        parts.append(CAVEAT)
    for section in sections:
        parts.extend([f"## {escape(section.title)}", legend(section)])
        for table in section.tables:
            parts.extend(_table(section, table))
        if section.absent:
            parts.append(escape(absent_text(section)))
        for picture in figures.get(section.title, ()):
            parts.extend([f"![{picture.caption}]({picture.path.name})", picture.caption])
        facts = provenance_facts(section.summaries).items()
        parts.append("\n".join(f"- {name}: {escape(value)}" for name, value in facts))
    return "\n\n".join(parts) + "\n"


def _table(section: Section, table: ResultTable) -> list[str]:
    laid_out = lay_out(section, table)
    columns = (f"{period}, {escape(replay)}" for period, replay in laid_out.columns)
    rows = [
        [escape(row.schedule), escape(row.name), *map(_cell, row.cells)] for row in laid_out.rows
    ]
    parts = [
        f"### {escape(table.title)}",
        pipes(["Schedule", "Algorithm", *columns], rows),
        *map(escape, notes(table)),
    ]
    if table.is_paper:
        parts.append(verdict_text(table.orderings))
    pairs = [pair_texts(section, pair) for pair in contrary(table.orderings)]
    if pairs:
        parts.extend(["Pairs in the other direction:", pipes(PAIR_HEADER, pairs)])
    return parts


def escape(text: str) -> str:
    """Text that Markdown shows as it is; an underscore within a word is one already."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _cell(cell: CellText | None) -> str:
    if cell is None:
        return MISSING
    ours, common = cell.ours, cell.common
    if cell.best:
        ours, common = (ours, f"**{common}**") if common else (f"**{ours}**", common)
    ours = f"{ours} {cell.label}".strip()
    lines = (ours, common, cell.over_time, cell.change, cell.paper, cell.runs)
    return "<br>".join(line for line in lines if line)


def pipes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
