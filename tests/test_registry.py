"""Registries: arguments as plain values, names, and what may be imported."""

import json
import math
from typing import Any

import numpy as np
import pytest

from windvane.agents import AGENTS
from windvane.agents.conditioned import ConditionedNetwork
from windvane.envs import ENVS
from windvane.envs.resolve import resolve_env
from windvane.errors import InputError
from windvane.registry import (
    MAX_ARGUMENTS_LENGTH,
    MAX_DEPTH,
    Arguments,
    Entry,
    Registry,
    call,
    is_import_path,
    load,
)
from windvane.replay import REPLAYS
from windvane.schedules import SCHEDULES

# --- arguments


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_arguments_are_a_mapping_of_plain_values() -> None:
    arguments = Arguments({"b": np.float32(0.5), "a": np.arange(3), "c": (1, None, True, "x")})
    assert dict(arguments) == {"a": [0, 1, 2], "b": 0.5, "c": [1, None, True, "x"]}
    assert len(arguments) == 3
    assert arguments.to_json() == json.loads(json.dumps(dict(arguments)))
    assert not Arguments()
    assert Arguments({}) == Arguments(()) == Arguments([])


def test_arguments_never_change() -> None:
    given = {"map": [[1, 2], [3, 4]]}
    arguments = Arguments(given)
    number = hash(arguments)
    given["map"][0][0] = 9
    arguments["map"][0][0] = 9
    arguments.to_json()["map"][0][0] = 9
    dict(arguments)["map"].append(9)
    assert arguments["map"] == [[1, 2], [3, 4]]
    assert hash(arguments) == number
    with pytest.raises(TypeError):
        arguments["map"] = 3  # type: ignore[index]


def test_equal_arguments_have_equal_hashes() -> None:
    one, other = Arguments({"a": 1, "b": [2.5]}), Arguments({"b": [2.5], "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert {one: "found"}[other] == "found"
    assert one != Arguments({"a": 1, "b": [2.25]})
    assert one != {"a": 1, "b": [2.5]}


def test_arguments_as_texts() -> None:
    texts = ("every=5", "scale=0.5", "name=partial", "rows=[[1,0]]", "on=true", "none=null")
    texts = (*texts, 'quoted="5"', "empty=", "sum=a=b")
    arguments = Arguments(texts)
    assert dict(arguments) == {
        "every": 5, "scale": 0.5, "name": "partial", "rows": [[1, 0]], "on": True, "none": None,
        "quoted": "5", "empty": "", "sum": "a=b",
    }  # fmt: skip
    assert Arguments(arguments.to_texts()) == arguments
    assert Arguments(Arguments(texts)) == arguments


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (3, "must be names with values, such as time_limit=50, not 3"),
        ("every=5", "must be names with values"),
        (None, "must be names with values"),
        ({1: 2}, "must be names with values"),
        (("every",), "must be of the form name=value, not 'every'"),
        (("1st=3",), "must be of the form name=value"),
        (("=3",), "must be of the form name=value"),
        ((3,), "must be of the form name=value, not 3"),
        ({"a": math.nan}, "must be plain JSON values"),
        ({"a": math.inf}, "must be plain JSON values"),
        ({"a": [np.float32("nan")]}, "must be plain JSON values"),
        (("a=NaN",), "must be plain JSON values"),
        (("a=Infinity",), "must be plain JSON values"),
        ({"a": object()}, "object is not a plain value"),
        ({"a": {2: 3, "b": 1}}, "must be plain JSON values"),
        ({"a": nested(MAX_DEPTH)}, "nested too deeply: at most 16 levels"),
        ({"a": nested(100_000)}, "nested too deeply"),
        ({"a": "x" * MAX_ARGUMENTS_LENGTH}, "too long: at most 1,000,000 characters"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_sentence(values: Any, message: str) -> None:
    with pytest.raises(InputError) as complaint:
        Arguments(values, "agent_args")
    assert message in str(complaint.value)
    assert str(complaint.value).startswith("agent_args ")
    assert "\n" not in str(complaint.value)


def test_as_many_levels_as_are_allowed() -> None:
    assert Arguments({"a": nested(MAX_DEPTH - 1)})["a"] == nested(MAX_DEPTH - 1)


# --- registries


def make(size: Any, colour: Any = "red", **rest: Any) -> tuple[Any, ...]:
    return size, colour, rest


def strict(size: Any, *, colour: Any = "red") -> tuple[Any, ...]:
    return size, colour


def nothing() -> str:
    return "nothing"


HOME = __name__
PARTS = Registry("part", {
    "strict": Entry("Strict", f"{HOME}:strict"),
    "blue": Entry("Blue", f"{HOME}:strict", args={"colour": "blue"}),
    "loose": Entry("Loose", f"{HOME}:make"),
    "bare": Entry("Bare", f"{HOME}:nothing"),
})  # fmt: skip


def test_parts_by_name() -> None:
    assert PARTS.make("strict", {}, 3) == (3, "red")
    assert PARTS.make("blue", {}, 3) == (3, "blue")
    assert PARTS.make("blue", {"colour": "green"}, 3) == (3, "green")
    assert PARTS.make("loose", Arguments({"shape": [1]}), 3) == (3, "red", {"shape": [1]})
    assert list(PARTS) == ["strict", "blue", "loose", "bare"]


@pytest.mark.parametrize(
    ("name", "args", "given", "message"),
    [
        ("strict", {"color": 1}, (3,), "part strict has no argument 'color'; it takes: colour"),
        ("strict", {"size": 1}, (3,), "part strict has no argument 'size'; it takes: colour"),
        ("bare", {"size": 1}, (), "part bare has no argument 'size'; it takes none"),
        ("strict", {}, (), "part strict cannot be built: missing a required argument: 'size'"),
    ],
)
def test_arguments_that_a_part_does_not_take(
    name: str, args: Any, given: Any, message: str
) -> None:
    with pytest.raises(InputError) as complaint:
        PARTS.make(name, args, *given)
    assert str(complaint.value) == message


@pytest.mark.parametrize("registry", [AGENTS, ENVS, REPLAYS, SCHEDULES])
@pytest.mark.parametrize(
    "name", ["", "nothing", "x" * 1000, None, 3, "a b:c", "a.b:", ":c", "../a:b"]
)
def test_unknown_names(registry: Registry, name: Any) -> None:
    with pytest.raises(InputError) as complaint:
        registry.check(name)
    assert f"unknown {registry.kind}" in str(complaint.value)
    assert ", ".join(registry) in str(complaint.value)
    assert len(str(complaint.value)) < 400


@pytest.mark.parametrize("registry", [AGENTS, ENVS, REPLAYS, SCHEDULES])
def test_every_entry_can_be_imported(registry: Registry) -> None:
    for name, entry in registry.items():
        assert callable(entry.factory())
        assert registry.check(name) == name
        assert registry.title(name) == entry.title
        assert entry.summary.endswith(".")


def test_titles_of_other_parts() -> None:
    assert PARTS.title("my.module:factory") == "factory"
    assert PARTS.title("custom:Sea") == "Sea"


# --- import paths


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("a:b", True), ("a.b.c:d.e", True), ("_a:_b1", True), ("a", False), ("a:b:c", False),
        ("a:", False), (".a:b", False), ("a..b:c", False), ("1a:b", False), ("a:b()", False),
        ("a:b\n", False), ("os:system('x')", False),
    ],
)  # fmt: skip
def test_what_an_import_path_looks_like(name: str, good: bool) -> None:
    assert is_import_path(name) is good


def test_import_paths_need_trust() -> None:
    name = f"{HOME}:strict"
    assert PARTS.make(name, {"colour": "blue"}, 3, trusted=True) == (3, "blue")
    with pytest.raises(InputError, match="would be imported, which runs its code") as complaint:
        PARTS.make(name, {}, 3)
    assert f"--part {name}" in str(complaint.value)
    with pytest.raises(InputError, match="would be imported, which runs its code"):
        resolve_env("sys:exit", {}, "auto")


def test_nothing_is_imported_without_trust() -> None:
    import sys

    sys.modules.pop("this", None)
    for registry in (AGENTS, ENVS, REPLAYS, SCHEDULES):
        assert registry.check("this:d") == "this:d"
    with pytest.raises(InputError):
        AGENTS.make("this:d", {})
    with pytest.raises(InputError):
        resolve_env("this:d", {}, "auto")
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_module_anywhere:a", "cannot import 'no_such_module_anywhere:a': No module named"),
        ("json:no_such_name", "cannot import 'json:no_such_name'"),
        ("json", "'json' is not an import path"),
    ],
)
def test_what_cannot_be_imported(path: str, message: str) -> None:
    with pytest.raises(InputError) as complaint:
        load(path)
    assert message in str(complaint.value)


def test_what_cannot_be_called() -> None:
    with pytest.raises(InputError, match="must be something to call, not 3"):
        call("the part", 3, (), {})


def test_objects_made_in_python_cannot_be_rebuilt() -> None:
    assert AGENTS.check("custom:Mine") == "custom:Mine"
    with pytest.raises(InputError, match="the agent Mine was an object made in Python") as said:
        AGENTS.make("custom:Mine", {}, trusted=True)
    assert "give it again, as agent=..." in str(said.value)
    assert AGENTS.make("cn", {}) == ConditionedNetwork()
