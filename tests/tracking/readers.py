"""Curves as each tracker's own files hold them: values by run, name and step."""

import struct
from collections.abc import Iterator
from pathlib import Path

Values = dict[tuple[str, str, int], list[float]]
"""More than one where a point is there twice."""


def read_tensorboard(folder: Path) -> Values:
    """What TensorBoard shows of a run folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: Values = {}
    for run in sorted((folder / "tensorboard").iterdir()):
        events = EventAccumulator(str(run), size_guidance={"scalars": 0})
        events.Reload()
        for tag in events.Tags()["scalars"]:
            for scalar in events.Scalars(tag):
                found.setdefault((run.name, tag, scalar.step), []).append(scalar.value)
    return found


def read_mlflow(uri: str, group: str) -> Values:
    """The metrics of a training in a store of MLflow."""
    from mlflow import MlflowClient

    client, found = MlflowClient(tracking_uri=uri), Values()
    experiment = client.get_experiment_by_name("windvane")
    assert experiment is not None
    query = f"tags.group = '{group}'"
    for run in client.search_runs([experiment.experiment_id], filter_string=query):
        name = run.info.run_name.removeprefix(f"{group}/")
        for tag in run.data.metrics:
            for metric in client.get_metric_history(run.info.run_id, tag):
                found.setdefault((name, tag, metric.step), []).append(metric.value)
    return found


def read_wandb(folder: Path, group: str) -> Values:
    """The histories in the files of offline runs, and what their summaries say in the end."""
    import json

    from wandb.proto import wandb_internal_pb2

    found = Values()
    for path in sorted(folder.glob("offline-run-*/*.wandb")):
        name, last = "", 0
        for data in _log_records(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.HasField("run"):
                if record.run.run_group != group:
                    break
                name = record.run.display_name.removeprefix(f"{group}/")
            items = [*record.history.item, *record.summary.update]
            values = {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items}
            last = values.get("step", last)
            for tag, value in values.items():
                final = tag.startswith("final/")
                if "/" in tag and final != record.HasField("history"):
                    found.setdefault((name, tag, last), []).append(value)
    return found


def _log_records(data: bytes) -> Iterator[bytes]:
    """The records of LevelDB's log format, after a header of seven bytes."""
    block, header, parts, at = 32_768, struct.Struct("<IHB"), b"", 7
    while at + header.size <= len(data):
        left = block - at % block
        if left < header.size:
            at += left
            continue
        _, length, kind = header.unpack_from(data, at)
        if kind == 0:
            at += left
            continue
        parts += data[at + header.size : at + header.size + length]
        at += header.size + length
        if kind in (1, 4):  # whole, or the last of its parts
            yield parts
            parts = b""
