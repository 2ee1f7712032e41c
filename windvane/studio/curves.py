"""What a training run has come to so far, from its folder: curves, what its replay buffers hold,
and whether its weights can be set from here.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import InputError, in_one_line
from windvane.files import atomic_write, path_exists, read_text
from windvane.live import MAX_FILE_BYTES, parse_weights_text
from windvane.runs.folder import CONTENT
from windvane.runs.records import read_content, read_records
from windvane.runs.status import QUANTITIES, Curves, read_status
from windvane.schedules import LIVE
from windvane.studio.library import Library, RunEntry
from windvane.studio.plain import plain
from windvane.training.config import TrainConfig
from windvane.weights import check_weights

MOST_POINTS = 3_000
"""Trajectories of a buffer's half that are shown."""


def describe_run(library: Library, entry: RunEntry) -> dict[str, Any]:
    """All that the page shows of a run."""
    config, notes = entry.config, []
    status = None
    try:
        status = read_status(entry.path)
    except InputError as error:
        notes.append(in_one_line(error))
    step, runs, weights = config.steps, [], None
    if entry.state != "finished" and status is not None:
        step, runs, weights = status["step"], status["runs"], status.get("weights")
    else:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                records = read_records(entry.path)
            notes += [in_one_line(Warning(one.message)) for one in caught]
            curves = Curves(config)
            curves.add(records)
            runs = curves.to_json()
            step = int(records["step"].max(initial=0)) if entry.state != "finished" else step
        except InputError as error:
            step = 0
            notes.append(in_one_line(error))
    file = None
    if entry.state == "training":
        try:
            file = _weights_file(library, entry, status)
        except InputError as error:
            notes.append(in_one_line(error))
    return {
        "name": entry.name,
        "state": entry.state,
        "step": step,
        "steps": config.steps,
        "runs": _plain_runs(runs),
        "objectives": _objectives(library, entry),
        "weights": plain(np.asarray(weights)) if weights else None,
        "steerable": file is not None,
        "content": _content(entry, config, notes),
        "notes": notes[:8],
    }


def steer_run(library: Library, entry: RunEntry, weights: Any) -> list[float]:
    """Set the weights of a run in progress that watches a file inside the served folder."""
    file = _weights_file(library, entry, read_status(entry.path))
    if entry.state != "training" or file is None:
        raise InputError("this run does not watch a file of weights inside the served folder")
    current = parse_weights_text(read_text(file, "the weights in", MAX_FILE_BYTES))
    vector = check_weights(weights, len(current))
    text = ",".join(repr(float(number)) for number in vector) + "\n"
    atomic_write(file, lambda stream: stream.write(text.encode()))
    return vector.tolist()


def _weights_file(library: Library, entry: RunEntry, status: dict[str, Any] | None) -> Path | None:
    """The file that a run watches, if there is one and it holds weights. One outside the served
    folder is somebody else's, whatever the run's own files say.
    """
    name = (status or {}).get("weights_file")
    if not entry.config.schedules[0].startswith(LIVE) or not isinstance(name, str):
        return None
    path = Path(name)
    try:
        library.inside(path)
        parse_weights_text(read_text(path, "the weights in", MAX_FILE_BYTES))
    except InputError as error:
        raise InputError(f"the run's weights cannot be set from here: {error}") from error
    return path


def _plain_runs(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Curves with rounded numbers."""
    names = ("name", "steps", *QUANTITIES)
    return [
        {name: plain(run.get(name)) for name in names}
        for run in runs
    ]  # fmt: skip


def _objectives(library: Library, entry: RunEntry) -> list[str] | None:
    """Names of the objectives, from a policy of the run."""
    for policy in library.to_json()["policies"]:
        if policy["run_id"] == entry.id and policy["objectives"]:
            return policy["objectives"]
    return None


def _content(entry: RunEntry, config: TrainConfig, notes: list[str]) -> dict[str, Any] | None:
    """Returns of the trajectories in both halves of the first run's diverse buffer."""
    path = entry.path / CONTENT
    if not path_exists(path) or path.is_symlink():
        return None
    try:
        table = read_content(path, len(config.runs))
    except InputError as error:
        notes.append(in_one_line(error))
        return None
    names = sorted((n for n in table if n.startswith("return_")), key=lambda n: int(n[7:]))
    returns = np.stack([table[name] for name in names], 1)
    first = table["run"] == 0
    halves = {}
    for name, diverse in (("recent", 0), ("diverse", 1)):
        rows = returns[first & (table["diverse"] == diverse)]
        halves[name] = plain(rows[:: max(len(rows) // MOST_POINTS, 1)])
    return halves
