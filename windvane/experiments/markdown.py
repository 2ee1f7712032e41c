"""A report as Markdown, for a repository's pages."""

from collections.abc import Iterable, Mapping, Sequence

from windvane.experiments.layout import (
    CAVEAT,
    LEGEND,
    MISSING,
    PAIR_HEADER,
    CellText,
    Picture,
    absent_text,
    grid,
    notes,
    pair_texts,
    verdict_text,
)
from windvane.experiments.orderings import contrary
from windvane.experiments.provenance import provenance
from windvane.experiments.tables import EXTRA, ResultTable, Section


def to_markdown(sections: Sequence[Section], figures: Mapping[str, Sequence[Picture]]) -> str:
    """The report; `figures` are by the title of a section."""
    parts = ["# Results beside the paper's", LEGEND, CAVEAT]
    for section in sections:
        parts.append(f"## {section.title}")
        for table in section.tables:
            parts.extend(_table(section, table))
        if section.absent:
            parts.append(absent_text(section))
        for picture in figures.get(section.title, ()):
            parts.extend([f"![{picture.caption}]({picture.path.name})", picture.caption])
        origin = provenance(section.digests).items()
        parts.append("\n".join(f"- {name}: {value}" for name, value in origin))
    return "\n\n".join(parts) + "\n"


def _table(section: Section, table: ResultTable) -> list[str]:
    laid_out = grid(section, table)
    header = ["Weights", "Algorithm", *(f"{period}, {er}" for period, er in laid_out.columns)]
    rows = [
        [row.weights, row.name, *(_cell(cell) for cell in row.cells)] for row in laid_out.rows
    ]  # fmt: skip
    parts = [f"### {table.title}", pipes(header, rows), *notes(table)]
    if table.label != EXTRA:
        parts.append(verdict_text(table.orderings))
    pairs = [pair_texts(section, pair) for pair in contrary(table.orderings)]
    if pairs:
        parts.extend(["Pairs that go the other way:", pipes(PAIR_HEADER, pairs)])
    return parts


def _cell(cell: CellText | None) -> str:
    if cell is None:
        return MISSING
    ours = f"**{cell.ours}**" if cell.lowest else cell.ours
    return "<br>".join(line for line in (ours, cell.change, cell.paper, cell.runs) if line)


def pipes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
