"""How soon `windvane studio` follows a drag, and how many viewers it serves.

    python -m benchmarks.studio    # or make bench-studio; writes results/studio.md

A real server in a process of its own, on loopback. With Chromium: from the pointer's move to the
changed action on the page, and frames drawn per second. With plain sockets: the server's part of
that, and 20 viewers at once. Needs what the tests need.
"""

import asyncio
import json
import os
import statistics
import sys
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import websockets

from tests.studio.browser import Page, browser_path, chromium, served

OUT = Path("results/studio.md")
POLICIES = {"1-minecart-pqn": "Minecart", "3-dst-pqn": "Deep Sea Treasure"}
DRAGS = 60
SECONDS = 15.0
VIEWERS = 20
PACE = 30


class Link:
    """The address of a server, and the cookie that its link gives."""

    def __init__(self, url: str):
        self.base = url.partition("/?")[0]
        jar = CookieJar()
        urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)).open(url).read()
        self.headers = {"Cookie": "; ".join(f"{c.name}={c.value}" for c in jar)}
        self.headers["Origin"] = self.base

    def socket(self) -> Any:
        address = self.base.replace("http", "ws") + "/ws"
        return websockets.connect(address, additional_headers=self.headers, max_size=2**22)


async def decisions(link: Link, policy: str) -> list[float]:
    """Milliseconds from new weights to what would be done under them, at the usual pace."""
    found = []
    async with link.socket() as socket:
        await socket.send(json.dumps({"type": "open", "policies": [policy]}))
        await until(socket, "step")
        size = None
        for number in range(DRAGS + 5):
            if size is None:
                size = len((await until(socket, "step"))["weights"])
            weights = [0.0] * size
            weights[number % 2 * (size - 1)] = 1.0
            began = time.perf_counter()
            await socket.send(json.dumps({"type": "weights", "values": weights}))
            # Between two episodes there is nothing to decide: the first state answers then.
            while (await until(socket, "decision", "step"))["weights"] != weights:
                pass
            found.append(1000 * (time.perf_counter() - began))
            await asyncio.sleep(0.05)
    return found[5:]


async def until(socket: Any, *kinds: str) -> dict[str, Any]:
    while True:
        message = await socket.recv()
        if isinstance(message, str):
            parsed = json.loads(message)
            if parsed["type"] in kinds:
                return parsed


async def viewer(link: Link, policy: str, seconds: float) -> tuple[int, list[str]]:
    """Steps that a viewer at full pace receives, and what it complains about."""
    steps, problems = 0, []
    async with link.socket() as socket:
        await socket.send(json.dumps({"type": "open", "policies": [policy]}))
        await until(socket, "step")
        await socket.send(json.dumps({"type": "pace", "steps_per_second": PACE}))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            message = json.loads(await socket.recv())
            steps += message["type"] == "step"
            if message["type"] == "problem":
                problems.append(message["message"])
    return steps, problems


async def crowd(link: Link, number: int) -> dict[str, Any]:
    keys = list(POLICIES)
    jobs = [viewer(link, keys[i % len(keys)], SECONDS) for i in range(number)]
    found = await asyncio.gather(*jobs, return_exceptions=True)
    errors = [str(one) for one in found if isinstance(one, BaseException)]
    good = [one for one in found if not isinstance(one, BaseException)]
    errors += [sentence for _, problems in good for sentence in problems]
    rates = [steps / SECONDS for steps, _ in good]
    return {"viewers": number, "errors": len(errors), "rate": statistics.median(rates),
            "slowest": min(rates)}  # fmt: skip


_WAIT = """([before, weights]) => new Promise((done) => {
  const look = () => {
    if (performance.now() - before > 1500) return done(null);
    const last = window.__studio.lastDecision;
    if (last && last.weights.every((w, i) => Math.abs(w - weights[i]) < 1e-6)) {
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - before)));
    } else requestAnimationFrame(look);
  };
  look();
})"""


def in_browser(url: str) -> dict[str, float]:
    """Milliseconds from a key on the weights to the changed action drawn, and frames per second."""
    with chromium() as browser:
        page = Page(browser, url)
        page["weights-point"].focus()
        page.tab.wait_for_timeout(2_000)
        times = []
        for number in range(DRAGS):
            corner = number % 2 * 2
            weights = [0.0, 0.0, 0.0]
            weights[corner] = 1.0
            before = page.tab.evaluate("() => performance.now()")
            page.tab.keyboard.press(str(corner + 1))
            taken = page.tab.evaluate(_WAIT, [before, weights])
            if taken is not None:  # else it fell between two episodes, with nothing to decide
                times.append(taken)
        frames = "() => window.__studio.framesDrawn"
        first, began = page.tab.evaluate(frames), time.perf_counter()
        page.tab.wait_for_timeout(5_000)
        rate = (page.tab.evaluate(frames) - first) / (time.perf_counter() - began)
        assert page.complaints == []
        page.close()
    return {"median": statistics.median(times), "p95": sorted(times)[int(0.95 * len(times))],
            "number": len(times), "frames": rate}  # fmt: skip


def first_picture() -> tuple[float, float]:
    """Seconds from the command to its link, and to the first step drawn in a browser."""
    with chromium() as browser:
        began = time.perf_counter()
        with served() as url:
            ready = time.perf_counter() - began
            page = Page(browser, url)
            drawn = time.perf_counter() - began
            page.close()
    return ready, drawn


def by_sockets(url: str) -> list[str]:
    """Tables of what the server does, without a browser."""
    link = Link(url)
    lines = [
        "| policy | from new weights to the decision under them, median | 95% within |",
        "| --- | --- | --- |",
    ]
    for key, name in POLICIES.items():
        found = sorted(asyncio.run(decisions(link, key)))
        late = found[int(0.95 * len(found))]
        lines.append(f"| {name} | {statistics.median(found):.1f} ms | {late:.1f} ms |")
    lines += [
        "",
        f"Steps per second that viewers receive who ask for {PACE}, half of them for each policy:",
        "",
        "| viewers | median | slowest | errors |",
        "| --- | --- | --- | --- |",
    ]
    for number in (1, 5, VIEWERS):
        one = asyncio.run(crowd(link, number))
        rates = f"{one['rate']:.1f} | {one['slowest']:.1f}"
        lines.append(f"| {number} | {rates} | {one['errors']} |")
    return lines


def main() -> None:
    load = os.getloadavg()[0]
    first_picture()  # compiles what is not on the disk yet
    lines = ["# The studio's speed", "", "`make bench-studio`, on loopback.", ""]
    with served() as url:
        lines += by_sockets(url)
    print("\n".join(lines), flush=True)
    if browser_path() is not None:
        with served() as url:
            one = in_browser(url)
        ready, drawn = first_picture()
        lines += [
            "",
            f"In Chromium, headless and without a GPU: {one['median']:.0f} ms from a key press to "
            f"the changed action drawn (median of {one['number']}; 95% within "
            f"{one['p95']:.0f} ms), and {one['frames']:.0f} frames drawn per second. "
            f"Of {DRAGS} key presses, those are left out that fell between two episodes, where "
            "there is nothing to decide.",
            "",
            f"{ready:.1f} s from the command to its link, and {drawn:.1f} s to the first moving "
            "picture, where an earlier start has left compiled programs on the disk.",
        ]
    python = sys.version.split()[0]
    cores = os.cpu_count()
    lines += ["", f"Machine: {cores} cores, load of other work before {load:.1f}, Python {python}."]
    OUT.write_text("\n".join(lines) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
