"""What holds for every test: types and shapes are checked at run time, and runs are repeatable."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jaxtyping
import pytest

# Nothing that is compiled here is kept on the disk: no result is older than the code.
os.environ["WINDVANE_COMPILATION_CACHE"] = "0"

# Before anything imports windvane: the hook only reaches modules imported after it. The tower lets
# a whole number stand where a float is asked for, as every static checker does.
CHECKER = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
jaxtyping.install_import_hook(["windvane"], CHECKER)

import jax  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")

# `make unit` compiles without most optimisations, since most tests compile much and compute little.
# Here they compute much, or compare two programs bit for bit that need not agree without.
OPTIMISED = ("tests/oracle/", "tests/envs/", "tests/replay/test_priorities.py")


@pytest.fixture(autouse=True, scope="module")
def optimisations(request: pytest.FixtureRequest) -> Iterator[None]:
    """All optimisations for the files above."""
    before = os.environ.get("JAX_DISABLE_MOST_OPTIMIZATIONS") == "1"
    if request.node.nodeid.startswith(OPTIMISED):
        jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    # Every program takes some of the 65,530 memory maps that Linux gives a process: with the
    # programs of all tests JAX aborts in the end.
    jax.clear_caches()


hypothesis.settings.register_profile("windvane", derandomize=True, deadline=None)
hypothesis.settings.load_profile("windvane")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A small training, the uninterrupted one that others are compared with."""
    from tests.runs.small import small
    from windvane.runs.runner import train

    return train(small(), out=tmp_path_factory.mktemp("finished") / "run", progress=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a run folder may be made."""
    return tmp_path / "run"
