"""Experiment trackers by name, and which of them can be used here.

A tracker writes the curves of a training where its own program shows them. Each has a file of its
own, which is imported, with the packages it needs, only where it is asked for.
"""

from importlib.util import find_spec
from typing import Any

from windvane.errors import InputError, shown
from windvane.registry import Entry, Registry, is_import_path, load

_HOME = "windvane.tracking."

TRACKERS = Registry("tracker", {
    "tensorboard": Entry(
        "TensorBoard", f"{_HOME}tensorboard_files:TensorBoard", "Event files in the run folder.",
        about={"packages": ("tensorboard",)},
    ),
    "mlflow": Entry(
        "MLflow", f"{_HOME}mlflow_store:MLflow", "A database beside the run folder, or a server.",
        about={"packages": ("mlflow", "sqlalchemy", "alembic")},
    ),
    "wandb": Entry(
        "Weights & Biases", f"{_HOME}wandb_runs:WeightsAndBiases", "Beside the run folder.",
        about={"packages": ("wandb",)},
    ),
})  # fmt: skip
"""All trackers. A factory gets a `TrackedTraining` and returns a `Tracker`."""


def check_trackers(given: Any) -> tuple[str, ...]:
    """The names of trackers, all of which can be used here; one that cannot is refused."""
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, list | tuple):
        raise InputError(f"track must be names, such as tensorboard, not {shown(given)}")
    names = tuple(TRACKERS.check(name) for name in listed)
    if len(set(names)) < len(names):
        raise InputError(f"trackers must differ from one another, not {shown(list(names))}")
    for name in names:
        if is_import_path(name):
            factory = load(name)
            if not callable(factory):
                raise InputError(f"{name} must be something to call, not {shown(factory)}")
        elif name not in TRACKERS:
            raise InputError(f"a tracker must be given by name, not as {shown(name)}")
        elif not all(_installed(package) for package in TRACKERS[name].about["packages"]):
            raise InputError(
                f"the tracker {name} needs packages that are not installed: "
                f"pip install 'windvane[{name}]'"
            )
    return names


def check_recorded(names: tuple[str, ...], trust: bool, without: str) -> tuple[str, ...]:
    """The trackers that a run folder names; `without` is a command that leaves them out."""
    for name in names:
        if is_import_path(name) and not trust:
            raise InputError(
                f"the tracker {name!r} would be imported, which runs its code: give it again "
                f"(--track {name}) or add --trust if you trust it"
            )
    try:
        return check_trackers(names)
    except InputError as error:
        raise InputError(f"{error} (or track nothing: {without})") from error


def _installed(package: str) -> bool:
    """Whether there is a package; a folder of that name, such as W&B writes, is none."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None
