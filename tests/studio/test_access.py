"""Who may talk to the page."""

import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.studio.conftest import BASE, TOKEN, connected, opened
from windvane.errors import InputError
from windvane.studio.access import host_names, is_loopback
from windvane.studio.app import make_app
from windvane.studio.library import Library
from windvane.studio.server import serve


@pytest.fixture
def stranger(client: TestClient) -> TestClient:
    client.cookies.clear()
    del client.headers["origin"]
    return client


@pytest.mark.parametrize("path", ["/", "/api/library", "/style.css", "/api/policies/x/map"])
def test_nothing_is_shown_without_the_token(stranger: TestClient, path: str) -> None:
    for address in (path, f"{path}?token=", f"{path}?token=another"):
        answer = stranger.get(address)
        assert answer.status_code == 403
        assert "needs the link" in answer.text


def test_the_link_is_enough(stranger: TestClient) -> None:
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.get("/").status_code == 200
    assert stranger.get("/api/library").json()["policies"]


def test_a_cookie_of_another_port_is_not_enough(stranger: TestClient) -> None:
    stranger.cookies.set("windvane-8322", TOKEN)
    assert stranger.get("/api/library").status_code == 403


@pytest.mark.parametrize("other", ['a={"x": [1, "y"]}', "a name=1", "a=\x01", "=;;=", '"'])
def test_a_cookie_of_another_program_does_not_matter(stranger: TestClient, other: str) -> None:
    mine = f"windvane-8321={TOKEN}"
    for cookies in (f"{other}; {mine}", f"{mine};{other}"):
        assert stranger.get("/api/library", headers={"cookie": cookies}).status_code == 200
    assert stranger.get("/api/library", headers={"cookie": other}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "10.0.0.1", "", "["]
)
def test_other_hosts_are_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/library", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:9000", "[::1]:8321", "LOCALHOST"])
def test_this_machine_is_known_by_its_names(client: TestClient, host: str) -> None:
    del client.headers["origin"]
    assert client.get("/api/library", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://127.0.0.1:8322", "null", "https://localhost:8321", "http://["],
)
def test_other_origins_are_refused(client: TestClient, origin: str) -> None:
    headers = {"origin": origin, "host": "127.0.0.1:8321"}
    assert client.get("/api/library", headers=headers).status_code == 403
    assert client.post("/api/runs/x/weights", headers=headers, json={}).status_code == 403
    with pytest.raises(WebSocketDisconnect), connected(client, headers):
        pass


def test_sockets_and_changes_need_an_origin(client: TestClient) -> None:
    del client.headers["origin"]
    assert client.post("/api/runs/x/weights", json={}).status_code == 403
    with pytest.raises(WebSocketDisconnect), connected(client):
        pass


def test_sockets_need_the_token(client: TestClient) -> None:
    with connected(client) as socket:
        assert opened(socket, client.get("/api/library").json()["default"])
    client.cookies.clear()
    with pytest.raises(WebSocketDisconnect), connected(client):
        pass


def test_pages_may_load_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/style.css", "/api/library", "/no-such-file"):
        headers = client.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "path",
    ["/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/static/../../app.py", "//etc/passwd"],
)
def test_only_the_page_s_own_files_are_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (403, 404)
    assert "import" not in answer.text


def test_interactive_api_pages_are_off(client: TestClient) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404


def test_an_open_address_takes_numbers_but_no_foreign_names(trained: Path) -> None:
    app = make_app(Library(trained), TOKEN, host="0.0.0.0", port=8321)
    with TestClient(app, BASE) as other:
        other.cookies.set("windvane-8321", TOKEN)
        for host, status in (("192.168.1.7:8321", 200), ("evil.example:8321", 403)):
            assert other.get("/api/library", headers={"host": host}).status_code == status


def test_loopback_addresses() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org")))
    assert "evil.example" not in host_names("127.0.0.1")


@pytest.mark.parametrize("package", ["uvicorn", "websockets"])
def test_what_is_not_installed_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"pip install 'windvane\[studio\]'"):
        serve(browser=False, port=0)
