"""What diverse buffers held in the end (Figure 3, middle): one run a problem, as an example."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from windvane.experiments.store import CONTENT
from windvane.plots import replay_content
from windvane.training.config import TrainConfig
from windvane.training.files import make_folder, write_whole
from windvane.training.parts import make_env
from windvane.training.records import read_table

SHOWN = "cn-der-sparse"
"""The cell that is shown, where it was run."""


def examples(folder: Path) -> dict[str, Path]:
    """The file of one run for each problem of a store."""
    found: dict[str, Path] = {}
    paths = sorted((folder / CONTENT).glob("*/*/*.parquet"))
    for path in sorted(paths, key=lambda path: (path.parent.name != SHOWN, path)):
        found.setdefault(path.parent.parent.name, path)
    return found


def content_figures(folder: Path) -> dict[str, dict[str, Figure]]:
    """A figure for each problem, by what it shows."""
    figures = {}
    for problem, path in examples(folder).items():
        content = read_table(path)
        returns = np.stack([column for name, column in content.items() if "return" in name], 1)
        diverse = content["diverse"] == 1
        names = make_env(TrainConfig.preset(f"paper-{problem}")).objective_names
        figure = replay_content(returns[~diverse], returns[diverse], names)
        figures[problem] = {"replay-content": figure}
    return figures


def copy_examples(folder: Path, to: Path) -> list[Path]:
    """Copy what the figures are drawn from, for a digest of the store."""
    copies = []
    for path in examples(folder).values():
        copy = make_folder(to / path.parent.relative_to(folder)) / path.name
        write_whole(copy, lambda file, path=path: file.write(path.read_bytes()))
        copies.append(copy)
    return copies
