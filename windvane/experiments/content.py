"""What diverse buffers held in the end (Figure 3, middle): one run a setting, as an example."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from windvane.errors import InputError, in_one_line
from windvane.experiments.store import CONTENT
from windvane.files import atomic_write, make_folder
from windvane.plots import replay_content
from windvane.training.config import TrainConfig
from windvane.training.parts import make_env
from windvane.training.records import read_table

SHOWN = "cn-der-sparse"
"""The cell that is shown, where it was run."""


def examples(folder: Path) -> dict[str, Path]:
    """The file of one run for each setting, by the setting's fingerprint."""
    found: dict[str, Path] = {}
    paths = sorted((folder / CONTENT).glob("*/*/*.parquet"))
    for path in sorted(paths, key=lambda path: (path.parent.name != SHOWN, path)):
        found.setdefault(path.name.partition("-")[0], path)
    return found


def content_figures(folder: Path) -> dict[str, dict[str, Figure]]:
    """A figure for each setting, by its fingerprint and then by what it shows."""
    return {name: {"replay-content": _draw(path)} for name, path in examples(folder).items()}


def _draw(path: Path) -> Figure:
    try:
        content = read_table(path)
        returns = np.stack([column for name, column in content.items() if "return" in name], 1)
        diverse = content["diverse"] == 1
    except Exception as error:  # a damaged file may fail in any way
        raise InputError(f"{path} does not say what a buffer held: {in_one_line(error)}") from error
    problem = path.parent.parent.name
    names = make_env(TrainConfig.preset(f"paper-{problem}")).objective_names
    return replay_content(returns[~diverse], returns[diverse], names)


def copy_examples(folder: Path, to: Path) -> list[Path]:
    """Copy what the figures are drawn from, for a digest of the store. An example that the digest
    has already is enough, unless only the new one is of the cell that is to be shown.
    """
    copies, there = [], examples(to)
    for setting, path in examples(folder).items():
        old = there.get(setting)
        if old is not None and (old.parent.name == SHOWN or path.parent.name != SHOWN):
            continue
        copy = make_folder(to / path.parent.relative_to(folder)) / path.name
        atomic_write(copy, lambda file, path=path: file.write(path.read_bytes()))
        copies.append(copy)
    return copies
