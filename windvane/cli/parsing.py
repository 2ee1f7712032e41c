"""From a command line to a command: every complaint is one sentence that says what is allowed."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from windvane.cli.options import Option, build, options_of
from windvane.errors import InputError, shown

HELP, HELP_ALL = ("-h", "--help"), "--help-all"
_VALUE = re.compile(r"-[\d.].*|-")
"""What begins with a dash and is no option: a negative number, or the dash itself."""


def parse(command: type, name: str, arguments: Sequence[str]) -> Any:
    """The command of a class that `arguments`, without the command's name, ask for."""
    defaults = getattr(command, "defaults", None)
    options = options_of(command if defaults is None else defaults(list(arguments)))
    given = _sort(options, name, arguments)
    values = {}
    for option in options:
        if option.path in given:
            values[option.path] = given[option.path]
        elif option.required:
            raise InputError(
                f"{name} needs {_what(option)}: {option.text[0].lower()}{option.text[1:-1]}"
            )
        else:
            values[option.path] = option.default
    return build(command, values)


def nearest(what: str, name: str, known: Iterable[str]) -> str | None:
    """The sentence about a name that is unknown and much like a known one; None if none is."""
    bare = {one.strip("-").lower(): one for one in known}
    found = get_close_matches(name.strip("-").lower(), list(bare), 1, 0.7)
    return f"unknown {what} {shown(name)}; did you mean {bare[found[0]]}?" if found else None


def _sort(
    options: Sequence[Option], name: str, arguments: Sequence[str]
) -> dict[tuple[str, ...], Any]:
    """The values of the options that are given, by path."""
    flags = {flag: option for option in options for flag in option.flags}
    waiting = [option for option in options if option.positional]
    words: dict[tuple[str, ...], list[str]] = {}
    flagged: dict[tuple[str, ...], list[str]] = {}
    given: dict[tuple[str, ...], Any] = {}
    rest = list(arguments)
    plain = False
    while rest:
        token = rest.pop(0)
        if token == "--" and not plain:
            plain = True
        elif plain or not _is_flag(token):
            if not waiting:
                raise InputError(_unexpected(token, name, flags))
            words.setdefault(waiting[0].path, []).append(token)
            if not waiting[0].value.many:
                waiting.pop(0)
        else:
            typed, equals, text = token.partition("=")
            flag = typed.replace("_", "-")
            if flag not in flags:
                raise InputError(_unknown(typed, name, flags))
            option = flags[flag]
            if option.value.type is bool:
                if equals:
                    raise InputError(f"{flag} takes no value, not {shown(text)}")
                given[option.path] = flag != option.off
                continue
            texts = [text] if equals else _take(rest, option.value.many)
            if not texts and not (option.value.many and not option.value.one_is_alone):
                allowed = option.value.allowed
                raise InputError(f"{flag} needs a value: {flag} {option.word}, {allowed}")
            if option.value.many and not option.value.one_is_alone:
                texts = flagged.setdefault(option.path, []) + texts
                flagged[option.path] = texts
            given[option.path] = option.value.read(flag, texts)
    positional = {option.path: option for option in options if option.positional}
    for path, texts in words.items():
        given[path] = positional[path].value.read(positional[path].flag, texts)
    return given


def _is_flag(token: str) -> bool:
    return token.startswith("-") and not _VALUE.fullmatch(token)


def _take(rest: list[str], many: bool) -> list[str]:
    """Remove and return the values at the beginning: one at most, or `many`."""
    taken: list[str] = []
    while rest and not _is_flag(rest[0]) and (many or not taken):
        taken.append(rest.pop(0))
    return taken


def _what(option: Option) -> str:
    return option.flag if option.positional else f"{option.flag} {option.word}"


def _unknown(flag: str, name: str, flags: Iterable[str]) -> str:
    known = [*flags, *HELP, HELP_ALL]
    return nearest("option", flag, known) or (
        f"unknown option {shown(flag)}; windvane {name} --help lists what there is"
    )


def _unexpected(token: str, name: str, flags: Iterable[str]) -> str:
    flag = f"--{token.replace('_', '-')}"
    if flag in (*flags, *HELP, HELP_ALL):
        return f"unexpected {shown(token)}; did you mean {flag}?"
    return f"unexpected {shown(token)}; windvane {name} --help shows what {name} takes"
