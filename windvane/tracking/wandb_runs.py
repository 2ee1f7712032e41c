"""Weights & Biases: offline beside the run folder, or as its own variables say."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

# Before it is imported, as it reports its own errors over the network unless it is told not to.
os.environ.setdefault("WANDB_ERROR_REPORTING", "false")

import wandb  # type: ignore[import-not-found]

from windvane.files import make_folder
from windvane.tracking.points import Point
from windvane.tracking.tracker import TrackedRun, TrackedTraining, Tracker, shown_place

OFFLINE = "offline"
_PROJECT = "windvane"
_X = "step"
"""The name of what curves are drawn against."""


class WeightsAndBiases(Tracker):
    """Writes histories, each run of the training as a run of one group."""

    def __init__(self, training: TrackedTraining):
        """Begin all runs, or continue them by their ids."""
        super().__init__(training)
        self._mode = os.environ.get("WANDB_MODE") or OFFLINE
        if self._mode == "online" and not wandb.login(prompt=False):
            raise RuntimeError("WANDB_MODE is online, and there is no account: run wandb login")
        own = os.environ.get("WANDB_DIR")
        self._folder = None if own else str(make_folder(training.beside))
        self._runs = [self._begin(run) for run in training.runs]

    @property
    def place(self) -> str:
        """The folder of the runs, or their page."""
        first = self._runs[0]
        if self._mode != OFFLINE:
            return first.url or f"Weights & Biases, in mode {self._mode}"
        # `.../wandb/offline-run-DATE-ID/files`
        folder = shown_place(Path(first.dir).parents[1])
        return f"{folder}; send it with: wandb sync {folder / 'offline-run-*'}"

    def log(self, points: Sequence[Point]) -> None:
        """Write rows of the history."""
        for point in points:
            self._runs[point.run].log({_X: point.step, **point.values})

    def finish(self, numbers: Sequence[Mapping[str, float]]) -> None:
        """Write the final numbers into the summary."""
        for run, values in zip(self._runs, numbers, strict=True):
            run.summary.update(dict(values))

    def close(self, finished: bool) -> None:
        """End all runs."""
        for run in self._runs:
            run.finish(exit_code=0 if finished else 1)

    def _begin(self, run: TrackedRun) -> "wandb.Run":
        settings = wandb.Settings(
            mode=self._mode,  # type: ignore[arg-type]
            silent=True,
            # Several runs at once, none of which takes what the program prints or what git knows.
            reinit="create_new",
            console="off",
            disable_git=True,
            disable_code=True,
        )
        begun = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or _PROJECT,
            group=os.environ.get("WANDB_RUN_GROUP") or self.training.group,
            name=self.training.title(run),
            id=run.id,
            resume="allow",
            config=dict(run.settings),
            dir=self._folder,
            settings=settings,
        )
        begun.define_metric(_X)
        begun.define_metric("*", step_metric=_X)
        return begun
