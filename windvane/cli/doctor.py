"""The command `windvane doctor`, which works where other packages do not.

What may not live here: anything a library user would want, and imports of other packages.
"""

import json
import shutil
import sys
import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from windvane.doctor import Finding, about, examine

if TYPE_CHECKING:
    from rich.console import Console

_INDENT = 20


@dataclass(frozen=True)
class Doctor:
    """Say what is installed and works on this machine, and what to do about what does not.

    It ends with exit code 1 if something that every training needs does not work.
    """

    quick: bool = False
    """Leave out the small training that is tried."""
    json: bool = False
    """Print JSON, for reports of bugs."""

    examples: ClassVar[tuple[tuple[str, str], ...]] = (
        ("windvane doctor", "look at everything, and train for a moment"),
        ("windvane doctor --json", "for a report of a bug"),
    )

    def run(self, console: "Console | None" = None) -> int:
        """Look at everything; 0 if all that is needed works."""
        del console  # it may be what is missing
        where = about()
        if not self.json:
            python, system = where["python"], where["platform"]
            print(f"windvane {where['windvane']}, Python {python} on {system}")
            print(f"{where['location']}, {where['executable']}")
            print(f"this takes {'a few seconds' if self.quick else 'up to a minute'}", flush=True)
        findings = []
        for finding in examine(quick=self.quick):
            findings.append(finding)
            if not self.json:
                _show(finding)
        problems = [finding for finding in findings if finding.status == "problem"]
        if self.json:
            found = [asdict(finding) for finding in findings]
            print(json.dumps(where | {"healthy": not problems, "findings": found}, indent=2))
        elif problems:
            advice = next((each.advice for each in problems if each.advice), "")
            first = f"; begin with: {advice}" if advice else ""
            print(f"windvane: {_count(len(problems))}{first}", file=sys.stderr)
        else:
            print("all that Windvane needs works")
        return 1 if problems else 0


def _show(finding: Finding) -> None:
    """Print a finding, wrapped to the terminal, its advice on a line of its own."""
    width = max(shutil.get_terminal_size().columns, 2 * _INDENT)
    mark = {"ok": " ", "note": "-", "problem": "!"}[finding.status]
    head, rest = f"{mark} {finding.topic:{_INDENT - 3}} ", " " * _INDENT
    lines = textwrap.wrap(
        finding.text, width, initial_indent=head, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    print("\n".join(lines))
    if finding.advice:
        print(f"{rest}-> {finding.advice}")
    sys.stdout.flush()


def _count(number: int) -> str:
    return (
        "something that Windvane needs does not work"
        if number == 1
        else f"{number} things that Windvane needs do not work"
    )
