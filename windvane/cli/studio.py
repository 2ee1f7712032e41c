"""The command `windvane studio`.

What may not live here: anything a library user would want; this file parses and calls.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from windvane.cli.options import POSITIONAL
from windvane.cli.training import Examples

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Studio:
    """Open a page in the browser: drag the weights, and watch trained policies follow.

    It offers the policies and runs found under a folder, also those still in training; without a
    folder, policies that come with the package. Ctrl-C stops it. It needs the extra
    windvane[studio].
    """

    folder: Annotated[Path | None, POSITIONAL] = None
    """Folder with trained runs, at any depth. Default: the policies that come with the package."""
    host: str = "127.0.0.1"
    """Address to listen on. 127.0.0.1 is reached from this machine alone, 0.0.0.0 from others,
    too."""
    port: int | None = None
    """Port to listen on. Default: the first free one from 8321 on."""
    browser: bool = True
    """Open the page in a browser; without it, only the address is printed."""
    trust: bool = False
    """Import whatever the run folders name, such as your own environment. Importing runs code: say
    so only of folders that you trust."""

    examples: Examples = (
        ("windvane studio", "policies that come with the package"),
        ("windvane studio out --no-browser", "every run under out; print the address alone"),
    )

    def run(self, console: "Console") -> None:
        """Serve until Ctrl-C."""
        from windvane.studio import serve

        serve(
            self.folder, host=self.host, port=self.port, browser=self.browser, trust=self.trust,
            console=console,
        )  # fmt: skip
