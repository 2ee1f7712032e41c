"""A folder with a few trained policies, and a page that serves it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.runs.small import small
from windvane.runs.runner import train
from windvane.studio.app import make_app
from windvane.studio.library import Library

TOKEN = "a-secret"
BASE = "http://127.0.0.1:8321"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trainings: of CN with two seeds, and of MO."""
    folder = tmp_path_factory.mktemp("trained")
    train(small(), out=folder / "cn", progress=False)
    train(small(agent="mo", seeds=(3,)), out=folder / "deep" / "mo", progress=False)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps are kept where nobody else finds them."""
    monkeypatch.setenv("WINDVANE_CACHE", str(tmp_path / "cache"))


def client_of(folder: Path | None, **options: Any) -> TestClient:
    """A browser that has opened the link."""
    app = make_app(Library(folder, **options), TOKEN, port=8321)
    client = TestClient(app, BASE, headers={"origin": BASE})
    client.cookies.set("windvane-8321", TOKEN)
    return client


@pytest.fixture
def client(trained: Path) -> Iterator[TestClient]:
    """A browser that has opened the link to the page of `trained`."""
    with client_of(trained) as client:
        yield client


@contextmanager
def connected(client: TestClient, headers: dict[str, str] | None = None) -> Iterator[Any]:
    """A socket of a browser, which must be given the whole address: it is another by default. It
    leaves as a browser does, and the server has noticed before this ends.
    """
    address = f"{BASE.replace('http', 'ws')}/ws"
    viewers = client.app.studio.viewers
    with client.websocket_connect(address, headers=dict(headers or {})) as socket:
        yield socket
        socket.close()
        deadline = time.monotonic() + 20
        while viewers and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not viewers


def opened(socket: Any, *policies: str, **options: Any) -> dict[str, Any]:
    """Open policies, and return what the server says to that."""
    socket.send_json({"type": "open", "policies": list(policies)} | options)
    return until(socket, "opened")


def until(socket: Any, kind: str, most: int = 2_000, **wanted: Any) -> dict[str, Any]:
    """The next message of a type, with some of its values."""
    for _ in range(most):
        message = socket.receive_json()
        if message["type"] == "problem" and kind != "problem":
            raise AssertionError(message["message"])
        if message["type"] == kind and all(message[k] == v for k, v in wanted.items()):
            return message
    raise AssertionError(f"no message {kind} with {wanted} came")
