"""The files that other programs read: hosted checks, hooks, and what they call."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from scripts import check_sizes
from tests.release.test_requirements import PROJECT
from windvane.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
CHECKS: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
JOBS: dict[str, dict[str, Any]] = CHECKS["jobs"]
STEPS = [step for job in JOBS.values() for step in job["steps"]]
RUNS = [" ".join(step["run"].split()) for step in STEPS if "run" in step]


def pythons(job: dict[str, Any]) -> set[str]:
    """The versions that a job runs with."""
    [version] = [
        step["with"]["python-version"]
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/setup-python@")
    ]
    return set(job["strategy"]["matrix"]["python"]) if "matrix" in version else {version}


def test_every_step_does_one_thing() -> None:
    assert all(("run" in step) != ("uses" in step) for step in STEPS)
    for job in JOBS.values():
        assert job["steps"][0]["uses"].startswith("actions/checkout@")
        assert job["timeout-minutes"] > 0
        for key in re.findall(r"matrix\.(\w+)", str(job)):
            assert key in job["strategy"]["matrix"]
    # YAML reads a bare `on` as a truth value.
    assert {"push", "pull_request"} <= set(CHECKS.get("on") or CHECKS[True])


def test_targets_of_make_exist() -> None:
    called = [run for run in RUNS if run.startswith("make ")]
    targets = {word for run in called for word in run.split()[1:] if "=" not in word}
    assert {"lint", "types", "unit", "slow", "dist", "docs"} == targets
    # The pages are built by a target that is added with them.
    assert targets - TARGETS <= {"docs"}


def test_files_that_are_named_exist() -> None:
    named = {word for run in RUNS for word in run.split() if word.endswith(".py")}
    named |= {step["with"]["cache-dependency-path"] for step in STEPS if "with" in step
              and "cache-dependency-path" in step["with"]}  # fmt: skip
    assert "tests/release/test_wheel.py" in named
    assert all((ROOT / name).is_file() for name in named)


def test_versions_of_python_agree() -> None:
    allowed = SpecifierSet(PROJECT["requires-python"])
    language = "Programming Language :: Python :: "
    stated = {line.removeprefix(language) for line in PROJECT["classifiers"] if language in line}
    assert pythons(JOBS["tests"]) == stated
    assert all(allowed.contains(version) for version in stated)
    # The oldest that is checked is the oldest that is allowed.
    oldest = min(stated, key=lambda version: tuple(map(int, version.split("."))))
    assert PROJECT["requires-python"] == f">={oldest}"
    assert all(pythons(job) <= stated for job in JOBS.values())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert settings["pyright"]["pythonVersion"] == oldest
    assert settings["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"


def test_commands_on_windows_are_commands() -> None:
    commands = {run.split()[1] for run in RUNS if run.startswith("windvane ")}
    assert {"doctor", "train", "evaluate"} <= commands
    assert commands <= set(COMMANDS)


def test_hooks_download_nothing_and_call_what_is_there() -> None:
    assert [repo["repo"] for repo in HOOKS["repos"]] == ["local"]
    hooks = {hook["id"]: hook for hook in HOOKS["repos"][0]["hooks"]}
    assert {"ruff-check", "ruff-format", "large-files", "pyright"} == set(hooks)
    assert all(hook["language"] == "system" for hook in hooks.values())
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks.values())
    assert hooks["pyright"]["stages"] == ["manual"]
    tests = [line for line in PROJECT["optional-dependencies"]["test"] if "ruff" in line]
    assert len(tests) == 1


def test_large_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"0" * check_sizes.MOST)
    large.write_bytes(b"0" * (check_sizes.MOST + 1))
    assert check_sizes.main([str(small), str(tmp_path / "gone")]) == 0
    assert check_sizes.main([str(small), str(large)]) == 1
    assert capsys.readouterr().out == (
        f"{large} has 1,048,577 bytes, and a file here has at most 1,048,576\n"
    )


def test_all_files_of_the_repository_are_small_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ["git", "ls-files"]
    listed = subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    monkeypatch.chdir(ROOT)
    assert check_sizes.main(listed.splitlines()) == 0
