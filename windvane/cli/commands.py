"""The table of commands, and the page that `windvane --help` prints from it.

Adding a command is one line in `PURPOSES` and a frozen dataclass where the line says. The dataclass
has a docstring whose first paragraph is one sentence, fields with docstrings (see `options`), two
`examples`, and a method `run(console)`, which may return an exit code. Where defaults depend on
what is asked for, a static method `defaults(arguments)` returns an instance with them. `everyday`
may name the settings that a short `--help` explains; `--help-all` then explains the rest. Nothing
here may import anything heavy.
"""

from dataclasses import dataclass
from importlib import import_module

from windvane.cli.pages import bold, examples, filled, table
from windvane.cli.parsing import nearest
from windvane.errors import InputError, shown


@dataclass(frozen=True)
class Entry:
    """A command in the table."""

    home: str
    """Where its dataclass is, within `windvane.cli`."""
    summary: str
    """One line."""

    def load(self) -> type:
        """Import the dataclass."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"windvane.cli.{module}"), name)


PURPOSES: dict[str, dict[str, Entry]] = {
    "Look": {
        "studio": Entry(
            "studio:Studio", "Drag the weights in the browser, and watch policies follow."
        ),
        "oracle": Entry("problems:Oracle", "Print and plot what is optimal for which weights."),
        "render": Entry(
            "problems:Render", "Film an optimal episode of a problem, or a random one."
        ),
    },
    "Train": {
        "train": Entry("training:Train", "Train an agent: one run, or many at once."),
        "resume": Entry("training:Resume", "Resume a training that was interrupted."),
        "tune": Entry("tune:Tune", "Search for good settings, and confirm the best."),
    },
    "Judge": {
        "evaluate": Entry("evaluation:Evaluate", "Measure utility and regret of trained policies."),
        "front": Entry("evaluation:Front", "Measure and plot the front that they reach."),
        "watch": Entry("evaluation:Watch", "Film an episode of a trained policy."),
        "compare": Entry("evaluation:Compare", "Compare trainings in a table and a plot."),
    },
    "Reproduce": {
        "reproduce": Entry("experiments:Reproduce", "Train the cells of the paper's tables."),
        "report": Entry("experiments:Report", "Print and plot them beside the paper's numbers."),
    },
    "Help": {
        "doctor": Entry("doctor:Doctor", "Say what works on this machine, and what does not."),
    },
}
"""All commands by purpose and name, in the order in which they are listed."""
COMMANDS = {name: entry for entries in PURPOSES.values() for name, entry in entries.items()}
"""All commands by name."""

FIRST = (
    ("windvane studio", "drag the weights in the browser, and watch a trained policy follow"),
    ("windvane train --preset fast-dst --out out/sea", "20 seconds: a policy for every weight"),
    ("windvane evaluate out/sea", "how near the optimum it comes, over a grid of weights"),
    ("windvane watch out/sea --weights 0.3,0.7", "a film of one episode"),
    (
        "windvane train --env mo:four-room-v0 --out out/rooms",
        "MO-Gymnasium, with the extra windvane[mo]",
    ),
)
"""What to type first, and what it does."""


def find(name: str) -> Entry:
    """The command of a name."""
    if name not in COMMANDS:
        raise InputError(
            nearest("command", name, [*COMMANDS, "help"])
            or f"unknown command {shown(name)}; choose one of: {', '.join(COMMANDS)}"
        )
    return COMMANDS[name]


def overview() -> str:
    """The page of `windvane --help`."""
    parts = [
        filled(
            "Windvane: multi-objective deep reinforcement learning with weights that change while "
            "the agent acts."
        ),
        "Usage: windvane COMMAND [settings]",
        examples("First commands", FIRST),
    ]
    for purpose, entries in PURPOSES.items():
        rows = [(name, entry.summary) for name, entry in entries.items()]
        parts.append(f"{bold(purpose)}\n{table(rows, 14)}")
    parts.append(filled("`windvane COMMAND --help` explains a command and its settings."))
    return "\n\n".join(parts)
