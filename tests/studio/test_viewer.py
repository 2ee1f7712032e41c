"""A browser's connection: episodes that follow the weights, and messages that cannot be meant."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.studio.conftest import client_of, connected, opened, until
from windvane.policy import Policy
from windvane.studio.lane import Lane
from windvane.studio.opened import Opened
from windvane.studio.stage import Decision, Moment, Stage
from windvane.studio.viewer import MAX_MESSAGE, TokenBucket

MINECART, ONE_WEIGHT, SEA = "1-minecart-pqn", "2-minecart-one-weight", "3-dst-pqn"


@pytest.fixture(scope="module")
def page() -> Iterator[TestClient]:
    """The page with the package's own policies."""
    with client_of(None) as client:
        yield client


@pytest.fixture
def socket(page: TestClient) -> Iterator[Any]:
    with connected(page) as socket:
        yield socket


def test_the_cart_comes_home_empty_for_fuel_and_full_for_ore(socket: Any) -> None:
    said = opened(socket, MINECART, weights=[0, 0, 1])
    assert said["weights"] == [0, 0, 1]
    (lane,) = said["lanes"]
    assert lane["scene"]["kind"] == "minecart"
    assert len(lane["scene"]["mines"]) == 5
    assert lane["actions"][0] == "mine"
    socket.send_json({"type": "pace", "steps_per_second": 60})
    spared = until(socket, "episode")
    # The cheapest is to leave the base and to come back at once, which ends the episode.
    assert spared["returns"][:2] == [0, 0]
    socket.send_json({"type": "weights", "values": [0.9, 0.1, 0]})
    loaded = until(socket, "episode", weights=[0.9, 0.1, 0])
    assert loaded["returns"][0] > 0.5
    assert loaded["returns"][2] < spared["returns"][2]


def test_a_decision_comes_at_once(socket: Any) -> None:
    opened(socket, MINECART, weights=[0, 0, 1])
    socket.send_json({"type": "pace", "steps_per_second": 0.2})
    first = until(socket, "step", step=0)
    assert first["action"] is None
    socket.send_json({"type": "weights", "values": [1, 0, 0]})
    decision = until(socket, "decision")
    assert decision["weights"] == [1, 0, 0]
    q = np.asarray(decision["q"])
    assert q.shape == (6, 3)
    assert decision["action"] == int(np.argmax(q[:, 0]))


def test_the_sea_step_by_step(socket: Any) -> None:
    said = opened(socket, SEA, weights=[1, 0])
    assert said["lanes"][0]["scene"]["map"][2][0] == 18
    socket.send_json({"type": "pace", "steps_per_second": 60})
    cells = []
    while True:
        message = socket.receive_json()
        if message["type"] == "step":
            cells.append(tuple(message["cell"]))
        if message["type"] == "episode":
            break
    assert cells[0] == (0, 0)
    moves = [abs(a - c) + abs(b - d) for (a, b), (c, d) in itertools.pairwise(cells)]
    assert set(moves) == {1}
    assert message["terminated"]
    assert message["steps"] == len(moves)
    # All weight on the treasure: the best known policy takes the richest one that its discount
    # allows, and its regret is next to nothing.
    assert message["regret"] == pytest.approx(0, abs=0.02)
    assert message["utility"] == pytest.approx(message["returns"][0], rel=1e-4)


def test_two_lanes_have_the_same_weights_and_episodes(socket: Any) -> None:
    said = opened(socket, MINECART, MINECART, weights=[0.5, 0.3, 0.2], seed=7)
    assert [lane["policy"] for lane in said["lanes"]] == [MINECART, MINECART]
    socket.send_json({"type": "pace", "steps_per_second": 60})
    steps: dict[int, list[Any]] = {0: [], 1: []}
    while len(steps[1]) < 30:
        message = until(socket, "step")
        steps[message["lane"]].append((message["poses"], message["content"], message["action"]))
    assert steps[0][:30] == steps[1][:30]


def test_weights_that_moved_have_no_regret(socket: Any) -> None:
    opened(socket, SEA, weights=[0, 1])
    socket.send_json({"type": "pace", "steps_per_second": 20})
    until(socket, "step", step=1)
    socket.send_json({"type": "weights", "values": [1, 0]})
    episode = until(socket, "episode")
    assert episode["weights"] is None
    assert episode["utility"] is None
    assert episode["regret"] is None
    assert until(socket, "episode")["weights"] == [1, 0]


def test_pause_restart_and_pace(socket: Any) -> None:
    opened(socket, SEA)
    until(socket, "step", step=1)
    socket.send_json({"type": "pause", "on": True})
    socket.send_json({"type": "weights", "values": [0.2, 0.8]})
    until(socket, "decision")
    socket.send_json({"type": "restart"})
    socket.send_json({"type": "pause", "on": False})
    assert until(socket, "step", step=0)["episode"] == 1


@pytest.mark.parametrize("kind", ["sparse", "regular"])
def test_markets_move_the_weights(socket: Any, kind: str) -> None:
    opened(socket, MINECART)
    socket.send_json({"type": "pace", "steps_per_second": 60})
    socket.send_json({"type": "market", "kind": kind})
    first = until(socket, "weights")
    assert first["playing"] == kind
    moved = until(socket, "weights")["values"]
    assert sum(moved) == pytest.approx(1, abs=1e-5)
    assert until(socket, "step", weights=moved)
    # Whoever takes hold of the point stops the market.
    socket.send_json({"type": "weights", "values": [1, 0, 0]})
    assert until(socket, "weights", playing=None)


def test_a_recorded_sequence_is_replayed(socket: Any) -> None:
    opened(socket, SEA, weights=[1, 0])
    socket.send_json({"type": "pace", "steps_per_second": 60})
    rows = [[0, 1, 0], [5, 0.25, 0.75], [8, 0, 1]]
    socket.send_json({"type": "sequence", "rows": rows})
    until(socket, "weights", playing="sequence")
    seen = []
    while len(seen) < 40:
        weights = until(socket, "step")["weights"]
        if not seen or seen[-1] != weights:
            seen.append(weights)
        if weights == [0, 1]:
            break
    assert seen == [[1, 0], [0.25, 0.75], [0, 1]]


BAD = [
    "", "{", "[]", "null", "1", '"open"', "{}", '{"type": 3}', '{"type": "fly"}',
    '{"type": "open"}', '{"type": "open", "policies": []}', '{"type": "open", "policies": ["no"]}',
    '{"type": "open", "policies": [1, 2, 3]}', '{"type": "open", "policies": [["x"]]}',
    f'{{"type": "open", "policies": ["{SEA}", "{MINECART}"]}}',
    f'{{"type": "open", "policies": ["{SEA}"], "seed": -1}}',
    f'{{"type": "open", "policies": ["{SEA}"], "weights": [2, -1]}}',
    '{"type": "weights"}', '{"type": "weights", "values": [1]}',
    '{"type": "weights", "values": [0.5, 0.6]}', '{"type": "weights", "values": [NaN, 1]}',
    '{"type": "weights", "values": [1e999, 0]}', '{"type": "weights", "values": {"a": 1}}',
    '{"type": "pace", "steps_per_second": 0}', '{"type": "pace", "steps_per_second": 1e9}',
    '{"type": "pace", "steps_per_second": null}', '{"type": "pace", "steps_per_second": "8"}',
    '{"type": "pause", "on": 1}', '{"type": "market", "kind": "free"}',
    '{"type": "market", "kind": null}', '{"type": "sequence", "rows": []}',
    '{"type": "sequence", "rows": [[0, 2, 2]]}', '{"type": "sequence", "rows": [[-1, 0, 1]]}',
    '{"type": "sequence", "rows": [[3, 0, 1], [1, 0, 1]]}', "[" * 5_000, "\x00", "\ud800" * 3,
]  # fmt: skip


@pytest.mark.parametrize("text", [text for text in BAD if text.isprintable()][:-1])
def test_a_bad_message_is_answered_with_a_sentence(socket: Any, text: str) -> None:
    opened(socket, SEA)
    socket.send_text(text)
    sentence = until(socket, "problem")["message"]
    assert sentence
    assert "Traceback" not in sentence
    assert until(socket, "step")  # and the episode goes on


def test_a_thousand_bad_messages_and_the_page_lives(page: TestClient) -> None:
    rng = np.random.default_rng(0)
    texts = [text for text in BAD if "\ud800" not in text]
    with connected(page) as socket:
        opened(socket, SEA)
        for number in range(1_000):
            text = texts[number % len(texts)]
            if number % 3 == 0 and text:
                cut = list(text)
                cut[rng.integers(len(cut))] = chr(int(rng.integers(32, 127)))
                text = "".join(cut)
            if number % 10 == 0:
                socket.send_bytes(bytes(rng.integers(0, 256, 20, np.uint8)))
            else:
                socket.send_text(text)
        socket.send_json({"type": "weights", "values": [0.125, 0.875]})
        _settled(socket)
    with connected(page) as another:
        opened(another, SEA)
        assert until(another, "step")


def _settled(socket: Any) -> None:
    """Read until the weights of the last, good message hold."""
    began = time.monotonic()
    while time.monotonic() - began < 60:
        message = socket.receive_json()
        if message["type"] == "step" and message["weights"] == [0.125, 0.875]:
            return
    raise AssertionError("the last message was never answered")


def test_a_message_that_is_too_long_is_refused(socket: Any) -> None:
    opened(socket, SEA)
    socket.send_text(json.dumps({"type": "weights", "values": [0] * MAX_MESSAGE}))
    assert "at most" in until(socket, "problem")["message"]


def test_a_viewer_that_vanishes_leaves_nothing_behind(page: TestClient) -> None:
    for _ in range(3):
        with connected(page) as socket:
            opened(socket, SEA)
            until(socket, "step")
    assert not page.app.studio.viewers


def test_what_cannot_be_opened_leaves_the_old_one_open(socket: Any, trained: Path) -> None:
    del trained
    opened(socket, SEA)
    socket.send_json({"type": "open", "policies": ["gone"]})
    assert "no such policy" in until(socket, "problem")["message"]
    assert until(socket, "step")["cell"]


class Shaky(Stage):
    """A stage that only notes which thread closed it; its resets raise, if it is told what."""

    def __init__(self, policy: Policy, raising: str = ""):
        self.policy, self.raising, self.closed_by = policy, raising, ""
        self.scenery, self.seconds_per_step = {"kind": "picture"}, 1.0

    def reset(self, seed: int, episode: int) -> Moment:
        if self.raising:
            raise ValueError(self.raising)
        return Moment({})

    def decide(self, weights: np.ndarray) -> Decision:
        return Decision(0, np.zeros((1, 1)))

    def step(self, weights: np.ndarray) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        self.closed_by = threading.current_thread().name
        raise OSError("closed already")


def test_what_an_environment_raises_while_opening_is_said(
    page: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Shaky] = []

    def stage(one: Opened) -> Any:
        if made:
            raise RuntimeError("no display")
        made.append(Shaky(one.policy))
        return made[0]

    with connected(page) as socket:
        opened(socket, SEA)
        with monkeypatch.context() as patch:
            patch.setattr(Opened, "stage", stage)
            socket.send_json({"type": "open", "policies": [SEA, SEA]})
            assert "RuntimeError: no display" in until(socket, "problem")["message"]
        assert made[0].closed_by  # the first lane is not left behind
        socket.send_json({"type": "restart"})
        until(socket, "step", step=0)  # the old one plays on


def test_stages_are_closed_in_the_thread_of_gymnasium(
    page: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Shaky] = []

    def stage(one: Opened) -> Any:
        made.append(Shaky(one.policy))
        return made[-1]

    monkeypatch.setattr(Opened, "stage", stage)
    with connected(page) as socket:
        for _ in range(2):
            opened(socket, SEA)
    done = page.app.studio.pools.gymnasium.submit(lambda: None)  # type: ignore[attr-defined]
    done.result(20)
    assert len(made) == 2
    assert all(one.closed_by.startswith("windvane-gymnasium") for one in made)


def test_an_episode_that_could_not_begin_is_begun_again(page: TestClient) -> None:
    policy = page.app.studio.policies.open(SEA).policy  # type: ignore[attr-defined]
    stage = Shaky(policy, "broken")
    lane = Lane(0, stage, 0, lambda weights: None)
    with pytest.raises(ValueError, match="broken"):
        lane.tick(np.asarray([1.0, 0.0]))
    assert lane.decide(np.asarray([1.0, 0.0])) == []
    stage.raising = ""
    (message,) = lane.tick(np.asarray([1.0, 0.0]))
    assert isinstance(message, dict)
    assert message["action"] is None


def test_rates_are_limited_by_waiting() -> None:
    now = [0.0]
    bucket = TokenBucket(10.0, 5.0, lambda: now[0])
    assert [bucket.wait() for _ in range(5)] == [0] * 5
    assert bucket.wait() == pytest.approx(0.1)
    assert bucket.wait() == pytest.approx(0.2)
    now[0] = 100.0
    assert bucket.wait() == 0
