"""What a tracker is, and what it is told of a training.

What may not live here: threads, failures and resuming, which are the same for all (`tracking.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from windvane.tracking.points import Point

Setting = str | int | float | bool


@dataclass(frozen=True)
class TrackedRun:
    """One of the runs that a program trains; for a tracker it is a run of its own."""

    name: str
    """Such as `seed-0`; it differs from the others of the training."""
    id: str
    """The same whenever the training is resumed, and of no other run anywhere."""
    settings: Mapping[str, Setting]
    """The configuration, without levels within one another."""


@dataclass(frozen=True)
class TrackedTraining:
    """A training as a tracker gets it before it is told any points."""

    folder: Path
    """The run folder."""
    runs: tuple[TrackedRun, ...]
    steps: int
    """Steps that each run takes in all."""
    resumed: int = 0
    """The step of the checkpoint that the training was resumed from; 0 for a new training."""
    written: int = 0
    """The last step of a point that this tracker wrote before that; it may be a later one, as the
    training may have gone on before it was killed."""

    @property
    def group(self) -> str:
        """What the runs of the training have in common: the name of its folder."""
        return self.folder.absolute().name

    @property
    def beside(self) -> Path:
        """The folder that the run folder lies in, for what several trainings share."""
        return self.folder.absolute().parent

    def title(self, run: TrackedRun) -> str:
        """A name that tells the run from those of other trainings."""
        return f"{self.group}/{run.name}"


def shown_place(path: Path) -> Path:
    """A path as short as it can be shown: from the current folder, if it lies there."""
    try:
        return path.absolute().relative_to(Path.cwd())
    except (OSError, ValueError):
        return path


class Tracker(ABC):
    """Writes what it is told. All is called in one thread, which is not that of the training.

    Whatever it raises, and whatever hangs in it, ends this tracker alone.
    """

    def __init__(self, training: TrackedTraining):
        """Begin the runs of a training, or continue them."""
        self.training = training
        self.after = training.written
        """Points of later steps are told."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it all is and how to look at it, as the end of a sentence."""

    @abstractmethod
    def log(self, points: Sequence[Point]) -> None:
        """Write points, for good: the training may be killed afterwards."""

    def finish(self, numbers: Sequence[Mapping[str, float]]) -> None:
        """Write the final numbers of each run, by name."""
        del numbers

    def close(self, finished: bool) -> None:
        """Close what is open. A training that is not finished may be resumed later."""
        del finished
