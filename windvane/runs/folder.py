"""What a run folder is: the configuration that claims it, and the objects that it was run with."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from windvane.errors import InputError, shown
from windvane.evaluation import check_values
from windvane.files import atomic_write, faults_of, make_folder, path_exists, read_json, shown_path
from windvane.training.config import PARTS, TrainConfig

CONFIG = "config.json"
OPTIMAL = "optimal-values.json"
"""A coverage set that the user handed over, discounted and not scaled."""
FUNCTION = "function"
"""Stands there for optimal values that were a function, which no file can hold."""
_OBJECTS_1 = "own-parts.json"
"""How the first format named objects made in Python: the class of each, by kind."""


def is_run_folder(folder: Path) -> bool:
    """Whether a folder holds a training run."""
    return path_exists(folder / CONFIG)


def load_config(folder: Path) -> TrainConfig:
    """The configuration of a run folder."""
    if not is_run_folder(folder):
        raise InputError(f"there is no training run in {shown_path(folder)}")
    config = TrainConfig.load(folder / CONFIG)
    if not has_old_objects(folder):
        return config
    old = folder / _OBJECTS_1
    names = read_json(old)
    kinds = {"weights": "schedule"}
    good = isinstance(names, dict) and all(
        kinds.get(kind, kind) in PARTS and isinstance(name, str) for kind, name in names.items()
    )
    if not good:
        raise InputError(f"{old} must name the classes of custom parts, not {shown(names)}")
    known = {kinds.get(kind, kind): {"type": name} for kind, name in names.items()}
    return replace(config, custom=known)


def has_old_objects(folder: Path) -> bool:
    """Whether a run of the first format had objects made in Python: its policies do not say so."""
    return path_exists(folder / _OBJECTS_1)


def create_run_folder(folder: Path, config: TrainConfig, optimal: Any) -> Path:
    """Make a run folder, unless there is a run in it; `optimal` are rows of values, a function of
    weights or None.
    """
    if is_run_folder(folder):
        raise InputError(
            f"there is a training run in {folder} already: choose another folder, or resume it "
            f"with: windvane resume {folder}"
        )
    make_folder(folder)
    if optimal is not None:
        values = json.dumps(FUNCTION if callable(optimal) else optimal)
        atomic_write(folder / OPTIMAL, lambda file: file.write(values.encode()))
    text = json.dumps(config.to_json(), indent=2) + "\n"
    atomic_write(folder / CONFIG, lambda file: file.write(text.encode()))
    return folder


def load_optimal(folder: Path, num_objectives: int | None = None) -> list[list[float]] | None:
    """The coverage set that was handed over with a run, or None."""
    path = folder / OPTIMAL
    if not path_exists(path):
        return None
    given = read_json(path)
    if given == FUNCTION:
        raise InputError(
            "the optimal values of this run were a function: give it again, as optimal=..."
        )
    with faults_of(path, "the file"):
        return check_values(given, num_objectives).tolist()
