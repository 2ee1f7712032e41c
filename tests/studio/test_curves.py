"""Training runs on the page: curves, what replay buffers hold, and weights that are set from it."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.studio.conftest import client_of
from windvane.runs.records import read_records


def run_of(client: TestClient, number: int = 0) -> tuple[str, dict[str, Any]]:
    key = client.get("/api/library").json()["runs"][number]["id"]
    return key, client.get(f"/api/runs/{key}").json()


def test_curves_are_means_of_the_records(client: TestClient, trained: Path) -> None:
    _, found = run_of(client)
    assert found["state"] == "finished"
    assert found["step"] == found["steps"] == 480
    assert found["objectives"] == ["treasure", "time"]
    assert [run["name"] for run in found["runs"]] == ["seed-3", "seed-5"]
    records = read_records(trained / "cn")
    for number, run in enumerate(found["runs"]):
        mine = records["run"] == number
        # Every stretch is 4.8 steps long here.
        stretch = np.ceil(records["step"][mine] / 4.8).astype(int)
        for name in ("utility", "regret"):
            values = records[name][mine]
            means = [values[stretch == s].mean() for s in np.unique(stretch)]
            np.testing.assert_allclose(run[name], means, rtol=1e-4, atol=1e-6)


def test_what_a_diverse_buffer_holds(client: TestClient) -> None:
    _, found = run_of(client)
    assert set(found["content"]) == {"recent", "diverse"}
    rows = [row for half in found["content"].values() for row in half]
    assert all(len(row) == 2 for row in rows)


def in_progress(trained: Path, tmp_path: Path, **status: Any) -> Path:
    """A run folder as it is while training goes on."""
    served = tmp_path / "served"
    shutil.copytree(trained / "cn", served / "cn")
    for name in ("summary.json", "episodes.parquet"):
        (served / "cn" / name).unlink()
    config = json.loads((served / "cn/config.json").read_text())
    config |= {"schedule": f"live:{served / 'weights.txt'}", "schedule_args": {}}
    (served / "cn/config.json").write_text(json.dumps(config))
    (served / "weights.txt").write_text("0.5,0.5\n")
    whole = {
        "step": 160,
        "steps": 480,
        "time": time.time(),
        "weights": [0.5, 0.5],
        "weights_file": str(served / "weights.txt"),
        "runs": [{"name": "seed-3", "steps": [100], "utility": [0.25], "regret": [0.5]}],
    }
    (served / "cn/status.json").write_text(json.dumps(whole | status))
    return served


def test_a_run_in_progress(trained: Path, tmp_path: Path) -> None:
    served = in_progress(trained, tmp_path)
    with client_of(served) as client:
        _, found = run_of(client)
        assert found["state"] == "training"
        assert found["step"] == 160
        assert found["runs"][0]["utility"] == [0.25]
        assert found["steerable"]


def test_its_weights_are_set_from_the_page(trained: Path, tmp_path: Path) -> None:
    served = in_progress(trained, tmp_path)
    with client_of(served) as client:
        key, _ = run_of(client)
        answer = client.post(f"/api/runs/{key}/weights", json={"weights": [0.25, 0.75]})
        assert answer.json() == {"weights": [0.25, 0.75]}
        assert (served / "weights.txt").read_text() == "0.25,0.75\n"
        for bad in ([0.5], [2, -1], "x", None, [[0.5, 0.5]], {"a": 1}):
            answer = client.post(f"/api/runs/{key}/weights", json={"weights": bad})
            assert answer.status_code == 422
            assert answer.json()["problem"]
        assert client.post(f"/api/runs/{key}/weights", content="{").status_code == 422
        assert client.post(f"/api/runs/{key}/weights", content="1" * 100_000).status_code == 422
        assert (served / "weights.txt").read_text() == "0.25,0.75\n"


@pytest.mark.parametrize("what", ["outside", "link", "no weights", "relative"])
def test_no_other_file_is_written(trained: Path, tmp_path: Path, what: str) -> None:
    served = in_progress(trained, tmp_path)
    secret = tmp_path / "secret.txt"
    secret.write_text("0.5,0.5\n" if what in ("outside", "link") else "key = 7")
    name = str(secret)
    if what == "link":
        (served / "link.txt").symlink_to(secret)
        name = str(served / "link.txt")
    elif what == "no weights":
        name = str(served / "notes.txt")
        (served / "notes.txt").write_text("key = 7")
    elif what == "relative":
        name = str(served / ".." / "secret.txt")
    status = json.loads((served / "cn/status.json").read_text()) | {"weights_file": name}
    (served / "cn/status.json").write_text(json.dumps(status))
    before = secret.read_text()
    with client_of(served) as client:
        key, found = run_of(client)
        assert not found["steerable"]
        answer = client.post(f"/api/runs/{key}/weights", json={"weights": [0.1, 0.9]})
        assert answer.status_code == 422
    assert secret.read_text() == before
    if what == "no weights":
        assert (served / "notes.txt").read_text() == "key = 7"


def test_a_finished_run_is_not_steered(client: TestClient) -> None:
    key, found = run_of(client)
    assert not found["steerable"]
    answer = client.post(f"/api/runs/{key}/weights", json={"weights": [0.5, 0.5]})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"runs": 3}', '{"step": 1, "steps": 2, "time": 1, "runs": [{}]}',
     '{"step": -1, "steps": 2, "time": 1, "runs": []}',
     '{"step": 1, "steps": 2, "time": "now", "runs": []}',
     '{"step": 1, "steps": 2, "time": 1, "runs": [], "weights_file": 3}',
     '{"step": 1, "steps": 2, "time": 1, "runs": [{"name": "a", "steps": [1], "utility": []}]}'],
)  # fmt: skip
def test_a_damaged_status_is_a_sentence(trained: Path, tmp_path: Path, text: str) -> None:
    served = in_progress(trained, tmp_path)
    (served / "cn/status.json").write_text(text)
    with client_of(served) as client:
        found = client.get("/api/library").json()
        assert [run["state"] for run in found["runs"]] == ["stopped"]
        answer = client.get(f"/api/runs/{found['runs'][0]['id']}").json()
        assert answer["notes"] or not text
        assert client.get("/").status_code == 200
