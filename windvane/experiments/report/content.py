"""What diverse buffers held in the end (Figure 3, middle): one run per setting, as an example."""

import re
from pathlib import Path

import numpy as np
import polars as pl
from jaxtyping import Bool, Float
from matplotlib.figure import Figure

from windvane.envs.environment import Environment
from windvane.experiments.runs.cells import paper_preset
from windvane.experiments.runs.frames import faults_of, numbers, read_frame, whole_numbers
from windvane.experiments.runs.paths import CONTENT
from windvane.files import atomic_write, make_folder
from windvane.plots import replay_content
from windvane.training.build import open_world
from windvane.training.config import TrainConfig

SHOWN = "cn-der-sparse"
"""The cell that is shown, where it was run."""
MOST_OBJECTIVES = 4
"""Objectives that are shown: there is a panel for every pair of them."""


def examples(folder: Path) -> dict[str, Path]:
    """The file of one run for each setting, by the setting's fingerprint."""
    found: dict[str, Path] = {}
    paths = sorted((folder / CONTENT).glob("*/*/*.parquet"))
    for path in sorted(paths, key=lambda path: (path.parent.name != SHOWN, path)):
        found.setdefault(path.name.partition("-")[0], path)
    return found


def content_figures(folder: Path) -> dict[str, dict[str, Figure]]:
    """A figure for each setting, by its fingerprint and then by what it shows."""
    read = {name: (path, *read_content(path)) for name, path in examples(folder).items()}
    return {
        name: {"replay-content": _draw(path.parent.parent.name, diverse, returns)}
        for name, (path, diverse, returns) in read.items()
        if returns.shape[1] > 1
    }


def read_content(
    path: Path,
) -> tuple[Bool[np.ndarray, " trajectories"], Float[np.ndarray, "trajectories objectives"]]:
    """Of each trajectory in a buffer, whether it is in the diverse half, and its return."""
    with faults_of(path, "the content of a buffer"):
        return _parse(read_frame(path)[0])


def _parse(
    frame: pl.DataFrame,
) -> tuple[Bool[np.ndarray, " trajectories"], Float[np.ndarray, "trajectories objectives"]]:
    if "diverse" in frame.columns and frame["diverse"].dtype == pl.Boolean:
        frame = frame.with_columns(pl.col("diverse").cast(pl.Int8))
    diverse = whole_numbers(frame, "diverse", 0, 1).to_numpy() == 1
    found = [name for name in frame.columns if re.fullmatch(r"return_\d+", name)]
    names = [f"return_{index}" for index in range(max(len(found), 1))]
    return diverse, np.stack([numbers(frame, name).to_numpy() for name in names], 1)


def _draw(env: str, diverse: np.ndarray, returns: np.ndarray) -> Figure:
    shown = returns[:, :MOST_OBJECTIVES]
    names = _objective_names(env, returns.shape[1])[:MOST_OBJECTIVES]
    return replay_content(shown[~diverse], shown[diverse], names)


def _objective_names(env: str, number: int) -> tuple[str, ...]:
    """The names of the paper's problems, else numbers."""
    preset = paper_preset(env)
    world = open_world(TrainConfig.preset(preset)) if preset else None
    names = tuple(world.objective_names) if isinstance(world, Environment) else ()
    return names if len(names) == number else tuple(f"objective {i}" for i in range(number))


def copy_examples(folder: Path, to: Path) -> list[Path]:
    """Copy what the figures are drawn from beside the summaries of a store. An example that is
    there already is kept, unless only the new one is of the cell that is to be shown.
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
