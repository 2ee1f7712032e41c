"""The commands about experiments: `windvane reproduce`, `windvane report`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from windvane.cli.options import POSITIONAL, Also
from windvane.cli.training import Examples, Folder
from windvane.errors import InputError, require_positive_int
from windvane.progress import say
from windvane.training.settings import ObservationName

if TYPE_CHECKING:
    from rich.console import Console

    from windvane.experiments.paper.grids import Grid
    from windvane.experiments.runs.reproduce import ReproduceResult
    from windvane.training.config import TrainConfig

_ALL = ("*",)
"""Patterns of cells where none is given."""


@dataclass(frozen=True)
class Reproduce:
    """Train the cells of one of the paper's tables, each with many seeds.

    Completed runs are skipped, interrupted runs are resumed, and failed runs are listed at the end.
    Several processes may work on one folder; on a machine with several GPUs there is one process
    per GPU.
    """

    grid: Annotated[str, POSITIONAL]
    """The table: dst, minecart (Table 1), selection (SEL and EXP) or naive."""
    cells: tuple[str, ...] = _ALL
    """Cells to train, such as cn-der-sparse or 'mo-*', in this order. Default: all."""
    seeds: int = 10
    """Runs per cell, seeded 0, 1, 2 and so on."""
    steps: int | None = None
    """Steps per run. Default: the paper's, 100_000 for dst and 1_000_000 for the others."""
    out: Path = Path("out/paper")
    """Folder of the results store."""
    list: bool = False
    """Only print which runs are completed and which are missing."""
    observation: ObservationName | None = None
    """What the agents see. Default: pixels, as in the paper."""
    skip_completed: Annotated[Path | None, Also("--known")] = None
    """Folder of another results store, or of summaries of one, such as results/paper, whose runs
    are skipped. Default: none."""
    max_parallel_runs: Annotated[int, Also("--together")] = 20
    """Runs that are vmapped in one program, at most."""
    processes: int | None = None
    """Processes that share the work; several may share a GPU. Default: one per GPU, or one."""
    cluster: str | None = None
    """Address of a Ray cluster to run on, such as auto or ray://head:10001. It needs the extra
    windvane[cluster], here and on every node. Default: this machine alone."""

    examples: Examples = (
        ("windvane reproduce dst --list", "which runs there are, and which are missing"),
        ("windvane reproduce dst --cells cn-der-sparse --seeds 1 --steps 2000",
         "one run of one cell, shortened, to see what it writes"),
    )  # fmt: skip

    def run(self, console: "Console") -> None:
        """Train what is missing, and print the result."""
        from windvane.experiments.paper.grids import Grid
        from windvane.experiments.runs.processes import spawn_processes, visible_gpus
        from windvane.experiments.runs.reproduce import diverged_runs, exploded_runs
        from windvane.experiments.runs.store import Store

        require_positive_int("--seeds", self.seeds)
        require_positive_int("--max-parallel-runs", self.max_parallel_runs)
        if not self.cells:
            raise InputError(
                "--cells needs at least one name, such as cn-der-sparse or 'mo-*'; leave it out "
                "for all cells"
            )
        grid = Grid.paper(self.grid).select(self.cells)
        if self.list:
            return self._list(console, grid)
        processes = self.processes
        if processes is None:
            processes = 1 if self.cluster else max(len(visible_gpus()), 1)
        if require_positive_int("--processes", processes) > 1:
            if self.cluster is not None:
                raise InputError(
                    f"--processes must be 1 with --cluster, not {processes}: the cluster shares "
                    "the work"
                )
            todo = self._missing(grid)  # complains about bad input once, before there are several
            try:
                return spawn_processes(self._arguments, processes)
            finally:
                store = Store(self.out)
                _warn(diverged_runs(store, todo), exploded_runs(store, todo))
        return self._print_result(console, self._reproduce(console, grid))

    @property
    def _arguments(self) -> Sequence[str]:
        """The command line of one of several processes."""
        line = ["reproduce", self.grid, "--seeds", self.seeds]
        line += ["--max-parallel-runs", self.max_parallel_runs]
        line += ["--out", self.out, *(("--cells", *self.cells) if self.cells != _ALL else ())]
        line += ["--skip-completed", self.skip_completed] if self.skip_completed else []
        for name, value in self._changes.items():
            line += [f"--{name}", value]
        return [str(part) for part in line]

    @property
    def _changes(self) -> dict[str, Any]:
        """Settings that differ from the preset's."""
        given = {"steps": self.steps, "observation": self.observation}
        return {name: value for name, value in given.items() if value is not None}

    def _reproduce(self, console: "Console", grid: "Grid") -> "ReproduceResult":
        settings = self._changes | {
            "seeds": self.seeds,
            "max_parallel_runs": self.max_parallel_runs,
            "completed": self.skip_completed,
        }
        if self.cluster is not None:
            from windvane.experiments.runs.cluster import reproduce_on

            return reproduce_on(self.cluster, grid, self.out, console=console, **settings)
        from windvane.experiments.runs.reproduce import reproduce

        return reproduce(grid, self.out, console=console, **settings)

    def _missing(self, grid: "Grid") -> "list[TrainConfig]":
        from windvane.experiments.runs.completed import completed_paths, missing
        from windvane.experiments.runs.store import Store

        runs = grid.runs(self.seeds, **self._changes)
        return missing(runs, Store(self.out), completed_paths(self.skip_completed))

    def _list(self, console: "Console", grid: "Grid") -> None:
        from windvane.experiments.runs.cells import cell_of

        missing = Counter(cell_of(run) for run in self._missing(grid))
        for cell in grid.cells:
            say(console, f"{cell!s:26} {self.seeds - missing[cell]} of {self.seeds} runs")

    def _print_result(self, console: "Console", result: "ReproduceResult") -> None:
        from windvane.experiments.runs.store import Store

        say(console, f"{result.trained} runs were trained, {result.skipped} were skipped")
        for job in result.busy:
            say(console, f"left to another process: {job}")
        if Store(self.out).paths():
            say(console, f"written: {self.out}; report on it with: windvane report {self.out}")
        elif result.skipped:
            say(console, f"nothing is in {self.out}: all of them are in {self.skip_completed}")
        _warn(result.diverged, result.exploded)
        if result.failures:
            reasons = "; ".join(f"{job} ({why})" for job, why in result.failures.items())
            raise InputError(
                f"{len(result.failures)} jobs failed, and the same command tries them again: "
                f"{reasons}"
            )


def _warn(diverged: Sequence[str], exploded: Sequence[str]) -> None:
    """Name runs that diverged where output that is put into a file leaves them visible."""
    from rich.console import Console

    from windvane.experiments.runs.reproduce import about_diverged, about_exploded

    for names, about in ((diverged, about_diverged), (exploded, about_exploded)):
        if names:
            say(Console(stderr=True), f"windvane: {about(names)}")


@dataclass(frozen=True)
class Report:
    """Print and write the tables and figures of a results store, beside the paper's numbers."""

    folder: Folder
    """Folder of a results store, or of summaries of one."""
    out: Path | None = None
    """Folder for the report. Default: report, in the results store."""
    summary: Annotated[Path | None, Also("--digest")] = None
    """Folder for summaries of the runs, a few numbers each and small enough to publish. Summaries
    that are there already stay, unless they are of the same runs. Default: none are written."""

    examples: Examples = (
        ("windvane report out/paper", "the report goes to out/paper/report"),
        ("windvane report out/paper --summary out/summary", "and summaries to share"),
    )

    def run(self, console: "Console") -> None:
        """Read, print and write."""
        from windvane.experiments.report.content import content_figures, copy_examples
        from windvane.experiments.report.report import print_report, write_report
        from windvane.experiments.report.summary_files import read_summaries, write_summaries
        from windvane.experiments.runs.completed import merged, summaries_in

        summaries = summaries_in(self.folder)
        published = [] if self.summary is None else read_summaries(self.summary)
        figures = content_figures(self.folder)
        print_report(console, summaries)
        out = self.folder / "report" if self.out is None else self.out
        written = write_report(summaries, out, figures)
        if self.summary is not None:
            written += write_summaries(merged(published, summaries), self.summary)
            written += copy_examples(self.folder, self.summary)
        for path in written:
            say(console, f"written: {path}")
