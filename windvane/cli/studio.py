"""The command `windvane studio`.

What may not live here: anything a library user would want; this file parses and calls.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console


@dataclass(frozen=True)
class Studio:
    """Open a page in the browser: drag the weights, and watch trained policies follow.

    It offers the policies and runs found under a folder, also those still in training; without a
    folder, policies that come with the package. Ctrl-C stops it.
    """

    folder: Annotated[Path | None, tyro.conf.Positional] = None
    """Folder with trained runs, at any depth; None for the policies that come with the package."""
    host: str = "127.0.0.1"
    """Address to listen on. Only this machine reaches 127.0.0.1; others reach 0.0.0.0."""
    port: int | None = None
    """Port to listen on; None for the first free one from 8321 on."""
    browser: bool = True
    """Open the page in a browser."""
    trust: bool = False
    """Import whatever run folders name, such as your own environments. Importing runs code."""

    def run(self, console: Console) -> None:
        """Serve until Ctrl-C."""
        from windvane.studio import serve

        serve(
            self.folder, host=self.host, port=self.port, browser=self.browser, trust=self.trust,
            console=console,
        )  # fmt: skip
