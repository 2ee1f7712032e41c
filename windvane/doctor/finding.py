"""What a check says."""

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["ok", "note", "problem"]
"""`note` is worth knowing and stops nothing; a `problem` stops Windvane from working."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    text: str
    """A sentence, without its full stop."""
    status: Status = "ok"
    advice: str = ""
    """What to do about it: a command, or a sentence."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The same for programs, as plain JSON values."""
