"""The commands about experiments: `windvane reproduce`, `windvane report`.

What may not live here: anything a library user would want; this file parses, calls and prints.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console

from windvane.errors import InputError, require_positive_int
from windvane.progress import say
from windvane.training.settings import ObservationName

if TYPE_CHECKING:
    from windvane.experiments.grid import Grid
    from windvane.experiments.reproduce import Outcome
    from windvane.training.config import TrainConfig

Name = Annotated[str, tyro.conf.Positional]
Folder = Annotated[Path, tyro.conf.Positional]


@dataclass(frozen=True)
class Reproduce:
    """Run the cells of the paper's tables: dst, minecart (Table 1), selection (SEL and EXP), naive.

    What is there is skipped, what was cut goes on, what fails is told at the end. Several processes
    may work on one folder; on a machine with several GPUs there is one process for each.
    """

    grid: Name
    """Which tables: dst, minecart, selection or naive."""
    cells: tuple[str, ...] = ()
    """Only the cells that match, such as cn-der-sparse or 'mo-*', in this order. Default: all."""
    seeds: int = 10
    """Runs a cell, seeded 0, 1, 2 and so on."""
    steps: int | None = None
    """Steps of every run. Default: the paper's."""
    observation: ObservationName | None = None
    """What the agents see. Default: pixels, as in the paper."""
    out: Path = Path("out/paper")
    """Folder of the results store."""
    known: Path | None = None
    """Folder of another results store, or of a digest of one, such as results/paper: what it has is
    not begun."""
    together: int = 20
    """Most runs side by side in one compiled program."""
    processes: int | None = None
    """Processes that share the work; several may share a GPU. Default: one a GPU, else one."""
    cluster: str | None = None
    """Address of a Ray cluster to run on, such as auto or ray://head:10001. It needs the extra
    windvane[cluster], here and on every node."""
    list: bool = False
    """Only say what is there and what is missing."""

    def run(self, console: Console) -> None:
        """Run what is missing, and print what came of it."""
        from windvane.experiments.grid import Grid
        from windvane.experiments.processes import share, visible_gpus

        require_positive_int("--seeds", self.seeds)
        require_positive_int("--together", self.together)
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
            self._missing(grid)  # complains of bad input once, before there are several
            return share(self._arguments, processes)
        return self._tell(console, self._reproduce(console, grid))

    @property
    def _arguments(self) -> Sequence[str]:
        """The command line of one of several processes."""
        said = ["reproduce", self.grid, "--seeds", self.seeds, "--together", self.together]
        said += ["--out", self.out, *(("--cells", *self.cells) if self.cells else ())]
        said += ["--known", self.known] if self.known is not None else []
        for name, value in self._changes.items():
            said += [f"--{name}", value]
        return [str(part) for part in said]

    @property
    def _changes(self) -> dict[str, Any]:
        """Settings that are not the preset's."""
        what = {"steps": self.steps, "observation": self.observation}
        return {name: value for name, value in what.items() if value is not None}

    def _reproduce(self, console: Console, grid: "Grid") -> "Outcome":
        settings = self._changes | {
            "seeds": self.seeds,
            "together": self.together,
            "known": self.known,
        }
        if self.cluster is not None:
            from windvane.experiments.cluster import reproduce_on

            return reproduce_on(self.cluster, grid, self.out, console=console, **settings)
        from windvane.experiments.reproduce import reproduce

        return reproduce(grid, self.out, console=console, **settings)

    def _missing(self, grid: "Grid") -> "list[TrainConfig]":
        from windvane.experiments.known import missing, places_in
        from windvane.experiments.store import Store

        runs = grid.runs(self.seeds, **self._changes)
        return missing(runs, Store(self.out), places_in(self.known))

    def _list(self, console: Console, grid: "Grid") -> None:
        from windvane.experiments.grid import Cell

        lacking = Counter(Cell(run.agent, run.replay, run.kinds[0]) for run in self._missing(grid))
        for cell in grid.cells:
            say(console, f"{cell!s:26} {self.seeds - lacking[cell]} of {self.seeds} runs")

    def _tell(self, console: Console, outcome: "Outcome") -> None:
        from windvane.experiments.store import Store

        say(console, f"{outcome.trained} runs were trained, {outcome.skipped} were there before")
        for batch in outcome.busy:
            say(console, f"left to another process: {batch}")
        if Store(self.out).paths():
            say(console, f"written: {self.out}; look at it with: windvane report {self.out}")
        elif outcome.skipped:
            say(console, f"nothing is in {self.out}: all of them are in {self.known}")
        if outcome.failures:
            whys = "; ".join(f"{batch} ({why})" for batch, why in outcome.failures.items())
            raise InputError(
                f"{len(outcome.failures)} batches failed, and the same command tries them again: "
                f"{whys}"
            )


@dataclass(frozen=True)
class Report:
    """Print and write the tables and figures of a results store beside the paper's numbers."""

    folder: Folder
    """Folder of a results store, or of a digest of one."""
    out: Path | None = None
    """Folder for the report. Default: report, in the store."""
    digest: Path | None = None
    """Folder of a digest, every run in a few numbers and small enough to publish: the runs are
    added to it, and replace those that were the same."""

    def run(self, console: Console) -> None:
        """Read, print and write."""
        from windvane.experiments.content import content_figures, copy_examples
        from windvane.experiments.digest_files import read_digests, write_digests
        from windvane.experiments.known import digests_in, merged
        from windvane.experiments.report import print_report, write_report

        digests = digests_in(self.folder)
        published = [] if self.digest is None else read_digests(self.digest)
        print_report(console, digests)
        out = self.folder / "report" if self.out is None else self.out
        written = write_report(digests, out, content_figures(self.folder))
        if self.digest is not None:
            written += write_digests(merged(published, digests), self.digest)
            written += copy_examples(self.folder, self.digest)
        for path in written:
            say(console, f"written: {path}")
