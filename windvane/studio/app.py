"""The page's addresses: files, what there is to choose from, maps, curves, and the socket.

What may not live here: how any of it is computed.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from windvane.errors import InputError, in_one_line
from windvane.machine import usable_cores
from windvane.studio.access import MAX_BODY, Guard
from windvane.studio.curves import describe_run, steer_run
from windvane.studio.jobs import Jobs
from windvane.studio.library import Library
from windvane.studio.maps import compute_map
from windvane.studio.opened import OpenedPolicies
from windvane.studio.viewer import Pools, Viewer

STATIC = Path(__file__).parent / "static"
MOST_VIEWERS = 64
LOOK_EVERY = 2.0
"""Seconds between two looks at the folder."""

_log = logging.getLogger("windvane.studio")


class Studio:
    """What all viewers share."""

    def __init__(self, library: Library):
        """Nothing is open yet."""
        self.library, self.jobs = library, Jobs()
        self.policies = OpenedPolicies(library, self.jobs)
        native = ThreadPoolExecutor(max(usable_cores(), 2), thread_name_prefix="windvane-native")
        gymnasium = ThreadPoolExecutor(1, thread_name_prefix="windvane-gymnasium")
        self.pools = Pools(native, gymnasium)
        self.viewers: set[Viewer] = set()

    async def compute(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do something that takes a while in a thread."""
        return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)

    def map_of(self, key: str) -> dict[str, Any]:
        """The map of a policy, or how far it is."""
        opened = self.policies.open(key)
        name = f"map {key} {opened.policy.checksum}"
        return self.jobs.start(name, lambda progress: compute_map(opened, progress)).to_json()

    def prepare(self, key: str) -> None:
        """Open a policy and take a step with it, so that all is compiled."""
        opened = self.policies.open(key)
        objectives = opened.policy.spec.num_objectives
        weights = np.full(objectives, 1 / objectives)
        stage = opened.stage()
        stage.reset(0, 0)
        stage.decide(weights)
        stage.step(weights)
        stage.close()

    async def watch(self) -> None:
        """Tell viewers when there is something else to choose from."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                changed = self.viewers and await self.compute(self.library.scan)
            except Exception:  # the folder may be in the middle of anything
                _log.exception("looking at the folder failed")
                continue
            if changed:
                for viewer in list(self.viewers):
                    with suppress(Exception):
                        await viewer.tell({"type": "library"})

    def close(self) -> None:
        """End the threads."""
        self.jobs.close()
        for pool in (self.pools.native, self.pools.gymnasium):
            pool.shutdown(wait=False, cancel_futures=True)


def make_app(library: Library, token: str, *, host: str = "127.0.0.1", port: int = 0) -> Any:
    """The whole page as an ASGI application; `port` is the one it will be served at."""
    studio = Studio(library)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        watching = asyncio.create_task(studio.watch())
        yield
        watching.cancel()
        studio.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.studio = studio

    @app.exception_handler(InputError)
    async def refuse(request: Request, error: InputError) -> JSONResponse:
        del request
        return JSONResponse({"problem": in_one_line(error)}, 422)

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/api/library")
    async def everything() -> dict[str, Any]:
        return library.to_json()

    @app.get("/api/policies/{key}/map")
    async def policy_map(key: str) -> Any:
        return JSONResponse(await studio.compute(studio.map_of, key))

    @app.get("/api/runs/{key}")
    async def run(key: str) -> Any:
        entry = library.run_entry(key)
        return JSONResponse(await studio.compute(describe_run, library, entry))

    @app.post("/api/runs/{key}/weights")
    async def steer(key: str, request: Request) -> Any:
        body = await _body(request)
        weights = body.get("weights") if isinstance(body, dict) else None
        held = await studio.compute(steer_run, library, library.run_entry(key), weights)
        return JSONResponse({"weights": held})

    @app.websocket("/ws")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        if len(studio.viewers) >= MOST_VIEWERS:
            await websocket.close(1013, "too many viewers")
            return
        viewer = Viewer(websocket, studio.policies, studio.pools)
        studio.viewers.add(viewer)
        try:
            await viewer.run()
        finally:
            studio.viewers.discard(viewer)

    app.mount("/", StaticFiles(directory=STATIC), name="static")
    return Guard(app, token, host, port, studio)


async def _body(request: Request) -> Any:
    """The JSON of a request, which is not read beyond its limit."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MAX_BODY:
            raise InputError(f"a request may have at most {MAX_BODY:,} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError("a request must be JSON") from error
