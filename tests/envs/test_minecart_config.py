"""Instances of Minecart from outside: what is refused, and in one sentence."""

import json
import math
from pathlib import Path
from typing import Any

import jax
import jaxtyping
import numpy as np
import pytest

from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER, Mine, MinecartConfig
from windvane.errors import InputError

MINE = {"x": 0.5, "y": 0.5, "distributions": [[0.1, 0.1]]}


@pytest.fixture(autouse=True)
def as_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own check of types would speak before ours."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def deep(levels: int) -> Any:
    value: Any = 0.5
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "capacity",
    [math.inf, -math.inf, math.nan, 0, 0.0, -1, 1e-46, 1e39, 10**400, True, "1.5", None, 1.5 + 0j],
)
def test_capacities_that_cannot_be_meant(capacity: Any) -> None:
    with pytest.raises(InputError, match="the cart's capacity must be") as caught:
        MinecartConfig(PAPER.mines, capacity)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"capacity": 1e-46}, "capacity must be from 1e-30"),
        ({"capacity": deep(10_000)}, "capacity must be a number above 0"),
        ({"mines": 3}, "a list of"),
        ({"mines": []}, "at least one mine"),
        ({"mines": [MINE] * 257}, "at most 256 mines, not 257"),
        ({"mines": [MINE | {"x": 1e300}]}, "outside the map"),
        ({"mines": [MINE | {"y": deep(10_000)}]}, "outside the map"),
        ({"mines": [MINE | {"distributions": deep(10_000)}]}, "pairs"),
        ({"mines": [MINE | {"distributions": {"a": 1}}]}, "pairs"),
        ({"mines": [MINE | {"distributions": [[1e300, 0]]}]}, "ore mean of 1e"),
        ({"mines": [MINE | {"distributions": [[0.1, 1e300]]}]}, "standard deviation of 1e"),
        ({"mines": [MINE | {"distributions": [[0.1, 0.1]] * 64}]}, "64 ores, and at most 63"),
        ({"mines": [deep(10_000)]}, "must be an object"),
        ({"ore_colors": deep(10_000)}, "ore colours"),
        ({"ore_colors": [[1, 2, 1e400]]}, "ore colours"),
    ],
)
def test_absurd_instances(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        MinecartConfig.from_dict({"mines": [MINE]} | change)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b"[1, 2]", "must be an object"),
        (b"7", "must be an object"),
        (b"null", "must be an object"),
        (b"\xff\xfe\x00", "not text"),
        (b"{", "not valid JSON"),
        (b" " * (2**24 + 1), "larger than 16,777,216 bytes"),
        (b'{"mines": [{"x": NaN, "y": 0.5, "distributions": [[0.1, 0.1]]}]}', "outside the map"),
        (b'{"mines": [{"x": 0.5, "y": 0.5, "distributions": [[Infinity, 0.1]]}]}', "ore mean"),
    ],
)
def test_files_that_hold_no_instance(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "instance.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        MinecartConfig.from_json(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_names_of_files(name: str) -> None:
    with pytest.raises(InputError):
        MinecartConfig.from_json(name)
    with pytest.raises(InputError):
        PAPER.to_json(name)


def test_a_written_instance_is_read_back(tmp_path: Path) -> None:
    PAPER.to_json(tmp_path / "paper.json")
    assert MinecartConfig.from_json(tmp_path / "paper.json").mines == PAPER.mines
    assert json.loads((tmp_path / "paper.json").read_text())["mine_cnt"] == 5


def test_numbers_of_mines_ores_and_frames() -> None:
    key = jax.random.key(0)
    for refuses in (
        lambda: MinecartConfig.random(key, num_mines=257),
        lambda: MinecartConfig.random(key, num_ores=64),
        lambda: Minecart(frame_skip=65),
        lambda: Minecart(frame_skip=10**30),
        lambda: Minecart(np.zeros(3)),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError):
            refuses()
    many = MinecartConfig((Mine(0.5, 0.5, ((0.1, 0.0),) * 63),))
    assert Minecart(many).spec.num_objectives == 64
