"""SHA-256 sums of the files of a finished run, which its summary holds.

A file that is missing or was changed later is refused with a sentence that names it. Runs of
earlier versions have no sums, and their files are only checked for what they hold.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from windvane.errors import InputError, shown
from windvane.files import faults_of, file_sum, path_exists, read_json
from windvane.runs.folder import SUMMARY

SUMS = "sums"


def sums_of(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """The sums of files, by their places in a folder."""
    return {path.relative_to(folder).as_posix(): file_sum(path) for path in paths}


def read_sums(folder: Path) -> dict[str, str]:
    """What the summary of a run folder says; nothing if it is missing or of an earlier version."""
    path = folder / SUMMARY
    if not path_exists(path):
        return {}
    summary = read_json(path)
    with faults_of(path, "the summary"):
        return check_sums(summary)


def check_sums(summary: Any) -> dict[str, str]:
    """The sums in a summary, which must be texts by name."""
    sums = summary.get(SUMS, {}) if isinstance(summary, dict) else {}
    good = isinstance(sums, dict) and all(isinstance(value, str) for value in sums.values())
    if not good:
        raise InputError(f"its {SUMS} of files must be texts by name, not {shown(sums)}")
    return sums


def check_files(folder: Path, *paths: Path) -> None:
    """Complain about a file that is not what it was when its training was finished; with no path,
    about any.
    """
    sums = read_sums(folder)
    wanted = [path.relative_to(folder).as_posix() for path in paths] or list(sums)
    for name in wanted:
        if name in sums:
            _check(folder, name, sums[name])


def _check(folder: Path, name: str, wanted: str) -> None:
    path = folder / name
    inside = ".." not in Path(name).parts and not Path(name).is_absolute()
    if not inside or not path_exists(path):
        raise InputError(f"{folder} lacks {shown(name)}, which its training has written")
    if file_sum(path) != wanted:
        raise InputError(
            f"{path} has been changed or damaged since its training was finished: put the file "
            "back that was written"
        )
