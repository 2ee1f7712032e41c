"""The command line: one file per group of commands, and `main`, which chooses among them.

What may not live here: anything a library user would want; these files parse, call and print.
"""

import contextlib
import functools
import operator
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from windvane.runs.stopping import INTERRUPTED, end_process, end_process_when_asked

PACKAGE = Path(__file__).parents[1]
DESCRIPTION = """Multi-objective deep reinforcement learning with weights that change while the
agent acts.

Try first:
  windvane studio
      drag the weights in the browser, and watch a trained policy follow
  windvane oracle dst
      what is optimal in Deep Sea Treasure, and for which weights
  windvane render minecart --weights 0.6,0.2,0.2 --out trip.gif
      watch the optimal trip for these weights
  windvane train --preset quick-dst --out out/quick
      train for a minute or two on any computer
  windvane train --env mo:four-room-v0 --out out/rooms
      train on an environment of MO-Gymnasium
  windvane evaluate out/quick
      how near the optimum every run comes, over a grid of weights
  windvane front out/quick
      the front that the trained policies reach
  windvane watch out/quick --weights 0.5,0.5
      a film of one greedy episode
"""


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
    # Imported here, so that Ctrl-C during the import, of a second or two, is heard as at any time.
    import tyro
    from rich.console import Console

    from windvane.cli.printing import WrappedHelp
    from windvane.errors import InputError, in_one_line
    from windvane.version import __version__

    console = Console()
    if arguments[:1] == ["--version"]:
        console.print(f"windvane {__version__}", highlight=False)
        return 0
    with contextlib.redirect_stdout(WrappedHelp(sys.stdout)):  # type: ignore[type-var]
        command = tyro.cli(
            _commands(arguments),
            prog="windvane",
            description=DESCRIPTION,
            args=arguments or ["--help"],
        )
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _in_one_line(warnings.showwarning)
            command.run(console)
    except InputError as error:
        print(f"windvane: {in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        resumable = "; the same command resumes the search" if arguments[0] == "oracle" else ""
        print(f"windvane: {str(stop) or f'stopped{resumable}'}", file=sys.stderr)
        return INTERRUPTED
    return 0


def _in_one_line(others: Callable[..., None]) -> Callable[..., None]:
    """How warnings are shown: Windvane's own as a sentence, without a line of its source."""

    def show(message: Warning, category: type[Warning], filename: str, *rest: Any) -> None:
        if category is UserWarning and Path(filename).is_relative_to(PACKAGE):
            print(f"windvane: {' '.join(str(message).split())}", file=sys.stderr)
        else:
            others(message, category, filename, *rest)

    return show


def _commands(arguments: list[str]) -> Any:
    """All commands; the defaults of `train` depend on the preset or environment asked for."""
    import tyro

    from windvane.cli.evaluation import Compare, Evaluate, Front, Watch
    from windvane.cli.problems import Oracle, Render
    from windvane.cli.studio import Studio
    from windvane.cli.training import Resume, Train
    from windvane.cli.tune import Tune
    from windvane.experiments.commands import Report, Reproduce

    def entry(command: type, **options: Any) -> Any:
        name = command.__name__.lower()
        # The list of commands shows the first sentence of each; a command's own help shows all.
        summary = None if arguments[:1] == [name] else (command.__doc__ or "").split("\n\n")[0]
        return Annotated[command, tyro.conf.subcommand(name, description=summary, **options)]

    commands = (
        Resume, Evaluate, Front, Watch, Compare, Studio, Oracle, Render, Reproduce, Report,
    )  # fmt: skip
    train = entry(Train, default=Train.defaults(arguments))
    train |= entry(Tune, default=Tune.defaults(arguments))
    return functools.reduce(operator.or_, map(entry, commands), train)
