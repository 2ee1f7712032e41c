"""Who may talk to the page: a token, known hosts, and requests that come from the page itself.

A page on a loopback address can be reached by every program of the machine and, through a browser,
by every site that a user visits. So each request needs the secret that the command printed, a Host
that is this machine (a site that points its own name here has another), and, where there is an
Origin, the page's own.
"""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs, urlsplit

MAX_BODY = 64 * 1024
"""Bytes of a request's body."""
_HEADERS = (
    (b"content-security-policy",
     b"default-src 'self'; img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; "
     b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
)  # fmt: skip
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def new_token() -> str:
    """A secret for one server's life."""
    return secrets.token_urlsafe(24)


def host_names(host: str) -> tuple[str, ...]:
    """Names under which a server that binds to `host` is reached."""
    own = {*_LOOPBACK, host.lower()}
    with_names = not is_loopback(host)
    if with_names:
        own |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return tuple(sorted(own))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what binds to `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """ASGI middleware that answers 403 to whoever may not talk to the page."""

    def __init__(
        self, app: Any, token: str, host: str = "127.0.0.1", port: int = 0, studio: Any = None
    ):
        """Guard `app`, which is served at `host` and `port`; `studio` is what it shows."""
        self._app, self._token, self.studio = app, token, studio
        self._names = host_names(host)
        self._any_address = not is_loopback(host)
        self.cookie = f"windvane-{port}"
        """Cookies are shared by all ports of a host, so each port has one of its own."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _by_name(scope["headers"])
        if not self._may_come(scope, headers):
            await _refuse(scope, receive, send)
            return
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        given = (query.get("token") or [""])[-1]
        if scope["type"] == "http" and scope["path"] == "/" and self._is_token(given):
            await self._welcome(send)
            return
        if not (self._is_token(given) or self._is_token(self._cookie_of(headers))):
            await _refuse(scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(send))

    def _may_come(self, scope: Any, headers: dict[str, str]) -> bool:
        host = headers.get("host", "")
        if not self._is_own(_name_of(f"//{host}")):
            return False
        origin = headers.get("origin")
        if origin is None:
            # Browsers send one with every socket and with every request that changes something.
            return scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        try:
            return urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:  # no address at all
            return False

    def _is_own(self, name: str | None) -> bool:
        if name is None:
            return False
        if name in self._names:
            return True
        if not self._any_address:
            return False
        try:  # numbers cannot be made to point elsewhere, as names can
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _cookie_of(self, headers: dict[str, str]) -> str:
        # Programs at other ports set cookies too, and one of theirs that keeps to no rule must not
        # hide this page's own, as it would from `http.cookies`.
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), "")

    async def _welcome(self, send: Any) -> None:
        """Keep the token in a cookie, and take it out of the address."""
        cookie = f"{self.cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), *_HEADERS]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


def _name_of(address: str) -> str | None:
    try:
        return (urlsplit(address).hostname or "").lower() or None
    except ValueError:
        return None


def _with_headers(send: Any) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in _HEADERS}
            kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in own]
            message = message | {"headers": [*kept, *_HEADERS]}
        await send(message)

    return sending


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    body = b"This page needs the link that windvane studio printed.\n"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
