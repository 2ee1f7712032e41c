"""MLflow: a database beside the run folder, or the store that MLflow's own settings name."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

# Before MLflow is imported, which reports over the network how it is used unless it is told not to.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from mlflow import (  # type: ignore[import-not-found]
    MlflowClient,
    get_tracking_uri,
    is_tracking_uri_set,
)
from mlflow.entities import Metric, Param  # type: ignore[import-not-found]
from mlflow.exceptions import MlflowException  # type: ignore[import-not-found]

from windvane.files import make_folder
from windvane.tracking.points import Point
from windvane.tracking.tracker import TrackedRun, TrackedTraining, Tracker, shown_place

STORE = "mlflow.db"
_ARTIFACTS = "mlflow-artifacts"
_EXPERIMENT = "windvane"
_RUN, _GROUP = "windvane.run", "group"
"""Tags: the run's id, by which it is found again, and the training it is of."""
_METRICS, _PARAMS = 1000, 100
"""Most of them that one request may have."""


class MLflow(Tracker):
    """Writes metrics and parameters, each run of the training as a run of one experiment."""

    def __init__(self, training: TrackedTraining):
        """Find the runs of a training that is resumed, and create those that are not there."""
        super().__init__(training)
        # It tells at length how it makes a database.
        logging.getLogger("mlflow.store").setLevel(logging.WARNING)
        store = training.beside / STORE
        self._uri = get_tracking_uri() if is_tracking_uri_set() else f"sqlite:///{store}"
        if not is_tracking_uri_set():
            make_folder(store.parent)
        self._client = MlflowClient(tracking_uri=self._uri)
        self._experiment = self._find_experiment()
        found = [self._find(run) for run in training.runs]
        if None in found:  # a store that knows nothing of what was written
            self.after = 0
        self._ids = [
            self._create(run) if one is None else one
            for run, one in zip(training.runs, found, strict=True)
        ]
        for one in self._ids:
            self._client.update_run(one, status="RUNNING")

    @property
    def place(self) -> str:
        """The store, and how its page is opened."""
        uri = self._uri
        if not is_tracking_uri_set():
            uri = f"sqlite:///{shown_place(self.training.beside / STORE)}"
        return f"{uri}; look at it with: mlflow ui --backend-store-uri {uri}"

    def log(self, points: Sequence[Point]) -> None:
        """Write metrics."""
        now = int(time.time() * 1000)
        for number, one in enumerate(self._ids):
            metrics = [
                Metric(name, value, now, point.step)
                for point in points
                if point.run == number
                for name, value in point.values.items()
            ]
            for part in _parts(metrics, _METRICS):
                self._client.log_batch(one, metrics=part)

    def finish(self, numbers: Sequence[Mapping[str, float]]) -> None:
        """Write the final numbers."""
        self.log([
            Point(run, self.training.steps, values) for run, values in enumerate(numbers)
        ])  # fmt: skip

    def close(self, finished: bool) -> None:
        """Say how the runs ended."""
        for one in self._ids:
            self._client.set_terminated(one, status="FINISHED" if finished else "KILLED")

    def _find_experiment(self) -> str:
        """The experiment that MLflow's own variables name, else `windvane`."""
        known = os.environ.get("MLFLOW_EXPERIMENT_ID")
        if known:
            return known
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or _EXPERIMENT
        found = self._client.get_experiment_by_name(name)
        if found is None:
            # Else it would be in the current folder, whichever that is.
            place = (self.training.beside / _ARTIFACTS).as_uri()
            place = None if is_tracking_uri_set() else place
            try:
                return self._client.create_experiment(name, artifact_location=place)
            except MlflowException:  # another training has just created it
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return found.experiment_id

    def _find(self, run: TrackedRun) -> str | None:
        query = f"tags.`{_RUN}` = '{run.id}'"
        found = self._client.search_runs([self._experiment], filter_string=query, max_results=1)
        return found[0].info.run_id if found else None

    def _create(self, run: TrackedRun) -> str:
        tags = {_RUN: run.id, _GROUP: self.training.group}
        title = self.training.title(run)
        one = self._client.create_run(self._experiment, tags=tags, run_name=title).info.run_id
        params = [Param(name, str(value)) for name, value in run.settings.items()]
        for part in _parts(params, _PARAMS):
            self._client.log_batch(one, params=part)
        return one


def _parts(values: list[Any], size: int) -> list[list[Any]]:
    return [values[start : start + size] for start in range(0, len(values), size)]
