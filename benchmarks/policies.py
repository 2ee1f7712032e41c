"""Saved policies for benchmarks: files, folders of them, or run folders."""

from collections.abc import Iterable
from pathlib import Path

from windvane.policy import Policy
from windvane.runs.folder import is_run_folder
from windvane.runs.result import load_policies


def load(paths: Iterable[Path]) -> list[Policy]:
    """All policies in these places, sorted by their seeds within each of them."""
    found: list[Policy] = []
    for path in paths:
        if is_run_folder(path):
            found += load_policies(path)
            continue
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        found += sorted(map(Policy.load, files), key=lambda policy: policy.seed)
    if not found:
        raise SystemExit(f"there are no policies in {' '.join(map(str, paths))}")
    return found
