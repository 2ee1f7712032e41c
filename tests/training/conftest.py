"""The uninterrupted training that others are compared with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.small import small
from windvane.training import checkpoint
from windvane.training.result import Result
from windvane.training.runner import train


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return train(small(), out=tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture(scope="session")
def last_state(finished: Result, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The complete state at the end: what the last checkpoint holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "remove", lambda folder: None)
        folder = tmp_path_factory.mktemp("state") / "run"
        train(small(), out=folder)
    return checkpoint.saved(folder)[-1].read_bytes()


@pytest.fixture
def keep_checkpoints(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(checkpoint, "remove", lambda folder: None)
    return


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"
