"""What is said before programs are compiled, and what is remembered of it."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from tests.runs.small import small
from windvane.runs import compiling
from windvane.runs.compiling import FILE, Compiling
from windvane.training.build import build


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", None)


def test_without_a_cache_nothing_is_remembered() -> None:
    training = build(small())
    for _ in range(2):
        one = Compiling(training)
        assert one.sentence == "compiling, about 20 s on an idle machine"
        one.done()


def test_what_was_compiled_is_loaded_and_its_time_is_told_for_others(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((0.0, 30.25, 40.0, 40.5, 50.0))
    first = build(small(seeds=2))
    with monkeypatch.context() as patch:
        patch.setattr(compiling.time, "monotonic", lambda: next(clock))
        Compiling(first).done()
    assert Compiling(first).sentence == "loading programs that were compiled before"
    # Other seeds are given to the same program; another width makes another one of its kind.
    assert Compiling(build(small(seeds=(7, 9)))).sentence.startswith("loading")
    took = "compiling, which took 30 s the last time"
    assert Compiling(build(small(seeds=2, width=24))).sentence == took
    assert Compiling(build(small(seeds=3))).sentence == took
    other = Compiling(build(small(seeds=2, agent="mo")))
    assert other.sentence.startswith("compiling, about 20 s")
    written = (cache / FILE).read_bytes()
    Compiling(first).done()  # loading was quick, and says nothing of compiling
    assert (cache / FILE).read_bytes() == written


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": "b"}'])
def test_a_damaged_file_is_none(cache: Path, text: str) -> None:
    (cache / FILE).write_text(text)
    training = build(small())
    assert Compiling(training).sentence.startswith("compiling, about")
    Compiling(training).done()
    assert Compiling(training).sentence.startswith("loading")


def test_agents_that_learn_from_rollouts_have_one_program() -> None:
    settings = {"agent": "pqn", "replay": "none", "rollout": 4, "agent_args": {"minibatches": 2}}
    one = Compiling(build(small(**settings, num_envs=2)))
    assert one.programs == 1
    assert "about 10 s" in one.sentence
