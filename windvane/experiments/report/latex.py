"""A report as LaTeX: tables to input into a document of any class, without a package."""

import re
from collections.abc import Sequence
from itertools import groupby

from windvane.experiments.paper.orderings import Ordering, contrary
from windvane.experiments.report.layout import (
    CAVEAT,
    MISSING,
    CellText,
    Row,
    TableLayout,
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

_SPECIAL = {character: f"\\{character}" for character in "{}$&#_%"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "≈": r"$\approx$",
    # Right after \\ or \item a bracket would be the beginning of an option.
    "[": "{[}",
    "]": "{]}",
}


def to_latex(sections: Sequence[Section]) -> str:
    """The report. Labels begin with `windvane` and the number of the section."""
    parts = [f"% {report_title(sections)}: input this file into a document."]
    if any(section.has_paper for section in sections):
        parts.append(escape(CAVEAT))
    for number, section in enumerate(sections, 1):
        parts.append(f"\\subsection*{{{escape(section.title)}}}")
        for table in section.tables:
            parts.extend(_table(section, table, number))
        if section.absent:
            parts.append(escape(absent_text(section)))
        facts = provenance_facts(section.summaries).items()
        parts.append(escape("; ".join(f"{name}: {value}" for name, value in facts)) + ".")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return re.sub(r"[\\{}$&#^_~%<>|≈\[\]]", lambda found: _SPECIAL[found.group()], text)


def _table(section: Section, table: ResultTable, number: int) -> list[str]:
    label = f"windvane-{number}-{table.label.removeprefix('table:')}"
    lines = [
        r"\begin{table*}[!ht]",
        r"\centering\scriptsize\setlength{\tabcolsep}{3pt}",
        f"\\caption{{{escape(f'{table.title}. {legend(section)}')}}}\\label{{{label}}}",
        *_tabular(lay_out(section, table)),
        r"\end{table*}",
    ]
    said = notes(table)
    if table.is_paper:
        said.append(verdict_text(table.orderings))
    parts = ["\n".join(lines), *map(escape, said)]
    pairs = [_pair(section, pair) for pair in contrary(table.orderings)]
    if pairs:
        # Not a tabular, which cannot break across pages.
        items = ["Pairs in the other direction:", r"\begin{itemize}", *pairs, r"\end{itemize}"]
        parts.append("\n".join(items))
    return parts


def _tabular(laid_out: TableLayout) -> list[str]:
    periods = [
        (period, len(list(same))) for period, same in groupby(p for p, _ in laid_out.columns)
    ]
    spans = [f"\\multicolumn{{{width}}}{{l|}}{{{escape(period)}}}" for period, width in periods]
    replays = [escape(replay) for _, replay in laid_out.columns]
    lines = [
        f"\\begin{{tabular}}{{|l|l|{'l|' * len(replays)}}}",
        r"\hline",
        _line(["", "", *spans]),
        _line(["Schedule", "Algorithm", *replays]),
    ]
    before = None
    for row in laid_out.rows:
        new = row.schedule != before
        lines.append(r"\hline" if new else f"\\cline{{2-{len(replays) + 2}}}")
        lines.extend(_row(row, row.schedule if new else ""))
        before = row.schedule
    return [*lines, r"\hline", r"\end{tabular}"]


def _row(row: Row, schedule: str) -> list[str]:
    """As many lines as the fullest of its cells needs."""
    columns = [_cell(cell) for cell in row.cells]
    lines = [cells for cells in zip(*columns, strict=True) if any(cells)]
    names = [(schedule, row.name), *[("", "")] * (len(lines) - 1)]
    return [
        _line([*map(escape, name), *cells]) for name, cells in zip(names, lines, strict=True)
    ]  # fmt: skip


def _cell(cell: CellText | None) -> tuple[str, ...]:
    if cell is None:
        return MISSING, "", "", "", "", ""
    ours, common = escape(cell.ours), escape(cell.common)
    if cell.best:
        ours, common = (ours, _bold(common)) if common else (_bold(ours), common)
    ours = f"{ours} {cell.label}".strip()
    return ours, common, *map(escape, (cell.over_time, cell.change, cell.paper, cell.runs))


def _bold(text: str) -> str:
    return f"\\textbf{{{text}}}"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _pair(section: Section, pair: Ordering) -> str:
    where, order, verdict, paper, ours, p = pair_texts(section, pair)
    return r"\item " + escape(
        f"{where}: {order} by {paper} in the paper; here {ours}, p {p}, {verdict}."
    )
