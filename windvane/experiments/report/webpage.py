"""A report as one HTML file that needs no other: style and figures are part of it."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from windvane.experiments.paper.orderings import VERDICTS, Ordering, contrary, counts
from windvane.experiments.report.layout import (
    CAVEAT,
    MISSING,
    PAIR_HEADER,
    CellText,
    Picture,
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
from windvane.experiments.report.titles import schedule_title

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5d6875; --line: #d9dee4;
  --page: #ffffff; --meets: #e6f4ea; --holds: #2e8b57; --same: #a9d5b8; --other: #f2c48d;
  --reversed: #c8553d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #9aa5b1; --line: #39424d;
  --page: #14181d; --meets: #1c3326; --same: #3c6b50; --other: #96692f; } }
body { margin: 0 auto; max-width: 68rem; padding: 1rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { margin-top: 2rem; }
p { max-width: 48rem; }
.soft, .cell div, .cell small, dt, .runs { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody th { position: sticky; left: 0; background: var(--page); }
.cell b, .cell span { color: var(--ink); }
.meets { background: var(--meets); }
.bar { display: flex; height: .6rem; max-width: 48rem; border-radius: .3rem; overflow: hidden; }
.holds { background: var(--holds); } .same { background: var(--same); }
.other { background: var(--other); } .reversed { background: var(--reversed); }
summary { cursor: pointer; margin-top: .6rem; }
img { max-width: 100%; background: #ffffff; border-radius: .4rem; }
@media (max-width: 44rem) { img { max-width: none; height: 17rem; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
"""


def to_html(sections: Sequence[Section], figures: Mapping[str, Sequence[Picture]]) -> str:
    """The page; `figures` are by the title of a section."""
    title = f"Dynamic weights: {report_title(sections)}"
    body = [_tag("h1", title)]
    if any(section.has_paper for section in sections):
        body.append(_tag("p", CAVEAT, "soft"))
    for section in sections:
        body.extend([_tag("h2", section.title), _tag("p", legend(section), "soft")])
        for table in section.tables:
            body.extend(_table(section, table))
        if section.absent:
            body.append(_tag("p", absent_text(section)))
        if figures.get(section.title):
            body.append(_tag("h3", "Figures"))
            body.extend(_image(section, picture) for picture in figures[section.title])
        body.append(_tag("h3", "Where the runs come from"))
        body.append(_definitions(provenance_facts(section.summaries)))
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            _tag("title", title),
            f"<style>{_STYLE}</style>\n</head>\n<body>",
            *body,
            "</body>\n</html>\n",
        ]
    )


def _table(section: Section, table: ResultTable) -> list[str]:
    parts = [_tag("h3", table.title), _layout(lay_out(section, table))]
    parts.extend(_tag("p", note) for note in notes(table))
    if table.is_paper:
        parts.append(_tag("p", verdict_text(table.orderings)))
        parts.append(_bar(table.orderings))
    pairs = contrary(table.orderings)
    if pairs:
        rows = "".join(_line("td", pair_texts(section, pair)) for pair in pairs)
        head = f"<thead>{_line('th', PAIR_HEADER)}</thead>"
        parts.append(
            f"<details>{_tag('summary', f'{len(pairs)} pairs in the other direction')}"
            f'<div class="wide"><table>{head}<tbody>{rows}</tbody></table></div></details>'
        )
    return parts


def _layout(laid_out: TableLayout) -> str:
    columns = laid_out.columns
    spans = "".join(
        f'<th colspan="{len(list(same))}">{escape(period)}</th>'
        for period, same in groupby(period for period, _ in columns)
    )
    replays = "".join(_tag("th", replay) for _, replay in columns)
    body = []
    for schedule, rows in groupby(laid_out.rows, key=lambda row: row.schedule):
        title = schedule_title(schedule)
        title = title[:1].upper() + title[1:]
        body.append(f'<tr><th colspan="{len(columns) + 1}">{escape(title)}</th></tr>')
        for row in rows:
            cells = "".join(_cell(cell) for cell in row.cells)
            body.append(f"<tr>{_tag('th', row.name)}{cells}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{spans}</tr><tr><th></th>{replays}</tr>'
        f"</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(cell: CellText | None) -> str:
    if cell is None:
        return _tag("td", MISSING)
    bold = cell.best and not cell.common
    lines = [_tag("b" if bold else "span", cell.ours)]
    lines += [" " + _tag("small", cell.label)] if cell.label else []
    if cell.common:
        common = _tag("b", cell.common) if cell.best else escape(cell.common)
        lines.append(f"<div>{common}</div>")
    others = (cell.over_time, cell.change, cell.paper, cell.runs)
    lines.extend(_tag("div", line) for line in others if line)
    kind = "cell meets" if cell.meets_paper else "cell"
    return f'<td class="{kind}">{"".join(lines)}</td>'


def _bar(pairs: Sequence[Ordering]) -> str:
    """The shares of the verdicts, which the sentence above gives as numbers."""
    kinds = dict(zip(VERDICTS, ("holds", "same", "other", "reversed"), strict=True))
    parts = "".join(
        f'<div class="{kinds[verdict]}" style="flex-grow: {count}" title="{escape(verdict)}"></div>'
        for verdict, count in counts(pairs).items()
        if count
    )
    return f'<div class="bar" aria-hidden="true">{parts}</div>'


def _image(section: Section, picture: Picture) -> str:
    about = escape(f"{section.title}: {picture.caption}")
    source = f"data:image/png;base64,{b64encode(picture.path.read_bytes()).decode()}"
    image = f'<div class="wide"><img alt="{about}" src="{source}"></div>'
    return image + _tag("p", picture.caption, "soft")


def _definitions(facts: Mapping[str, str]) -> str:
    inner = "".join(_tag("dt", name) + _tag("dd", value) for name, value in facts.items())
    return f"<dl>{inner}</dl>"


def _line(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(_tag(kind, cell) for cell in cells)}</tr>"


def _tag(name: str, text: str, kind: str = "") -> str:
    """An element with text in it, which may hold any character."""
    attribute = f' class="{kind}"' if kind else ""
    return f"<{name}{attribute}>{escape(text)}</{name}>"
