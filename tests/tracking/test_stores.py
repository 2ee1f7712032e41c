"""MLflow and Weights & Biases: heavy packages, with the same points as TensorBoard's files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.crashes import stop_after
from tests.runs.small import results_of, small
from tests.tracking.readers import read_mlflow, read_tensorboard, read_wandb
from windvane import TrainingStopped, resume, train
from windvane.runs.result import Result

REASON = "it needs the extras windvane[tensorboard,mlflow,wandb], as `make slow` installs them"
for package in ("tensorboard", "mlflow", "wandb"):
    pytest.importorskip(package, reason=REASON)
pytestmark = [
    pytest.mark.slow,
    # Of their imports and their threads; not ours to mend.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ALL = ("tensorboard", "mlflow", "wandb")


@pytest.fixture(autouse=True)
def _local(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "WANDB_MODE", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_all_three_hold_the_same_points_also_when_resumed(
    finished: Result, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(evaluate_every=240)
    with monkeypatch.context() as patch:
        stop_after(patch, [320])
        with pytest.raises(TrainingStopped):
            train(config, out=folder, track=ALL, progress=False)
    resume(folder, progress=False)
    found = read_tensorboard(folder)
    assert {step for *_, step in found} == {200, 240, 400, 480}
    assert all(len(values) == 1 for values in found.values())
    assert read_mlflow(f"sqlite:///{folder.parent / 'mlflow.db'}", "run") == found
    assert read_wandb(folder.parent / "wandb", "run") == found
    assert finished.folder is not None
    results = results_of(folder)
    records = results_of(finished.folder)["episodes.parquet"]
    assert results["episodes.parquet"] == records


def test_runs_of_mlflow_have_a_group_settings_and_an_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    with monkeypatch.context() as patch:
        stop_after(patch, [240])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, track="mlflow", progress=False)
    uri = f"sqlite:///{folder.parent / 'mlflow.db'}"
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("windvane")
    assert experiment is not None

    def runs() -> list[tuple[str, str]]:
        found = client.search_runs([experiment.experiment_id], "tags.group = 'run'")
        assert all(run.data.params["agent"] == "cn" for run in found)
        return sorted((str(run.info.run_name), run.info.status) for run in found)

    assert runs() == [("run/seed-3", "KILLED"), ("run/seed-5", "KILLED")]
    shutil.rmtree(folder / "checkpoints")  # nothing is written twice where all begins anew
    shutil.rmtree(folder / "records")
    resume(folder, progress=False)
    assert runs() == [("run/seed-3", "FINISHED"), ("run/seed-5", "FINISHED")]
    assert all(len(values) == 1 for values in read_mlflow(uri, "run").values())


def test_a_store_that_is_gone_is_filled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, [320])
        with pytest.raises(TrainingStopped):
            train(small(), out=folder, track="mlflow", progress=False)
    (folder.parent / "mlflow.db").unlink()
    # In another process: MLflow keeps a database open that it has had once.
    program = "import sys, windvane; windvane.resume(sys.argv[1], progress=False)"
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
    found = read_mlflow(f"sqlite:///{folder.parent}/./mlflow.db", "run")  # not by the same name
    assert {step for *_, step in found} == {200, 400, 480}


CONNECTIONS = """
import sys

def look(event, arguments):
    if event == "socket.connect" and not isinstance(arguments[1], (str, bytes)):
        print("connected to", arguments[1], flush=True)
    if event == "socket.getaddrinfo":
        print("asked for", arguments[0], flush=True)

sys.addaudithook(look)
from tests.runs.small import small
from windvane import train
train(small(steps=160), out=sys.argv[1], track=("mlflow", "wandb"), progress=False)
print("done")
"""


def test_nothing_is_sent_and_nobody_is_asked(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONNECTIONS, str(folder)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert done.stdout == "done\n"
    assert "wandb:" not in done.stderr
