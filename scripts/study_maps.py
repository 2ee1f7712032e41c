# ruff: noqa: E501 (the lines of the report are as long as they are)
"""How much of the results on DST hangs on the map (`make study-maps`).

The figure with the paper's map is lost. The same cells are trained on two maps that fit what the
paper says of its own, from features, so that two cores are enough: about half an hour of one core.
Interruptible and resumable; what is there is not trained again. The page is made of the summaries.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from scripts.shared import trained
from windvane.envs.deep_sea_treasure import source
from windvane.experiments.paper.grids import Grid
from windvane.experiments.paper.orderings import Ordering, counts
from windvane.experiments.report.layout import cell_name, estimate_text, verdict_text
from windvane.experiments.report.markdown import pipes
from windvane.experiments.report.summary_files import read_summaries, write_summaries
from windvane.experiments.report.tables import ResultTable, Section, TableCell, sections
from windvane.experiments.runs.provenance import device
from windvane.experiments.runs.store import read_summary

MAPS = ("dcrac", "tenths")
AGENTS = ("naive", "mo", "cn", "uvfa")
GRID = Grid.of("maps", "paper-dst", AGENTS)
BASE = {"observation": "features", "width": 64}
SEEDS = 5


def main() -> None:
    """Train what is missing, and write the summaries and the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path("out/study-maps"))
    parser.add_argument("--summary", type=Path, default=Path("results/dst-maps"))
    parser.add_argument("--out", type=Path, default=Path("results/dst-maps.md"))
    parser.add_argument("--page", action="store_true", help="only the page, of the summaries")
    arguments = parser.parse_args()
    console = Console()
    if not arguments.page:
        paths = [
            path
            for name in MAPS
            for path in trained(
                GRID, arguments.store, SEEDS, console, **BASE, env_args={"map": name}
            )
        ]
        write_summaries([read_summary(path) for path in paths], arguments.summary)
    arguments.out.write_text(report(arguments.summary))
    console.print(f"written: {arguments.out}")


def report(folder: Path) -> str:
    """The page about the summaries in a folder."""
    found = sections(read_summaries(folder))
    by_map = {section.summaries[0].config.args("env")["map"]: section for section in found}
    ours = {name: by_map[name] for name in MAPS}
    tables = {name: section.tables[0] for name, section in ours.items()}
    first = next(iter(ours.values())).summaries[0]
    settings = ", ".join(f"{name} {value}" for name, value in BASE.items())
    where = first.provenance.get("device") or device()
    return f"""# How much of the results on DST hangs on the map

`make study-maps` on {where}: preset `paper-dst` but {settings}; {first.config.steps:,} steps, {SEEDS} seeds. What it says
about the paper's table is in [docs/differences.md](../docs/differences.md#the-map).

{chr(10).join(f"- {source({'map': name})}" for name in MAPS)}

Rewards are divided by 100 on both. Mean regret of all episodes / of those in the last quarter of the steps, lower is better:

{pipes(["", *(f"`{name}`" for name in MAPS), "paper (pixels)"], _means(list(tables.values())))}

## The paper's order of these cells

By paired t-tests on the {SEEDS} seeds.

{chr(10).join(f"- `{name}`: {verdict_text(table.orderings)}" for name, table in tables.items())}

The pairs with another direction on one map than on the other, and those that are reversed on either; `p` is raw, and `p (Holm)` is
corrected for all pairs of the map. `results/dst-maps` has the summaries of the runs, of which `windvane report results/dst-maps` shows all.

{pipes(["schedule, period", "paper's order", "paper", *_heads()], _pairs(ours))}
"""


def _heads() -> list[str]:
    return [f"`{name}`: {what}" for name in MAPS for what in ("difference", "p, p (Holm)", "here")]


def _means(tables: Sequence[ResultTable]) -> list[list[str]]:
    """A line per schedule, agent and replay rule."""
    cells: dict[tuple[str, str], list[list[TableCell]]] = {}
    for number, table in enumerate(tables):
        for cell in (cell for cell in table.cells if cell.seeds):
            pairs = cells.setdefault((cell.schedule, cell_name(cell)), [[] for _ in tables])
            pairs[number].append(cell)
    return [
        [
            f"{name}, {schedule}",
            *(" / ".join(map(_mean, pair)) for pair in pairs),
            " / ".join(f"{cell.paper:.3f}" for cell in pairs[0]),
        ]
        for (schedule, name), pairs in sorted(
            cells.items(), key=lambda item: item[0][0], reverse=True
        )
    ]


def _mean(cell: TableCell) -> str:
    return "-" if cell.mean is None else f"{cell.mean.value:.4f}"


def _pairs(ours: dict[str, Section]) -> list[list[str]]:
    """A line per pair that the maps do not agree on, or that is reversed, with what each says."""
    each = [section.tables[0].orderings for section in ours.values()]
    lines = []
    for pairs in zip(*each, strict=True):
        first = pairs[0]
        signs = {pair.ours.value > 0 for pair in pairs}
        if len(signs) == 1 and all(pair.verdict != "reversed" for pair in pairs):
            continue
        period = "overall" if first.lower.period == "overall" else "last quarter"
        line = [
            f"{first.lower.schedule}, {period}",
            f"{cell_name(first.lower)} < {cell_name(first.higher)}",
            f"{first.paper:+.3f}",
        ]
        for pair in pairs:
            line += [estimate_text(pair.ours, "+.4f"), _p(pair), _verdict(pair)]
        lines.append(line)
    return lines


def _p(pair: Ordering) -> str:
    known = [value for value in (pair.ours.p, pair.corrected) if value is not None]
    return ", ".join(f"{value:.3f}" if value >= 0.001 else "<0.001" for value in known)


def _verdict(pair: Ordering) -> str:
    name = next(name for name, number in counts([pair]).items() if number)
    name = name.replace(", not significant", "")
    if name in ("holds", "reversed") and not pair.confirmed:
        return f"{name} before correction"
    return name


if __name__ == "__main__":
    main()
