"""Registries: the names under which parts of a run are known, and how a part is built from a name.

A part is an environment, an agent, a replay rule or a schedule. A name is one of a registry, or the
import path of somebody else's factory (`my_package.module:make_agent`). What may not live here:
anything about a particular kind of part.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from windvane.errors import InputError, in_one_line, shown

MAX_ARGUMENTS_LENGTH = 1_000_000
"""Characters of JSON that the arguments of one part may take."""
MAX_DEPTH = 16
"""Levels of lists and objects within each other."""

_IDENTIFIER = r"[A-Za-z_]\w*"
_IMPORT_PATH = re.compile(
    rf"(?P<module>{_IDENTIFIER}(\.{_IDENTIFIER})*):(?P<attribute>{_IDENTIFIER}(\.{_IDENTIFIER})*)"
)
CUSTOM = "custom:"
"""Prefix of the name of a part that is an object made in Python, which no command can rebuild."""


class Arguments(Mapping[str, Any]):
    """Arguments of a part as plain JSON values: immutable, comparable and hashable."""

    def __init__(self, values: Any = (), what: str = "the arguments"):
        """From a mapping, or from texts such as `time_limit=50` whose values are read as JSON."""
        if isinstance(values, list | tuple):
            values = dict(_parse_argument(text, what) for text in values)
        if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
            raise InputError(
                f"{what} must be names with values, such as time_limit=50, not {shown(values)}"
            )
        _check_depth(values, what)
        try:
            self._text = json.dumps(dict(values), sort_keys=True, default=_plain, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"{what} must be plain JSON values: {in_one_line(error)}") from error
        if len(self._text) > MAX_ARGUMENTS_LENGTH:
            raise InputError(f"{what} are too long: at most {MAX_ARGUMENTS_LENGTH:,} characters")
        self._values: dict[str, Any] = json.loads(self._text)

    def __getitem__(self, name: str) -> Any:
        return json.loads(json.dumps(self._values[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arguments) and self._text == other._text

    def __repr__(self) -> str:
        return repr(self._values)

    def to_json(self) -> dict[str, Any]:
        """A copy in plain values."""
        return json.loads(self._text)

    def to_texts(self) -> tuple[str, ...]:
        """As on a command line."""
        return tuple(f"{name}={json.dumps(value)}" for name, value in self._values.items())


@dataclass(frozen=True)
class Entry:
    """A part that can be built by name."""

    title: str
    """What tables and figures call it."""
    home: str
    """Import path of the factory; it is imported when it is first needed."""
    summary: str = ""
    """One sentence, for help texts and docs."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that make this entry what it is; the user's come on top."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Facts that belong to the entry, such as the paper's preset for an environment."""

    def factory(self) -> Callable[..., Any]:
        """Import the factory."""
        return load(self.home)


class Registry(Mapping[str, Entry]):
    """Parts of one kind by name. Adding one is a line in the dictionary it is made from."""

    def __init__(self, kind: str, entries: Mapping[str, Entry]):
        """`kind` is what messages call a part, such as "agent"."""
        self.kind, self._entries = kind, dict(entries)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def check(self, name: Any) -> str:
        """Return `name` if it can be meant: an entry, an import path or a custom object's name."""
        if (
            isinstance(name, str)
            and len(name) <= 200
            and (name in self._entries or is_import_path(name) or name.startswith(CUSTOM))
        ):
            return name
        raise InputError(
            f"unknown {self.kind} {shown(name)}; choose one of: {', '.join(self)}, "
            "or an import path such as my_package.module:factory"
        )

    def title(self, name: str) -> str:
        """What tables and figures call a part."""
        if name in self._entries:
            return self._entries[name].title
        return name.removeprefix(CUSTOM).rpartition(":")[2]

    def make(self, name: str, args: Mapping[str, Any], *given: Any, trusted: bool = False) -> Any:
        """Build a part: `given` are the factory's positional arguments, `args` the user's."""
        self.check(name)
        if name.startswith(CUSTOM):
            raise InputError(
                f"the {self.kind} {name.removeprefix(CUSTOM)} was an object made in Python and "
                f"cannot be rebuilt from its name: give it again, as {self.kind}=..."
            )
        if name in self._entries:
            entry = self._entries[name]
            factory, fixed = entry.factory(), dict(entry.args)
        else:
            require_trust(self.kind, name, trusted)
            factory, fixed = load(name), {}
        return call(f"{self.kind} {name}", factory, given, fixed | dict(args))


def is_import_path(name: str) -> bool:
    """Whether `name` looks like `package.module:attribute`."""
    return _IMPORT_PATH.fullmatch(name) is not None


def require_trust(kind: str, name: str, trusted: bool) -> None:
    """Importing a name runs its code: refuse it where only a file names it."""
    if not trusted:
        raise InputError(
            f"the {kind} {name!r} would be imported, which runs its code: give it again "
            f"(--{kind} {name}) or add --trust if you trust it"
        )


def load(path: str) -> Any:
    """Import what an import path names."""
    match = _IMPORT_PATH.fullmatch(path)
    if match is None:
        raise InputError(f"{path!r} is not an import path such as my_package.module:factory")
    try:
        value = import_module(match["module"])
        for name in match["attribute"].split("."):
            value = getattr(value, name)
    except InputError:
        raise
    except Exception as error:  # whatever somebody's module does when it is imported
        raise InputError(f"cannot import {path!r}: {in_one_line(error)}") from error
    return value


def call(what: str, factory: Any, given: tuple[Any, ...], args: Mapping[str, Any]) -> Any:
    """Call a factory, with a sentence about arguments that it does not take."""
    if not callable(factory):
        raise InputError(f"{what} must be something to call, not {shown(factory)}")
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        return factory(*given, **args)
    parameters = list(signature.parameters.values())
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        allowed = [p.name for p in parameters[len(given) :] if p.kind is not p.VAR_POSITIONAL]
        for name in args:
            if name not in allowed:
                known = f"it takes: {', '.join(allowed)}" if allowed else "it takes none"
                raise InputError(f"{what} has no argument {name!r}; {known}")
    try:
        signature.bind(*given, **args)
    except TypeError as error:
        raise InputError(f"{what} cannot be built: {in_one_line(error)}") from error
    return factory(*given, **args)


def _parse_argument(text: Any, what: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not name.isidentifier() or not equals:
        raise InputError(f"{what} must be of the form name=value, not {shown(text)}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _check_depth(value: Any, what: str, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise InputError(f"{what} are nested too deeply: at most {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _check_depth(item, what, depth + 1)


def _plain(value: Any) -> Any:
    """NumPy's and JAX's numbers and arrays as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a plain value")
