"""The options of a command, read off its dataclass: names, kinds of values, defaults, help texts.

A command is a frozen dataclass. Its fields are its options; a field that is a dataclass itself is a
group of options. The docstring below a field is its help text, and the first line of a group's
docstring its heading. Where the first word of a help text is a kind of value (`VALUE_WORDS`), it
stands for the value: "Seconds between checkpoints." gives `--checkpoint-seconds SECONDS`. A text
says "Default: ..." itself where the default is None. What may not live here: how options are laid
out (`help`), or how a command line becomes a command (`parsing`).
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from windvane.errors import InputError, shown

VALUE_WORDS = (
    "ADDRESS", "FILE", "FOLDER", "FRAMES", "MAP", "MINUTES", "PIXELS", "POINT", "SECONDS", "STEPS",
    "URL", "WEIGHTS",
)  # fmt: skip
"""First words of help texts that say what kind of value an option takes."""
UNITS = ("FRAMES", "MINUTES", "PIXELS", "SECONDS", "STEPS")
"""Of these, the ones that follow a number."""
_SHORT = re.compile(r"[1-9]e[1-9]")
"""Numbers such as 1e6, which Python does not take for whole ones."""
POSITIONAL = "positional"
"""Marks a field that is given without its name: `folder: Annotated[Path, POSITIONAL]`."""


@dataclass(frozen=True)
class Also:
    """Marks a field that has earlier names, too: `Annotated[Path, Also("--known")]`."""

    flag: str


@dataclass(frozen=True)
class OneOf:
    """Marks a field whose values are the keys of a mapping, named by its import path.

    The mapping holds sentences, or entries of a registry.
    """

    home: str

    @property
    def summaries(self) -> dict[str, str]:
        """A sentence about each, by name."""
        module, _, attribute = self.home.partition(":")
        entries = getattr(import_module(module), attribute)
        return {name: getattr(entry, "summary", entry) for name, entry in entries.items()}


@dataclass(frozen=True)
class Value:
    """What the texts of an option are read as."""

    type: type
    choices: tuple[str, ...] = ()
    many: bool = False
    one_is_alone: bool = False
    """Whether a single value stands for itself, and several for a tuple."""

    @property
    def allowed(self) -> str:
        """As part of a sentence."""
        if self.choices:
            *others, last = self.choices
            return f"{', '.join(others)} or {last}" if others else last
        return {int: "a whole number", float: "a number"}.get(self.type, "a text")

    def read(self, what: str, texts: list[str]) -> Any:
        """The value of an option."""
        values = tuple(self._read_one(what, text) for text in texts)
        return values[0] if not self.many or (self.one_is_alone and len(values) == 1) else values

    def _read_one(self, what: str, text: str) -> Any:
        if not text and (self.many or self.type is Path):
            raise InputError(f"{what} must not be empty")
        if self.choices and text not in self.choices:
            raise InputError(f"{what} must be {self.allowed}, not {shown(text)}")
        try:
            return self.type(text)
        except (ValueError, OverflowError):
            number = _SHORT.fullmatch(text) if self.type is int else None
            hint = f"; write {int(float(text))}" if number else ""
            raise InputError(f"{what} must be {self.allowed}, not {shown(text)}{hint}") from None


@dataclass(frozen=True)
class Option:
    """A field of a command, or of a group within it."""

    path: tuple[str, ...]
    """Names of fields that lead from the command to this one."""
    value: Value
    default: Any
    """`dataclasses.MISSING` where one has to be given."""
    text: str
    group: str
    """The heading that it stands below."""
    positional: bool = False
    aliases: tuple[str, ...] = ()
    summaries: dict[str, str] = field(default_factory=dict, compare=False)
    """Names that it knows, and what they are; others may be allowed as well."""

    @property
    def name(self) -> str:
        """As in Python."""
        return self.path[-1]

    @property
    def flag(self) -> str:
        """As it is typed; of a positional one, what stands for it."""
        if self.positional:
            return self.name.removesuffix("s" if self.value.many else "").upper()
        return "--" + self.name.replace("_", "-")

    @property
    def off(self) -> str | None:
        """What switches it off, if it is a switch."""
        return f"--no-{self.flag.removeprefix('--')}" if self.value.type is bool else None

    @property
    def flags(self) -> tuple[str, ...]:
        """All names that it answers to."""
        if self.positional:
            return ()
        return (self.flag, *((self.off,) if self.off else ()), *self.aliases)

    @property
    def required(self) -> bool:
        """Whether a value has to be given."""
        return self.default is MISSING

    @property
    def word(self) -> str:
        """What stands for a value in help texts."""
        if self.value.type is bool:
            return ""
        if self.positional:
            return self.flag
        first = self.text.split(" ")[0].rstrip(",").upper().removesuffix("S")
        if self.name.endswith("_args"):
            return "NAME=VALUE"
        if self.value.choices:
            return "|".join(self.value.choices)
        for word in VALUE_WORDS:
            if word.removesuffix("S") == first:
                return word
        return {int: "N", float: "NUMBER", Path: "PATH"}.get(self.value.type, "NAME")

    @property
    def shown_default(self) -> str | None:
        """The default in words; None where the text says it, or where there is none."""
        if self.required or self.default is None:
            return None
        if isinstance(self.default, tuple) and self.value.many:
            return " ".join(map(_number, self.default)) or "none"
        shown_value = _number(self.default)
        if self.word in UNITS:
            unit = self.word.lower()
            shown_value += f" {unit.removesuffix('s') if self.default == 1 else unit}"
        return shown_value


def options_of(command: Any) -> tuple[Option, ...]:
    """The options of a command's class, or of an instance that holds its defaults."""
    cls = command if isinstance(command, type) else type(command)
    return tuple(_options(cls, None if cls is command else command, (), "Settings"))


def _options(cls: type, defaults: Any, path: tuple[str, ...], heading: str) -> Iterator[Option]:
    hints, texts = get_type_hints(cls, include_extras=True), field_texts(cls)
    groups = []
    for one in fields(cls):
        hint, marks = _unwrap(hints[one.name])
        default = one.default
        if defaults is not None:
            default = getattr(defaults, one.name)
        elif one.default_factory is not MISSING:
            default = one.default_factory()
        here = (*path, one.name)
        if is_dataclass(hint) and isinstance(hint, type):
            groups.append((hint, default if default is not MISSING else None, here))
            continue
        yield Option(
            here, _value_of(hint), default, texts.get(one.name, ""), heading,
            positional=POSITIONAL in marks,
            aliases=tuple(mark.flag for mark in marks if isinstance(mark, Also)),
            summaries=next((mark.summaries for mark in marks if isinstance(mark, OneOf)), {}),
        )  # fmt: skip
    for group, values, here in groups:
        yield from _options(group, values, here, first_line(group))


def build(cls: type, values: dict[tuple[str, ...], Any], path: tuple[str, ...] = ()) -> Any:
    """A command from the values of its options by path."""
    hints = get_type_hints(cls)
    found = {}
    for one in fields(cls):
        here = (*path, one.name)
        nested = here not in values and is_dataclass(hints[one.name])
        found[one.name] = build(hints[one.name], values, here) if nested else values[here]
    return cls(**found)


def first_line(cls: type) -> str:
    """The first line of a class's docstring, without its full stop."""
    return (cls.__doc__ or "").split("\n")[0].removesuffix(".")


def field_texts(cls: type) -> dict[str, str]:
    """The docstrings below the fields of a dataclass and of those it derives from, each in one
    line.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        body = _classes(base.__module__).get(base.__name__, []) if is_dataclass(base) else []
        for one, text in pairwise(body):
            if isinstance(one, ast.AnnAssign) and isinstance(text, ast.Expr):
                name, docstring = ast.unparse(one.target), ast.literal_eval(text.value)
                found[name] = " ".join(docstring.split())
    return found


@cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


def _unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without what it is annotated with, and that."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        return inner, tuple(marks)
    return hint, ()


def _value_of(hint: Any) -> Value:
    """How values of a type are read from texts."""
    hint, _ = _unwrap(hint)
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        several = next((member for member in members if get_origin(member) is tuple), None)
        if several is not None and len(members) > 1:
            return Value(_value_of(get_args(several)[0]).type, many=True, one_is_alone=True)
        return _value_of(members[0])
    if get_origin(hint) is tuple:
        item = _value_of(get_args(hint)[0])
        return Value(item.type, item.choices, many=True)
    if get_origin(hint) is Literal:
        return Value(str, get_args(hint))
    if hint not in (bool, int, float, str, Path):
        raise TypeError(f"an option cannot be of type {hint}")
    return Value(hint)


def _number(value: Any) -> str:
    """A default as it may be typed."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and abs(value) >= 10_000:
        return f"{value:_}"
    return f"{value:g}" if isinstance(value, float) else str(value)
