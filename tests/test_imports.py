"""What a machine that only trains need not have installed."""

import subprocess
import sys

PROGRAM = """
import sys
for name in ("polars", "gymnasium", "mo_gymnasium", "moocore", "ray"):
    sys.modules[name] = None
import windvane.runs.runner, windvane.experiments.runs.reproduce, windvane.experiments.paper.grids
"""


def test_training_needs_neither_the_command_line_nor_gymnasium_nor_polars() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
