"""What tests of commands share."""

from pathlib import Path

import pytest

from tests.cli import small


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="session")
def run() -> Path:
    return small.finished()


@pytest.fixture(scope="session")
def corridor() -> Path:
    return small.gymnasium_run()
