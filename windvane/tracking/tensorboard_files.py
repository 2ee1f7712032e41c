"""TensorBoard: event files in the run folder, a folder per run, without TensorFlow or PyTorch."""

# Classes of protocol buffers are made when their modules are imported, so no checker sees them.
# pyright: reportAttributeAccessIssue=false

import itertools
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from windvane.tracking.points import Point
from windvane.tracking.tracker import TrackedRun, TrackedTraining, Tracker, shown_place

FOLDER = "tensorboard"
_VERSION = "brain.Event:2"
"""What every event file begins with."""


class TensorBoard(Tracker):
    """Writes event files, opened for each batch of points, so that all of it is on the disk."""

    def __init__(self, training: TrackedTraining):
        """Begin a file per run, and say from which step on it replaces earlier ones."""
        super().__init__(training)
        # Points that are trained again replace those of before, which TensorBoard then leaves out.
        self.after = min(training.written, training.resumed)
        self._paths = [_new_file(self._folder / run.name) for run in training.runs]
        for path, run in zip(self._paths, training.runs, strict=True):
            restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            events = [{"file_version": _VERSION}, {"step": self.after + 1, "session_log": restart}]
            if self.after == 0:
                events.append({"summary": _settings(run, training.group)})
            _write(path, events)

    @property
    def _folder(self) -> Path:
        return self.training.folder / FOLDER

    @property
    def place(self) -> str:
        """The folder of the event files; `--logdir` may be any folder above it."""
        shown = shown_place(self._folder)
        return f"{shown}; look at it with: tensorboard --logdir {shown.parent}"

    def log(self, points: Sequence[Point]) -> None:
        """Append scalars."""
        for number, path in enumerate(self._paths):
            mine = [point for point in points if point.run == number]
            if mine:
                _write(path, [{"step": p.step, "summary": _scalars(p.values)} for p in mine])

    def finish(self, numbers: Sequence[Mapping[str, float]]) -> None:
        """Append the final numbers, which the page of hyperparameters shows beside the settings."""
        for path, values in zip(self._paths, numbers, strict=True):
            end = plugin_data_pb2.SessionEndInfo(
                status=api_pb2.STATUS_SUCCESS, end_time_secs=time.time()
            )
            summaries = (
                _scalars(values),
                _hparams(metadata.SESSION_END_INFO_TAG, session_end_info=end),
            )
            _write(path, [{"step": self.training.steps, "summary": one} for one in summaries])


def _new_file(folder: Path) -> Path:
    """The name of an event file that is not there yet, and comes after those that are."""
    folder.mkdir(parents=True, exist_ok=True)
    start = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
    names = (folder / f"{start}.{number}" for number in itertools.count())
    return next(path for path in names if not path.exists())


def _write(path: Path, events: Iterable[Mapping[str, Any]]) -> None:
    with path.open("ab") as file:
        writer = RecordWriter(file)
        for fields in events:
            event = event_pb2.Event(wall_time=time.time(), **fields)
            writer.write(event.SerializeToString())


def _scalars(values: Mapping[str, float]) -> summary_pb2.Summary:
    scalars = [summary_pb2.Summary.Value(tag=k, simple_value=v) for k, v in values.items()]
    return summary_pb2.Summary(value=scalars)


def _settings(run: TrackedRun, group: str) -> summary_pb2.Summary:
    start = plugin_data_pb2.SessionStartInfo(group_name=run.id, start_time_secs=time.time())
    for name, value in {"group": group, "run": run.name, **run.settings}.items():
        kind = {bool: "bool_value", str: "string_value"}.get(type(value), "number_value")
        setattr(start.hparams[name], kind, value)
    return _hparams(metadata.SESSION_START_INFO_TAG, session_start_info=start)


def _hparams(tag: str, **content: Any) -> summary_pb2.Summary:
    data = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
    about = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(
            plugin_name=metadata.PLUGIN_NAME, content=data.SerializeToString()
        )
    )
    value = summary_pb2.Summary.Value(tag=tag, metadata=about, tensor=metadata.NULL_TENSOR)
    return summary_pb2.Summary(value=[value])
