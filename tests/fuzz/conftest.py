"""The good files that are spoiled, made once."""

from pathlib import Path

import jaxtyping
import pytest

from tests.fuzz.specimens import make_specimens
from windvane.runs.result import Result


@pytest.fixture(autouse=True)
def no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users have no types checked at run time: the sentences must come from the checks."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session")
def specimens(finished: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good file of every kind."""
    return make_specimens(tmp_path_factory.mktemp("specimens"), finished)
