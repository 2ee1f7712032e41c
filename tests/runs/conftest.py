"""What tests of run folders share; the training that others are compared with is in the root's."""

from collections.abc import Iterator

import pytest

from tests.runs.small import small, state_of
from windvane.runs import checkpoint
from windvane.runs.result import Result
from windvane.runs.runner import train


@pytest.fixture(scope="session")
def last_state(finished: Result, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The complete state at the end: what the last checkpoint holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "remove", lambda folder: None)
        folder = tmp_path_factory.mktemp("state") / "run"
        train(small(), out=folder, progress=False)
    return state_of(folder)


@pytest.fixture
def keep_checkpoints(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(checkpoint, "remove", lambda folder: None)
    return
