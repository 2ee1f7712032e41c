"""Parts of the documentation that are read off the program, so that they cannot become stale.

A page says where: `<!-- generated: settings -->` stands for what the function of that name returns.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from typing import Any
from unittest import mock

from windvane.agents import AGENTS
from windvane.cli import page_for
from windvane.cli.commands import COMMANDS
from windvane.cli.options import field_texts
from windvane.envs import ENVS
from windvane.learning.hyperparameters import Hyperparameters
from windvane.registry import Arguments
from windvane.replay import REPLAYS
from windvane.schedule_registry import SCHEDULES
from windvane.tracking import TRACKERS
from windvane.training import settings
from windvane.training.config import TrainConfig
from windvane.training.presets import PRESETS

WIDTH = 84
"""Characters of a line of help."""
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
    "Trackers": TRACKERS,
}


def command_line() -> str:
    """What every command says of itself."""
    return "\n\n".join(f"## {name}\n\n{_help(name)}" for name in COMMANDS)


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
    """A command's help: its first sentence as text, the rest as a block of code."""
    with mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}):
        page = page_for([command, "--help-all"]) or ""
    summary, _, rest = page.partition("\n\n")
    return f"{summary}\n\n```text\n{rest}\n```"


def _settings(group: type) -> Iterator[tuple[str, str, str]]:
    texts = field_texts(group)
    for field in fields(group):
        default = "required" if field.default is MISSING else _shown(field.default)
        yield f"`{field.name}`", default, texts[field.name]


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
