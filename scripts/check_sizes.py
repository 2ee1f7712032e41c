"""Refuse files that are too large for the repository (`python -m scripts.check_sizes FILE ...`).

A hook of pre-commit calls it with the files of a commit. Trained policies and records of runs are
large, belong into a release or a store, and stay in a history for good once they are in it.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

MOST = 2**20
"""Bytes of one file; the largest here has half of that."""


def main(names: Sequence[str]) -> int:
    """Name the files that are too large; 1 if there are any."""
    sizes = {name: Path(name).stat().st_size for name in names if Path(name).is_file()}
    large = {name: size for name, size in sizes.items() if size > MOST}
    for name, size in large.items():
        print(f"{name} has {size:,} bytes, and a file here has at most {MOST:,}")
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
