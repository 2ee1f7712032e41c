"""A real browser on a real server, for tests and for pictures in the docs."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SECONDS = 60.0
"""Longest wait for anything; machines may be busy."""


def browser_path() -> str | None:
    """Chromium or Chrome, where one is installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[str]:
    """`windvane studio` in a process of its own; the link that it prints."""
    command = [sys.executable, "-m", "windvane", "studio", "--no-browser", "--port", "0"]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as process:
        said: list[str] = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                if line.startswith("http"):
                    break
            else:
                raise AssertionError("".join(said))
            yield said[-1].strip()
        finally:
            process.terminate()


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = browser_path()
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Page:
    """A tab: what it is told by the server, and what it complains about."""

    def __init__(self, browser: Any, url: str, **options: Any):
        """Open the link, and wait until the first step is drawn."""
        self.complaints: list[str] = []
        self.messages: list[dict[str, Any]] = []
        size = {"viewport": {"width": 1280, "height": 860}}
        self.context = browser.new_context(**(size | options))
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(1000 * SECONDS)
        self.tab.on("console", self._hear)
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("websocket", lambda socket: socket.on("framereceived", self._take))
        self.tab.goto(url)
        self.tab.locator("html[data-ready=true]").wait_for(state="attached")

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _take(self, payload: Any) -> None:
        if isinstance(payload, str):
            self.messages.append(json.loads(payload))

    def __getitem__(self, name: str) -> Any:
        """What has that test id."""
        return self.tab.get_by_test_id(name).first

    def go(self, view: str) -> None:
        """Go to a view."""
        self.tab.evaluate("view => { location.hash = view }", view)

    def until(self, what: Callable[[], Any], why: str) -> Any:
        """Wait until something is true, and return it."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = what()
            if found:
                return found
            self.tab.wait_for_timeout(50)
        raise AssertionError(f"it never came to pass: {why}")

    def next(self, kind: str, **wanted: Any) -> dict[str, Any]:
        """The next message of a type, with some of its values, from now on."""
        start = len(self.messages)

        def found() -> dict[str, Any] | None:
            return next(
                (
                    m for m in self.messages[start:]
                    if m["type"] == kind and all(m.get(k) == v for k, v in wanted.items())
                ),
                None,
            )  # fmt: skip

        return self.until(found, f"a message {kind} with {wanted}")

    def close(self) -> None:
        """Close the tab."""
        self.context.close()


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag the mouse between two points of the window."""
    mouse = page.tab.mouse
    mouse.move(*start)
    mouse.down()
    mouse.move(*end, steps=8)
    mouse.up()
