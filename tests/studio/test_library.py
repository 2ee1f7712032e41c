"""What is offered: found under a folder, never outside it, whatever lies there."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.runs.small import small
from tests.studio.conftest import client_of
from windvane.errors import InputError
from windvane.runs.runner import train
from windvane.studio.library import SHIPPED, Library


def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "served"))


def test_policies_and_runs_at_any_depth(client: TestClient) -> None:
    found = client.get("/api/library").json()
    assert [policy["name"] for policy in found["policies"]] == [
        "cn · seed-3", "cn · seed-5", "deep/mo",
    ]  # fmt: skip
    assert [run["name"] for run in found["runs"]] == ["cn", "deep/mo"]
    first, _, mo = found["policies"]
    assert first["objectives"] == ["treasure", "time"]
    assert first["agent_label"] == "CN"
    assert first["env_label"] == "Deep Sea Treasure"
    assert first["group"] == mo["group"]
    assert found["default"] == first["id"]
    assert found["compare"] is not None
    assert all(policy["problem"] is None for policy in found["policies"])


def test_no_path_is_told_or_taken(client: TestClient, trained: Path) -> None:
    text = client.get("/api/library").text
    inside = str(trained / "cn")
    assert inside not in text
    for key in ("../cn", "cn", "%2e%2e", "..", inside.lstrip("/")):
        assert client.get(f"/api/policies/{key}/map").status_code in (404, 422)


def test_policies_that_lie_alone(trained: Path, tmp_path: Path) -> None:
    shutil.copy(trained / "cn/policies/seed-3.safetensors", tmp_path / "mine.safetensors")
    library = Library(tmp_path)
    (entry,) = library.to_json()["policies"]
    assert entry["name"] == "mine"
    assert library.load(library.policy_entry(entry["id"])).spec.num_objectives == 2


def test_a_run_folder_itself(trained: Path) -> None:
    names = [policy["name"] for policy in Library(trained / "cn").to_json()["policies"]]
    assert names == ["cn · seed-3", "cn · seed-5"]


def test_without_a_folder_the_package_s_own_policies() -> None:
    library = Library()
    found = library.to_json()
    assert found["folder"] is None
    assert {policy["state"] for policy in found["policies"]} == {"shipped"}
    assert found["compare"] is not None
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 5_000_000
    for entry in found["policies"]:
        assert entry["problem"] is None
        assert library.load(library.policy_entry(entry["id"])).step == entry["step"]


def test_an_empty_folder_shows_the_package_s_own(tmp_path: Path) -> None:
    assert {p["state"] for p in Library(tmp_path).to_json()["policies"]} == {"shipped"}


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_are_not_followed(trained: Path, tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    (served / "cn").symlink_to(trained / "cn")
    shutil.copytree(trained / "deep", served / "deep")
    policy = served / "deep/mo/policies/seed-3.safetensors"
    library = Library(served)
    (entry,) = library.to_json()["policies"]
    policy.unlink()
    policy.symlink_to(trained / "deep/mo/policies/seed-3.safetensors")
    with pytest.raises(InputError, match="outside"):
        library.load(library.policy_entry(entry["id"]))
    library.scan()
    assert all(p["state"] == "shipped" for p in library.to_json()["policies"])


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_folder_that_becomes_a_link_is_refused(trained: Path, tmp_path: Path) -> None:
    served = copied(trained, tmp_path)
    library = Library(served)
    entry = next(p for p in library.to_json()["policies"] if p["name"] == "deep/mo")
    shutil.move(served / "deep/mo", tmp_path / "elsewhere")
    (served / "deep/mo").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="outside"):
        library.load(library.policy_entry(entry["id"]))


def test_what_is_damaged_is_shown_with_its_reason(trained: Path, tmp_path: Path) -> None:
    served = copied(trained, tmp_path)
    (served / "cn/config.json").write_text("{")
    (served / "junk.safetensors").write_bytes(b"\xff" * 100)
    (served / "empty.safetensors").write_bytes(b"")
    found = Library(served).to_json()
    problems = {p["name"]: p["problem"] for p in found["policies"] if p["problem"]}
    assert set(problems) == {"cn", "junk", "empty"}
    assert "not valid JSON" in problems["cn"]
    assert "not a policy" in problems["junk"]
    # What is sound is offered, and is the default.
    sound = next(p for p in found["policies"] if p["problem"] is None)
    assert found["default"] == sound["id"]


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names there are text")
def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    shutil.copy(SHIPPED / "3-dst-pqn.safetensors", folder / os.fsdecode(b"good\xff.safetensors"))
    (folder / os.fsdecode(b"bad\xff.safetensors")).write_bytes(b"no policy")
    (folder / os.fsdecode(b"run\xff")).mkdir()
    (folder / os.fsdecode(b"run\xff") / "config.json").write_text("{")
    with client_of(folder) as client:
        found = client.get("/api/library").json()
    assert found["folder"].endswith("f\N{REPLACEMENT CHARACTER}")
    assert [policy["name"] for policy in found["policies"]] == [
        "bad\N{REPLACEMENT CHARACTER}", "good\N{REPLACEMENT CHARACTER}",
        "run\N{REPLACEMENT CHARACTER}",
    ]  # fmt: skip
    assert [bool(policy["problem"]) for policy in found["policies"]] == [True, False, True]


def test_a_policy_that_was_changed_is_refused(trained: Path, tmp_path: Path) -> None:
    served = copied(trained, tmp_path)
    path = served / "cn/policies/seed-3.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with client_of(served) as client:
        key = client.get("/api/library").json()["default"]
        answer = client.get(f"/api/policies/{key}/map")
        assert answer.status_code == 422
        assert "changed or damaged" in answer.json()["problem"]


def test_what_is_deleted_is_said_to_be_gone(trained: Path, tmp_path: Path) -> None:
    served = copied(trained, tmp_path)
    with client_of(served) as client:
        found = client.get("/api/library").json()
        shutil.rmtree(served / "deep")
        gone = found["policies"][2]["id"]
        assert client.get(f"/api/policies/{gone}/map").status_code == 422
        run = client.get(f"/api/runs/{found['runs'][1]['id']}")
        assert run.status_code in (200, 422)
        client.app.studio.library.scan()
        assert client.get(f"/api/policies/{gone}/map").json()["problem"].startswith("there is no")


def test_foreign_code_needs_trust(tmp_path: Path) -> None:
    config = small(env="tests.strangers.parts:Corridor", seeds=(0,), gamma=0.9)
    train(config, out=tmp_path / "corridor", progress=False)
    for trust in (False, True):
        with client_of(tmp_path, trust=trust) as client:
            key = client.get("/api/library").json()["default"]
            answer = client.get(f"/api/policies/{key}/map")
            assert answer.status_code == (200 if trust else 422)
            if not trust:
                assert "trust" in answer.json()["problem"]


def test_policies_made_in_python(trained: Path) -> None:
    library = Library(trained)
    policy = library.load(library.policy_entry(library.to_json()["default"]))
    mine = Library(given=[policy])
    (entry,) = mine.to_json()["policies"]
    assert mine.load(mine.policy_entry(entry["id"])) is policy


def test_a_run_in_progress_is_offered_as_it_is_now(trained: Path, tmp_path: Path) -> None:
    served = copied(trained, tmp_path) / "cn"
    shutil.move(served / "policies", served / "kept")
    (served / "policies/current").mkdir(parents=True)
    shutil.copy(served / "kept/seed-3.safetensors", served / "policies/current")
    (served / "summary.json").unlink()
    status = {"step": 80, "steps": 480, "time": time.time(), "weights": [0.5, 0.5], "runs": []}
    (served / "status.json").write_text(json.dumps(status))
    found = Library(served).to_json()
    assert [run["state"] for run in found["runs"]] == ["training"]
    assert [policy["state"] for policy in found["policies"]] == ["training"]
    status["time"] -= 3_600
    (served / "status.json").write_text(json.dumps(status))
    assert [run["state"] for run in Library(served).to_json()["runs"]] == ["stopped"]
