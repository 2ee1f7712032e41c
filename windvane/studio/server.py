"""Running the page: an address, a token, a browser."""

import socket
import threading
import time
import webbrowser
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from windvane.errors import InputError, require_int
from windvane.files import path_exists
from windvane.machine import use_compilation_cache
from windvane.policy import Policy
from windvane.progress import say

PORT = 8321
_TRIES = 32


def serve(
    folder: str | Path | None = None,
    policies: Iterable[Policy] = (),
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    trust: bool = False,
    console: Console | None = None,
) -> None:
    """Serve the page until Ctrl-C: the policies and runs under `folder`, those in `policies`, or,
    without either, those that come with the package.
    """
    console = console or Console(stderr=True)
    try:
        import uvicorn
        import websockets  # noqa: F401  # which uvicorn would miss only later

        from windvane.studio.access import is_loopback, new_token
        from windvane.studio.app import make_app
        from windvane.studio.library import Library
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in (
            "fastapi", "uvicorn", "websockets",
        ):  # fmt: skip
            raise
        raise InputError(
            "windvane studio needs FastAPI, uvicorn and websockets: pip install 'windvane[studio]'"
        ) from error
    if folder is not None and not (path_exists(folder) and Path(folder).is_dir()):
        raise InputError(f"there is no folder {str(folder)!r}: name one that holds trained runs")
    use_compilation_cache()
    library = Library(None if folder is None else Path(folder), policies, trust=trust)
    listening = _listen(host, port)
    number, token = listening.getsockname()[1], new_token()
    app = make_app(library, token, host=host, port=number)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws_max_size=2**20, ws="websockets-sansio",
        timeout_graceful_shutdown=1, server_header=False, lifespan="on",
    )  # fmt: skip
    server = uvicorn.Server(config)
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    shown = f"[{shown}]" if ":" in shown else shown
    url = f"http://{shown}:{number}/?token={token}"
    if not is_loopback(host):
        say(
            console,
            f"warning: {host} can be reached from other machines: whoever has the link can watch, "
            "and set the weights of runs that watch a file",
        )
    found = library.to_json()
    what = f"{len(found['policies'])} policies" if folder is not None else "policies to try"
    say(console, f"windvane studio: {what}; Ctrl-C stops it")
    say(console, url)
    _prepare(app, found["default"])
    if browser:
        _open_browser(server, url)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket at the port, or at the first free one from the usual one on."""
    if port is not None:
        require_int("--port", port, 0, 65_535)
    ports = range(PORT, PORT + _TRIES) if port is None else [port]
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot listen on {host!r}: it is no address of this machine") from error
    refused: OSError | None = None
    for one in ports:
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, one))
            listening.listen(128)
            return listening
        except OSError as error:
            listening.close()
            refused = error
    assert refused is not None
    raise InputError(
        f"cannot listen on {host} port {ports[0]}: {refused.strerror or refused}; "
        "choose another with --port"
    ) from refused


def _prepare(app: Any, key: str | None) -> None:
    """Compile what the first viewer will ask for, while the browser opens."""
    if key is None:
        return

    def prepare() -> None:
        with suppress(Exception):  # the first viewer is told what is wrong
            app.studio.prepare(key)

    # Python waits for it in the end: one that is cut off while it compiles aborts the program.
    threading.Thread(target=prepare).start()


def _open_browser(server: Any, url: str) -> None:
    def open_it() -> None:
        while not server.started:
            time.sleep(0.05)
        webbrowser.open(url)

    threading.Thread(target=open_it, daemon=True).start()
