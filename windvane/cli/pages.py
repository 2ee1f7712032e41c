"""Help pages as plain text: what a command does, two examples, and its settings in groups.

What may not live here: anything that imports more than a command's own file does. A page has to
appear at once.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby

from windvane.cli.options import Option, options_of

WIDEST = 100
"""Characters of the longest line."""
NARROW = 64
"""Characters below which texts stand under the names of settings, not beside them."""
COLUMN = 26
"""Where texts begin otherwise."""
EVERYDAY = "Everyday settings"


def width() -> int:
    """Characters per line, of this terminal."""
    return max(min(shutil.get_terminal_size().columns, WIDEST), 30)


def bold(text: str) -> str:
    """A heading: bold on a terminal."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not sys.stdout.isatty() else f"\x1b[1m{text}\x1b[0m"


def filled(text: str, indent: str = "", later: str | None = None) -> str:
    """A paragraph in lines of this terminal; `later` indents all but the first."""
    return textwrap.fill(
        " ".join(text.split()), width(), initial_indent=indent,
        subsequent_indent=indent if later is None else later, break_on_hyphens=False,
    )  # fmt: skip


def command_page(command: type, name: str, arguments: Sequence[str], everything: bool) -> str:
    """The help of a command; with `everything`, also of settings that are seldom changed."""
    defaults = getattr(command, "defaults", None)
    options = options_of(command if defaults is None else defaults(list(arguments)))
    every = options
    everyday: tuple[str, ...] = getattr(command, "everyday", ())
    summary, *notes = [filled(part) for part in (command.__doc__ or "").split("\n\n")]
    parts = [summary, examples("Examples", command.examples), *notes, _usage(name, options)]  # type: ignore[attr-defined]
    if everyday:
        by_name = {option.name: option for option in options}
        first = [by_name[one] for one in everyday]
        parts.append(_group(EVERYDAY, first))
        options = tuple(option for option in options if option not in first)
    shown = everything or not everyday
    for heading, group in groupby(options, lambda option: option.group):
        layout = _group if shown else _names
        parts.append(layout(heading, list(group)))
    for option in every if everything else ():
        if option.summaries:
            rows = table(option.summaries.items(), COLUMN)
            parts.append(f"{bold(f'Names for {option.flag}')}\n{rows}")
    if not shown:
        parts.append(filled(f"All settings are explained by: windvane {name} --help-all"))
    return "\n\n".join(parts)


def table(rows: Iterable[tuple[str, str]], column: int) -> str:
    """Texts beside names, or below them where there is little room."""
    beside = width() >= NARROW
    indent = " " * (column if beside else 6)
    lines = []
    for name, text in rows:
        first = f"  {name}"
        below = filled(text, indent)
        if beside and len(first) + 2 <= column:
            lines.append(first.ljust(column) + below.removeprefix(indent))
        else:
            lines += [filled(first.strip(), "  ", "      "), below]
    return "\n".join(lines)


def _group(heading: str, options: Sequence[Option]) -> str:
    return f"{bold(heading)}\n{table(((_left(one), text_of(one)) for one in options), COLUMN)}"


def _names(heading: str, options: Sequence[Option]) -> str:
    """A group of which only the names are shown."""
    return f"{bold(heading)}\n{filled(' '.join(one.flag for one in options), '  ')}"


def _left(option: Option) -> str:
    if option.off:
        return f"{option.flag}, {option.off}" if option.default else option.flag
    many = f"{option.word} ..." if option.value.many else option.word
    return many if option.positional else f"{option.flag} {many}"


def text_of(option: Option) -> str:
    """The help text with the names that there are and the default."""
    text, stated, default = option.text.partition(" Default: ")
    names = option.value.choices if option.positional else tuple(option.summaries)
    if names:
        text += f" One of: {', '.join(names)}."
    if stated or option.shown_default is not None:
        text += f" Default: {default if stated else f'{option.shown_default}.'}"
    return text


def examples(heading: str, lines: Iterable[tuple[str, str]]) -> str:
    """Command lines, which are not wrapped, below what they do."""
    shown = (f"{filled(f'# {what}', '  ', '  # ')}\n  {line}" for line, what in lines)
    return "\n".join([bold(heading), *shown])


def _usage(name: str, options: Sequence[Option]) -> str:
    words = [f"windvane {name}"]
    for option in options:
        if option.positional:
            many = f"{option.flag} ..." if option.value.many else option.flag
            words.append(many if option.required else f"[{many}]")
        elif option.required:
            words.append(f"{option.flag} {option.word}")
    return filled(f"Usage: {' '.join([*words, '[settings]'])}", "", "    ")
