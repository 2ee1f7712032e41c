"""One browser's connection: what it asks for, and the episodes that are played for it.

Steps are computed in threads, so that many viewers share one event loop. What comes from a browser
is not trusted: messages have a size and a rate, and a bad one is answered with a sentence.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any

import numpy as np
from fastapi import WebSocket, WebSocketDisconnect

from windvane.envs.environment import Environment
from windvane.errors import InputError, in_one_line, is_number, require_int, shown
from windvane.studio.lane import Lane
from windvane.studio.market import Sequence, WeightsOverTime, make_market
from windvane.studio.opened import Opened, OpenedPolicies
from windvane.studio.plain import plain, unit_of
from windvane.studio.stage import Message
from windvane.weights import check_weights

MAX_MESSAGE = 512 * 1024
"""Characters of a message; a recorded sequence is the longest."""
RATE, BURST = 120.0, 240.0
"""Messages per second that are answered, and how many may come at once."""
SLOWEST, FASTEST = 0.2, 60.0
"""Steps per second that may be asked for."""
MOST_LANES = 2
SEND_SECONDS = 15.0
"""A browser that takes no message for so long is given up."""
PROBLEM_SECONDS = 0.2
"""Least time between two sentences about bad messages."""

_log = logging.getLogger("windvane.studio")


class Pools:
    """Threads: several for native environments, and one for Gymnasium's, which need not be safe in
    more than one.
    """

    def __init__(self, native: Executor, gymnasium: Executor):
        """Take both."""
        self.native, self.gymnasium = native, gymnasium


class TokenBucket:
    """How long to wait before the next message is read."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic):
        """Full."""
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._at = burst, clock()

    def wait(self) -> float:
        """Take one; the seconds until it is there."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
        self._at = now
        return max(-self._tokens / self._rate, 0.0)


class Viewer:
    """A connection, and up to two lanes that play beside each other under the same weights."""

    def __init__(self, socket: WebSocket, policies: OpenedPolicies, pools: Pools):
        """Nothing is open yet."""
        self._socket, self._policies, self._pools = socket, policies, pools
        self._lanes: list[Lane] = []
        self._spare: list[Lane] = []
        """Lanes that are made and not yet played."""
        self._ids: list[str] = []
        self._weights = np.zeros(0)
        self._play: WeightsOverTime | None = None
        self._played = 0
        self._seconds = 0.125
        self._paused = False
        self._seed = 0
        self._executor = pools.native
        self._busy = asyncio.Lock()
        """Held while lanes are computed or exchanged."""
        self._sending = asyncio.Lock()
        self._wake, self._decide = asyncio.Event(), asyncio.Event()
        self._bucket = TokenBucket(RATE, BURST)
        self._complained = -PROBLEM_SECONDS

    async def run(self) -> None:
        """Serve the browser until it leaves."""
        tasks = [asyncio.create_task(job()) for job in (self._read, self._step, self._decisions)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is not None and not isinstance(error, _LEFT):
                    _log.error("a viewer failed", exc_info=error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._close_later(lambda: [*self._lanes, *self._spare])
            with suppress(*_LEFT):
                await self._socket.close()

    async def tell(self, message: Message) -> None:
        """Send a message; the browser's absence ends the connection."""
        async with self._sending:
            async with asyncio.timeout(SEND_SECONDS):
                if isinstance(message, bytes):
                    await self._socket.send_bytes(message)
                else:
                    await self._socket.send_text(json.dumps(message, separators=(",", ":")))

    async def _read(self) -> None:
        while True:
            delay = self._bucket.wait()
            if delay:
                await asyncio.sleep(delay)
            frame = await self._socket.receive()
            if frame["type"] == "websocket.disconnect":
                return
            try:
                await self._answer(_parse(frame))
            except InputError as error:
                await self._complain(in_one_line(error))

    async def _complain(self, sentence: str) -> None:
        now = time.monotonic()
        if now - self._complained >= PROBLEM_SECONDS:
            self._complained = now
            await self.tell({"type": "problem", "message": sentence})

    async def _answer(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "open":
            await self._open(message)
            return
        answer = {
            "weights": self._set_weights,
            "pace": self._set_pace,
            "pause": self._set_pause,
            "restart": self._restart,
            "market": self._set_market,
            "sequence": self._set_sequence,
        }.get(kind if isinstance(kind, str) else "")
        if answer is None:
            raise InputError(f"there is no message of the type {shown(kind)}")
        if not self._lanes:
            raise InputError("no policy is open yet")
        await answer(message)
        self._wake.set()

    async def _open(self, message: dict[str, Any]) -> None:
        keys = message.get("policies")
        if not (isinstance(keys, list) and 1 <= len(keys) <= MOST_LANES):
            raise InputError(f"1 to {MOST_LANES} policies can be open, not {shown(keys)}")
        seed = require_int("the seed", message.get("seed", 0), 0, 2**31 - 1)
        weights = message.get("weights")
        native_pool = self._pools.native
        opened = [await self._in_thread(native_pool, self._policies.open, key) for key in keys]
        spec = opened[0].policy.spec
        if any(one.policy.spec.objectives != spec.objectives for one in opened):
            raise InputError("policies beside each other must have the same objectives")
        objectives = spec.num_objectives
        vector = np.full(objectives, 1 / objectives)
        if weights is not None:
            vector = check_weights(weights, objectives)
        native = all(isinstance(one.policy.world, Environment) for one in opened)
        executor = native_pool if native else self._pools.gymnasium

        def make() -> list[Lane]:
            lanes: list[Lane] = []
            try:
                for number, one in enumerate(opened):
                    lanes.append(Lane(number, one.stage(), seed, one.best))
            except BaseException:
                _close(lanes)
                raise
            self._spare = lanes
            return lanes

        lanes = await self._in_thread(executor, make)
        async with self._busy:
            before, self._spare = self._lanes, []
            self._close_later(lambda: before)
            self._lanes, self._ids, self._executor = lanes, list(keys), executor
            self._weights, self._play, self._played = vector, None, 0
            self._paused = False
            self._seed, self._seconds = seed, lanes[0].stage.seconds_per_step
            await self.tell(_opened_message(opened, lanes, vector, self._seconds))
        self._wake.set()

    async def _set_weights(self, message: dict[str, Any]) -> None:
        self._weights = check_weights(message.get("values"), self._weights.size)
        if self._play is not None:
            self._play = None
            await self._tell_weights()
        self._decide.set()

    async def _set_pace(self, message: dict[str, Any]) -> None:
        pace: Any = message.get("steps_per_second")
        if not (is_number(pace) and SLOWEST <= pace <= FASTEST):
            raise InputError(
                f"steps per second must be from {SLOWEST:g} to {FASTEST:g}, not {shown(pace)}"
            )
        self._seconds = 1 / float(pace)

    async def _set_pause(self, message: dict[str, Any]) -> None:
        if not isinstance(message.get("on"), bool):
            raise InputError(f"on must be true or false, not {shown(message.get('on'))}")
        self._paused = message["on"]

    async def _restart(self, message: dict[str, Any]) -> None:
        del message
        for lane in self._lanes:
            lane.restart()

    async def _set_market(self, message: dict[str, Any]) -> None:
        kind, objectives = message.get("kind"), self._weights.size
        pool = self._pools.native
        self._play = await self._in_thread(pool, make_market, kind, objectives, self._seed)
        self._played = 0
        await self._tell_weights()

    async def _set_sequence(self, message: dict[str, Any]) -> None:
        rows, objectives = message.get("rows"), self._weights.size
        self._play = await self._in_thread(self._pools.native, Sequence, rows, objectives)
        self._played = 0
        await self._tell_weights()

    async def _tell_weights(self) -> None:
        playing = None if self._play is None else self._play.name
        values = plain(self._weights)
        await self.tell({"type": "weights", "values": values, "playing": playing})

    async def _step(self) -> None:
        """Play, at the pace that is asked for; a change of anything is heard at once."""
        due = time.monotonic()
        while True:
            if self._paused or not self._lanes:
                self._wake.clear()
                await self._wake.wait()
                due = time.monotonic()
                continue
            now = time.monotonic()
            if now < due:
                self._wake.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(due - now):
                        await self._wake.wait()
                due = min(due, time.monotonic() + self._seconds)
                continue
            due = max(due + self._seconds, now)
            async with self._busy:
                before = self._weights
                messages = await self._compute(self._tick)
                if self._weights is not before and self._play is not None:
                    await self._tell_weights()
            for message in messages:
                await self.tell(message)

    async def _decisions(self) -> None:
        """Say at once what would be done under new weights; of many, the last ones."""
        while True:
            await self._decide.wait()
            self._decide.clear()
            async with self._busy:
                messages = await self._compute(self._decided)
            for message in messages:
                await self.tell(message)

    async def _in_thread(self, pool: Executor, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do what a message asks for and takes a while; InputError for whatever goes wrong."""
        doing = asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
        try:
            return await doing
        except InputError:
            raise
        except Exception as error:  # of an environment, or of a policy's parts
            _log.exception("a message could not be answered")
            said = f"{type(error).__name__}: {in_one_line(error)}"
            raise InputError(f"that did not work: {said}") from error

    def _close_later(self, lanes: Callable[[], list[Lane]]) -> None:
        """Close lanes where Gymnasium's are played, after what is being done with them there."""
        with suppress(RuntimeError):  # the threads have ended, and so does the program
            self._pools.gymnasium.submit(lambda: _close(lanes()))

    async def _compute(self, work: Callable[[], list[Message]]) -> list[Message]:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, work)
        except InputError as error:
            self._paused = True
            return [{"type": "problem", "message": f"paused: {in_one_line(error)}"}]
        except Exception as error:  # whatever an environment does must not end the page
            _log.exception("an episode failed")
            self._paused = True
            sentence = f"paused: the environment raised {type(error).__name__}"
            return [{"type": "problem", "message": f"{sentence}: {in_one_line(error)}"}]

    def _tick(self) -> list[Message]:
        if self._play is not None:
            moved = self._play.at(self._played)
            if not np.array_equal(moved, self._weights):
                self._weights = moved
            self._played += 1
        messages: list[Message] = []
        for lane, key in zip(self._lanes, self._ids, strict=True):
            if lane.ended:
                self._refresh(lane, key)
            messages += lane.tick(self._weights)
        return messages

    def _refresh(self, lane: Lane, key: str) -> None:
        """Where training goes on, the next episode is played by the policy of now."""
        with suppress(InputError):  # it may just be gone: the one that is open plays on
            opened = self._policies.open(key)
            if opened.policy is not lane.stage.policy and opened.same_form(lane.stage.policy):
                lane.stage.use(opened.policy)

    def _decided(self) -> list[Message]:
        return [message for lane in self._lanes for message in lane.decide(self._weights)]


_LEFT = (WebSocketDisconnect, TimeoutError, RuntimeError, OSError)
"""What it looks like when a browser is gone."""


def _close(lanes: list[Lane]) -> None:
    for lane in lanes:
        try:
            lane.stage.close()
        except Exception:  # whatever an environment does must not end the page
            _log.exception("an environment could not be closed")


def _parse(frame: Any) -> dict[str, Any]:
    """A message as an object."""
    text = frame.get("text")
    if text is None:
        raise InputError("messages must be text, and this one is binary")
    if len(text) > MAX_MESSAGE:
        raise InputError(f"a message may have at most {MAX_MESSAGE:,} characters")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("a message must be JSON") from error
    if not isinstance(message, dict):
        raise InputError(f"a message must be an object, not {shown(message)}")
    return message


def _opened_message(
    opened: list[Opened], lanes: list[Lane], weights: np.ndarray, seconds: float
) -> dict[str, Any]:
    return {
        "type": "opened",
        "lanes": [
            {
                "policy": one.entry.id,
                "name": one.entry.name,
                "agent_label": one.entry.to_json()["agent_label"],
                "objectives": list(one.policy.spec.objectives),
                "actions": one.actions,
                "scene": lane.stage.scenery,
            }
            for one, lane in zip(opened, lanes, strict=True)
        ],
        "weights": plain(weights),
        "seconds_per_step": seconds,
        "unit": unit_of(opened[0].policy.config),
    }
