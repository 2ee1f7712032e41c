"""Parts of the documentation that are read off the program, so that they cannot become stale.

A page says where: `<!-- generated: settings -->` stands for what the function of that name returns.
"""

import ast
import contextlib
import importlib
import io
import itertools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args
from unittest import mock

from windvane.agents import AGENTS
from windvane.cli import _commands, main
from windvane.envs import ENVS
from windvane.learning.hyperparameters import Hyperparameters
from windvane.registry import Arguments
from windvane.replay import REPLAYS
from windvane.schedules import SCHEDULES
from windvane.training import settings
from windvane.training.config import TrainConfig
from windvane.training.presets import PRESETS

WIDTH = 84
"""Characters of a line of help."""
BOX = re.compile(r"^╭─ (?P<title>.*?) ─*╮\n(?P<lines>.*?)^╰─+╯\n?", re.M | re.S)
GROUPS = {
    "What is trained": settings.Task,
    "Learning": Hyperparameters,
    "The network": settings.NetworkSettings,
    "The replay buffer": settings.ReplaySettings,
    "Many environments": settings.ParallelSettings,
    "Gymnasium environments": settings.HostSettings,
    "Running": settings.RunSettings,
}
REGISTRIES = {
    "Native environments": ENVS,
    "Agents": AGENTS,
    "Replay rules": REPLAYS,
    "Schedules": SCHEDULES,
}


def command_names() -> list[str]:
    """The commands in the order of `windvane --help`."""
    return [get_args(command)[0].__name__.lower() for command in get_args(_commands([]))]


def command_line() -> str:
    """What every command says of itself."""
    return "\n\n".join(f"## {name}\n\n{_help(name)}" for name in command_names())


def all_settings() -> str:
    """Every setting of a training with its default and what it means."""
    return "\n\n".join(
        f"## {title}\n\n{_table(('setting', 'default', 'what it is'), _settings(group))}"
        for title, group in GROUPS.items()
    )


def presets() -> str:
    """What each preset sets, beyond the defaults."""
    parts = []
    for name in PRESETS:
        config = TrainConfig.preset(name)
        changed = [
            (f"`{field.name}`", _shown(value))
            for field in fields(settings.Settings)
            if (value := getattr(config, field.name)) != getattr(TrainConfig(), field.name)
        ]
        body = _table(("setting", "value"), changed) if changed else "The defaults."
        parts.append(f"### {name}\n\n{body}")
    return "\n\n".join(parts)


def parts() -> str:
    """The names in the registries."""
    sections = []
    for title, registry in REGISTRIES.items():
        rows = [(f"`{name}`", f"`{entry.home}`", entry.summary) for name, entry in registry.items()]
        table = _table(("name", "import path", "what it is"), rows)
        sections.append(f"## {title}\n\n{table}")
    return "\n\n".join(sections)


PARTS: dict[str, Callable[[], str]] = {
    "command line": command_line,
    "settings": all_settings,
    "presets": presets,
    "parts": parts,
}


def _help(command: str) -> str:
    """A command's help: what it does as text, and a block of code per box."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # with an encoding, boxes are drawn
    with (
        mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}),
        contextlib.redirect_stdout(said),
        contextlib.suppress(SystemExit),
    ):
        main([command, "--help"])
    said.seek(0)
    text = said.read()
    usage, _, rest = text.partition("\n\n")
    before, *_ = rest.partition("╭")
    boxes = [
        f"**{match['title']}**\n\n```text\n{_inside(match['lines'])}\n```"
        for match in BOX.finditer(text)
    ]
    return "\n\n".join([f"```text\n{usage}\n```", before.strip(), *boxes])


def _inside(lines: str) -> str:
    rows = [line.strip("│")[1:].rstrip() for line in lines.splitlines()]
    return "\n".join(row for row in rows if not row.startswith("──"))


def _settings(group: type) -> Iterator[tuple[str, str, str]]:
    docs = _field_docs(group)
    for field in fields(group):
        default = "required" if field.default is MISSING else _shown(field.default)
        yield f"`{field.name}`", default, " ".join(docs[field.name].split())


def _field_docs(group: type) -> dict[str, str]:
    """The strings below the fields of a class."""
    module = importlib.import_module(group.__module__)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    body = next(
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == group.__name__
    )
    return {
        field.target.id: str(doc.value.value)
        for field, doc in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(doc, ast.Expr)
        and isinstance(doc.value, ast.Constant)
    }


def _shown(value: Any) -> str:
    if isinstance(value, Arguments):
        return ", ".join(f"`{text}`" for text in value.to_texts()) or "none"
    if value == ():
        return "none"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"`{value:_}`"
    return f"`{value}`"


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
