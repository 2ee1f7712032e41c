"""What a run folder is: the names in it, the configuration that claims it, and whose it is.

Every run has a random id, which stands beside its configuration. Checkpoints repeat both, and the
summary of a finished run has the sums of all files (`sums.py`), so that nothing of another run, and
nothing that was changed later, is taken for the run's own.
"""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from windvane.errors import InputError, shown
from windvane.evaluation import check_values
from windvane.files import (
    atomic_write,
    faults_of,
    make_folder,
    path_exists,
    read_json,
    shown_path,
    write_new,
)
from windvane.training.config import PARTS, RUN_ID, TrainConfig

CONFIG = "config.json"
SUMMARY = "summary.json"
EPISODES = "episodes.parquet"
EVALUATIONS = "evaluations.parquet"
CONTENT = "replay-content.parquet"
RECORDS = "records"
CHECKPOINTS = "checkpoints"
POLICIES = "policies"
BEST = "best"
"""Folder, within that of the policies, of those with the best greedy evaluation."""
CURRENT = "current"
"""Folder, within that of the policies, of those of a run in progress."""
STATUS = "status.json"
"""How far a run in progress is; see `windvane.runs.status`."""
OPTIMAL = "optimal-values.json"
"""A coverage set that the user handed over, discounted and not scaled."""
FUNCTION = "function"
"""Stands there for optimal values that were a function, which no file can hold."""
_OBJECTS_1 = "own-parts.json"
"""How the first format named objects made in Python: the class of each, by kind."""
_OF_A_RUN = (
    SUMMARY, EPISODES, EVALUATIONS, CONTENT, RECORDS, CHECKPOINTS, POLICIES, _OBJECTS_1,
)  # fmt: skip
"""What a run writes after its configuration."""


class Owner(NamedTuple):
    """The run that files belong to. Runs of earlier versions have no id."""

    config: TrainConfig
    run_id: str | None

    def difference(self, other: TrainConfig) -> str | None:
        """The first setting in which another configuration differs, as part of a sentence. How
        often checkpoints are written makes no difference.
        """
        for field in fields(TrainConfig):
            ours, theirs = getattr(self.config, field.name), getattr(other, field.name)
            if field.name != "checkpoint_seconds" and ours != theirs:
                return f"{field.name} is {shown(ours)} there and {shown(theirs)} here"
        return None


def is_run_folder(folder: Path) -> bool:
    """Whether a folder holds a training run."""
    return path_exists(folder / CONFIG)


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a training run that has come to its end."""
    return path_exists(folder / SUMMARY)


def load_owner(folder: Path) -> Owner:
    """The configuration of a run folder, and the run's id."""
    config = load_config(folder)
    run_id = read_json(folder / CONFIG).get(RUN_ID)
    if run_id is not None and not (
        isinstance(run_id, str) and re.fullmatch("[0-9a-f]{32}", run_id)
    ):
        raise InputError(f"{folder / CONFIG} has no id of a run: {RUN_ID} is {shown(run_id)}")
    return Owner(config, run_id)


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
    """Make a run folder, unless there is anything of a run in it; `optimal` are rows of values, a
    function of weights or None.
    """
    taken = InputError(
        f"there is a training run in {folder} already: choose another folder, or resume it "
        f"with: windvane resume {folder}"
    )
    if is_run_folder(folder):
        raise taken
    for name in (*_OF_A_RUN, *([OPTIMAL] if optimal is None else [])):
        if _holds(folder / name):
            raise InputError(
                f"{folder} holds {name}, which may be of an earlier training run, and no {CONFIG}: "
                "choose another folder"
            )
    make_folder(folder)
    if optimal is not None:
        values = json.dumps(FUNCTION if callable(optimal) else optimal)
        atomic_write(folder / OPTIMAL, lambda file: file.write(values.encode()))
    text = json.dumps(config.to_json() | {RUN_ID: uuid4().hex}, indent=2) + "\n"
    if not write_new(folder / CONFIG, lambda file: file.write(text.encode())):
        raise taken  # by a process that began at the same moment
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


def _holds(path: Path) -> bool:
    """Whether there is a file, a link, or a folder that is not empty."""
    try:
        if path.is_symlink():
            return True
        return path_exists(path) and (not path.is_dir() or any(path.iterdir()))
    except OSError as error:
        raise InputError(f"cannot read {shown_path(path)}: {error.strerror or error}") from error
