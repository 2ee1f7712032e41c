"""The command line: one file per group of commands, `commands`, which lists them, and `main`.

What may not live here: anything a library user would want; these files parse, call and print.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windvane.cli import commands, pages, parsing
from windvane.deprecation import RenamedWarning
from windvane.errors import InputError, in_one_line
from windvane.runs.stopping import INTERRUPTED, end_process, end_process_when_asked
from windvane.version import __version__

PACKAGE = Path(__file__).parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 if it went well, 2 on bad input, 130 when interrupted from the keyboard and
    141 when nobody reads its output.

    Without `arguments` it is the command of this process, which it may then end at once.
    """
    if arguments is not None:
        return _main(arguments)
    with end_process_when_asked():
        code = _main(sys.argv[1:])
        if code == INTERRUPTED:
            end_process()
    return code


def _main(arguments: list[str]) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this, as with `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows another one instead.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    with contextlib.suppress(OSError):  # the current folder may have been removed
        if os.getcwd() not in sys.path:
            # Last, so that `--env my_module:make_env` finds a module here, and shadows nothing.
            sys.path.append(os.getcwd())
    try:
        return _run(arguments)
    except BrokenPipeError:  # as in `windvane --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python has left
        return 141
    except KeyboardInterrupt:  # while packages are imported
        print("windvane: stopped", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    try:
        page = page_for(arguments)
        if page is not None:
            print(page)
            sys.stdout.flush()  # here, where a reader that went away is noticed
            return 0
        with warnings.catch_warnings():
            warnings.simplefilter("always", RenamedWarning)
            warnings.showwarning = _in_one_line(warnings.showwarning)
            command = parse(arguments)
            if arguments[0] == "doctor":  # which works where other packages do not
                return command.run()

            from rich.console import Console

            code = command.run(Console())
    except InputError as error:
        print(f"windvane: {in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        resumable = "; the same command resumes the search" if arguments[:1] == ["oracle"] else ""
        print(f"windvane: {str(stop) or f'stopped{resumable}'}", file=sys.stderr)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def parse(arguments: list[str]) -> Any:
    """The command that a line asks for, checked as far as that needs no other files."""
    name, *rest = arguments
    return parsing.parse(commands.find(name).load(), name, rest)


def page_for(arguments: list[str]) -> str | None:
    """The page of help, or the version, that a line asks for; None if it asks for a command."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in parsing.HELP or arguments[0] == parsing.HELP_ALL:
        return commands.overview()
    name, *rest = arguments
    if name == "--version":
        return f"windvane {__version__}"
    entry = commands.find(name)
    everything = parsing.HELP_ALL in rest
    if not everything and not set(parsing.HELP) & set(rest):
        return None
    return pages.command_page(entry.load(), name, rest, everything)


def _in_one_line(others: Callable[..., None]) -> Callable[..., None]:
    """How warnings are shown: Windvane's own as a sentence, without a line of its source."""

    def show(message: Warning, category: type[Warning], filename: str, *rest: Any) -> None:
        own = category is UserWarning and Path(filename).is_relative_to(PACKAGE)
        if own or category is RenamedWarning:
            print(f"windvane: {' '.join(str(message).split())}", file=sys.stderr)
        else:
            others(message, category, filename, *rest)

    return show
