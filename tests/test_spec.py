"""Specs: what is accepted, what is refused and in which words, and the way through JSON."""

import json
import math
from typing import Any

import pytest

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.spec import EnvSpec, FrameSpec

VECTOR = FrameSpec((2,), "float32", (0.0, -math.inf), (1.0, math.inf))
SPEC = EnvSpec(4, ("speed", "cost"), VECTOR)


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        EnvSpec(1, ("one",), FrameSpec((48, 48, 3), "uint8"), 2),
        EnvSpec(32_767, ("one",), FrameSpec((3,), "int64", categories=(2, 5, 16)), 4),
        Minecart().spec,
        DeepSeaTreasure(observation="pixels").spec,
    ],
)
def test_through_json_and_back(spec: EnvSpec) -> None:
    text = json.dumps(spec.to_json(), allow_nan=False)
    assert EnvSpec.from_json(json.loads(text), "the file") == spec
    assert hash(EnvSpec.from_json(json.loads(text), "the file")) == hash(spec)


def test_the_shape_of_an_observation() -> None:
    assert SPEC.observation_shape == (2,)
    assert SPEC.num_objectives == 2
    assert not SPEC.frame.is_image
    pixels = Minecart(observation="pixels").spec
    assert pixels.frame.is_image
    assert pixels.observation_shape == (2, 48, 48, 3)
    assert pixels.stack == 2


def test_features_of_the_paper_s_problems() -> None:
    assert Minecart().spec.frame.shape == (7,)
    assert Minecart().spec.frame.dtype == "float32"
    sea = DeepSeaTreasure().spec
    assert sea.frame == FrameSpec((2,), "int32", (0.0, 0.0), (11.0, 11.0))
    assert sea.objectives == ("treasure", "time")
    assert sea.num_actions == 4


FRAME = VECTOR  # `frame` of a spec that is wrong elsewhere


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: EnvSpec(0, ("a",), FRAME), "number of actions .* from 1 to 32767, not 0"),
        (lambda: EnvSpec(32_768, ("a",), FRAME), "from 1 to 32767, not 32768"),
        (lambda: EnvSpec(True, ("a",), FRAME), "not True"),
        (lambda: EnvSpec(2, (), FRAME), "1 to 64 objectives, not 0"),
        (lambda: EnvSpec(2, tuple(map(str, range(65))), FRAME), "1 to 64 objectives, not 65"),
        (lambda: EnvSpec(2, ("a", "a"), FRAME), "must differ, and 'a' is there twice"),
        (lambda: EnvSpec(2, ("",), FRAME), "1 to 100 printable characters, not ''"),
        (lambda: EnvSpec(2, ("a\nb",), FRAME), "printable"),
        (lambda: EnvSpec(2, ("x" * 101,), FRAME), "printable"),
        (lambda: EnvSpec(2, ("a",), FRAME, 0), "frames per observation .* not 0"),
        (lambda: EnvSpec(2, ("a",), FRAME, 65), "from 1 to 64, not 65"),
        (lambda: FrameSpec((), "float32"), "the shape of a frame"),
        (lambda: FrameSpec((2, 3), "float32"), r"not \(2, 3\)"),
        (lambda: FrameSpec((0,), "float32"), "not 0"),
        (lambda: FrameSpec((2**25,), "float32"), "from 1 to 16777216"),
        (lambda: FrameSpec((4096, 4096, 3), "uint8"), "at most 16,777,216 numbers"),
        (lambda: FrameSpec((8, 8, 3), "float32"), "an image must be uint8"),
        (lambda: FrameSpec((8, 8, 3), "uint8", (0.0,), (1.0,)), "an image has neither"),
        (lambda: FrameSpec((1,), "complex64", (0.0,), (1.0,)), "not 'complex64'"),
        (lambda: FrameSpec((1,), "object", (0.0,), (1.0,)), "not 'object'"),
        (lambda: FrameSpec((1,), "nonsense", (0.0,), (1.0,)), "not 'nonsense'"),
        (lambda: FrameSpec((2,), "float32", (0.0,), (1.0, 1.0)), "as many low bounds, not 1"),
        (lambda: FrameSpec((1,), "float32"), "as many low bounds, not 0"),
        (lambda: FrameSpec((1,), "float32", (2.0,), (1.0,)), "they are 2 and 1"),
        (lambda: FrameSpec((1,), "float32", (math.nan,), (1.0,)), "must be a number, not nan"),
        (lambda: FrameSpec((1,), "float32", (math.inf,), (math.inf,)), "they are inf and inf"),
        (lambda: FrameSpec((1,), "float32", categories=(3,)), "must be a whole number's"),
        (lambda: FrameSpec((2,), "int32", categories=(3,)), "as many numbers of categories"),
        (lambda: FrameSpec((1,), "int32", categories=(0,)), "not 0"),
        (lambda: FrameSpec((1,), "int32", (0.0,), (1.0,), (3,)), "categories has no bounds"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "change",
    [
        {"num_actions": "4"},
        {"num_actions": 1e300},
        {"num_actions": None},
        {"num_actions": deep(10_000)},
        {"objectives": "speed"},
        {"objectives": [1, 2]},
        {"objectives": [deep(10_000)]},
        {"objectives": {"a": 1}},
        {"frame": None},
        {"frame": []},
        {"frame": {"shape": [2], "dtype": "float32", "low": [0, 0], "high": [1, 10**400]}},
        {"frame": {"shape": [2], "dtype": "float32", "low": 0, "high": 1}},
        {"frame": {"shape": [2], "dtype": 3, "low": [0, 0], "high": [1, 1]}},
        {"frame": {"shape": [2], "low": [0, 0], "high": [1, 1]}},
        {"frame": {"shape": [2], "dtype": "float32", "low": ["a", 0], "high": [1, 1]}},
        {"frame": {"shape": [2], "dtype": "float32", "low": [True, 0], "high": [1, 1]}},
        {"frame": {"shape": [2.5], "dtype": "float32"}},
        {"stack": [1]},
        {"more": 1},
    ],
)
def test_malformed_json_is_one_sentence_that_names_its_source(change: dict[str, Any]) -> None:
    values = SPEC.to_json() | change
    with pytest.raises(
        InputError, match=r"^policy\.json does not describe an environment"
    ) as caught:
        EnvSpec.from_json(values, "policy.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("values", [None, 3, "spec", [], [1], deep(10_000), {}])
def test_json_of_another_type(values: Any) -> None:
    with pytest.raises(InputError, match=r"^policy\.json does not describe an environment"):
        EnvSpec.from_json(values, "policy.json")
