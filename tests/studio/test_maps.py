"""What a policy does for every weight: as evaluation says, computed once, beside the optimum."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.studio.conftest import client_of
from windvane.evaluation import evaluate
from windvane.studio import maps
from windvane.studio.jobs import Jobs
from windvane.studio.maps import map_weights


def finished_map(client: TestClient, key: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = client.get(f"/api/policies/{key}/map").json()
        if found["state"] != "running":
            return found
        assert found["done"] <= max(found["total"], 1)
        time.sleep(0.05)
    raise AssertionError("the map was never finished")


def test_a_map_is_what_evaluation_finds(client: TestClient) -> None:
    key = client.get("/api/library").json()["default"]
    found = finished_map(client, key)
    assert found["state"] == "done"
    policy = client.app.studio.policies.open(key).policy
    weights, _ = map_weights(2, True)
    np.testing.assert_allclose(found["weights"], weights, atol=1e-5)
    expected = evaluate(policy, weights, episodes=maps.EPISODES)
    np.testing.assert_allclose(found["returns"], expected.returns.mean(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["utility"], expected.utility, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["optimal"]["utility"], expected.optimal, rtol=1e-4)
    assert found["never_ends"] == expected.never_ending.tolist()
    assert len(found["front"]) >= 1
    assert len(found["optimal_front"]) == 10
    names = found["optimal"]["behaviours"]
    assert len(names) == len(set(names)) == 10
    assert len(found["optimal"]["behaviour"]) == len(weights)


def test_a_map_is_kept_and_not_computed_again(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(trained) as client:
        key = client.get("/api/library").json()["default"]
        first = finished_map(client, key)

    def never(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr(maps, "evaluate", never)
    with client_of(trained) as client:
        assert finished_map(client, key) == first


def test_a_damaged_cache_is_computed_anew(trained: Path, tmp_path: Path) -> None:
    with client_of(trained) as client:
        key = client.get("/api/library").json()["default"]
        first = finished_map(client, key)
    (kept,) = (tmp_path / "cache/studio").glob("*.json")
    for damage in ("{", "[]", '{"key": "another"}'):
        kept.write_text(damage)
        with client_of(trained) as client:
            assert finished_map(client, key) == first


def test_the_grid_of_every_number_of_objectives() -> None:
    for objectives in (1, 2, 3, 4, 7):
        for native in (True, False):
            weights, resolution = map_weights(objectives, native)
            np.testing.assert_allclose(weights.sum(1), 1)
            assert (weights >= 0).all()
            assert weights.shape[1] == objectives
            assert (resolution is not None) == (objectives == 3)
    assert len(map_weights(3, True)[0]) == 325
    assert len(map_weights(4, True)[0]) == 4 * 21


def test_jobs_are_done_once_and_tell_what_went_wrong() -> None:
    jobs, calls = Jobs(), []

    def work(progress: Any) -> dict[str, int]:
        calls.append(1)
        progress("pieces", 1, 2)
        return {"answer": 42}

    job = jobs.start("a", work)
    assert job.finished.wait(10)
    assert jobs.start("a", work) is job
    assert job.to_json() == {"state": "done", "answer": 42}
    assert calls == [1]

    def fail(progress: Any) -> Any:
        del progress
        raise RuntimeError("no such thing\nat all")

    job = jobs.start("b", fail)
    assert job.finished.wait(10)
    assert jobs.start("b", work) is job
    job.failed_at = time.monotonic() - 60
    again = jobs.start("b", work)
    assert again.finished.wait(10)
    assert again.to_json()["answer"] == 42
    assert job.to_json() == {"state": "failed", "problem": "RuntimeError: no such thing at all"}
    jobs.close()
