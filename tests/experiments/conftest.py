"""The store of a grid that ran through, which others are compared with."""

from pathlib import Path

import pytest

from tests.experiments.small_grid import run_small


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    outcome = run_small(out)
    assert (outcome.trained, outcome.skipped, outcome.failures) == (8, 0, {})
    return out
