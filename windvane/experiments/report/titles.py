"""What reports call agents, replay rules, schedules and environments, and in which order.

Known names come first, in the order of the paper and then of their registry; all others follow by
name. What may not live here: colours and line styles (see `palette`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from windvane.agents import AGENTS
from windvane.envs import ENVS
from windvane.experiments.paper.published import published_results
from windvane.experiments.runs.cells import SCHEDULES, rank
from windvane.registry import CUSTOM, load
from windvane.replay import REPLAYS


@cache
def known_agents() -> tuple[str, ...]:
    """The paper's agents in its order, then the others of the registry."""
    return tuple(dict.fromkeys([*(cell.agent for cell in published_results()), *AGENTS]))


def agent_order(name: str) -> tuple[int, str]:
    """A sort key of agents."""
    return rank(known_agents(), name)


def replay_order(name: str) -> tuple[int, str]:
    """A sort key of replay rules."""
    return rank(tuple(REPLAYS), name)


def schedule_order(name: str) -> tuple[int, str]:
    """A sort key of schedules."""
    return rank(SCHEDULES, name)


def env_order(name: str) -> tuple[int, str]:
    """A sort key of environments."""
    return rank(tuple(ENVS), name)


def schedule_name(name: str) -> str:
    """A schedule in a column of a table."""
    return printable(name.removeprefix(CUSTOM).rpartition(":")[2])


def schedule_title(name: str) -> str:
    """A schedule as the title of a panel or of a part of a table."""
    return f"{schedule_name(name)} weight changes"


def printable(text: str) -> str:
    """Text from a file on one line, without what would control a terminal or turn text around."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def agent_titles(names: Iterable[str]) -> dict[str, str]:
    """A title for each agent."""
    return _distinct(names, AGENTS.title)


def replay_titles(names: Iterable[str]) -> dict[str, str]:
    """A title for each replay rule."""
    return _distinct(names, REPLAYS.title)


def schedule_names(names: Iterable[str]) -> dict[str, str]:
    """A name for each schedule."""
    return _distinct(names, schedule_name)


def env_source(name: str, args: Mapping[str, Any]) -> str:
    """A sentence on where an environment with these arguments is from; empty if none is known."""
    entry = ENVS.get(name)
    source = entry and entry.about.get("source")
    return load(source)(args) if source else ""


def env_titles(names: Iterable[str]) -> dict[str, str]:
    """A title for each environment."""
    return _distinct(names, ENVS.title)


def _distinct(names: Iterable[str], title: Callable[[str], str]) -> dict[str, str]:
    """A title for each name; names that would share one are shown in full."""
    titles = {name: printable(title(name)) for name in names}
    shared = list(titles.values())
    return {
        name: text if shared.count(text) == 1 else printable(name.removeprefix(CUSTOM))
        for name, text in titles.items()
    }
