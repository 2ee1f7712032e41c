"""What Windvane requires, imports and touches before anybody asks for it."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, requires
from pathlib import Path

import windvane

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOR_EXTRAS = {
    "fastapi", "mlflow", "mo_gymnasium", "optuna", "pygame", "ray", "tensorboard", "tensorboardX",
    "torch", "uvicorn", "wandb",
}  # fmt: skip
"""Packages that nobody gets who did not ask for them."""

TRAIN = """
import sys
import windvane, windvane.cli
windvane.train(
    "dst", "pqn", observation="features", replay="none", schedule="random", steps=64, num_envs=4,
    rollout=16, agent_args={"minibatches": 1}, width=8, depth=1, chunk=64, progress=False,
)
print(*{name.partition(".")[0] for name in sys.modules})
"""

IMPORT_ALL = """
import importlib, os, pkgutil, sys
begun = os.times()
import windvane
spent = os.times()
assert "jax" not in sys.modules
print(spent.user + spent.system - begun.user - begun.system)
for found in pkgutil.walk_packages(windvane.__path__, "windvane."):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as missing:  # what writes to trackers needs their packages
            assert missing.name in ("mlflow", "tensorboard", "wandb"), missing
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized(), "importing looks for devices"
assert not xla_bridge._backends
"""


def test_extras_are_not_required() -> None:
    always = [line for line in requires("windvane") or [] if "extra ==" not in line]
    for lines in (always, PROJECT["dependencies"]):
        names = {re.split(r"[^\w-]", line)[0].replace("-", "_") for line in lines}
        assert {"jax", "equinox", "numpy"} <= names
        assert not names & FOR_EXTRAS


def test_extras_are_not_imported_by_training() -> None:
    environment = os.environ | {"WINDVANE_COMPILATION_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", TRAIN], check=True, capture_output=True, text=True, env=environment
    )
    imported = set(done.stdout.split())
    assert "jax" in imported
    assert not imported & FOR_EXTRAS


def test_importing_is_quick_and_leaves_devices_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], check=True, capture_output=True, text=True
    )
    assert float(done.stdout) < 1.5  # seconds of computing, as the machine may be busy


def test_all_pages_name_one_version() -> None:
    version = windvane.__version__
    assert metadata("windvane")["Version"] == version
    assert PROJECT["dynamic"] == ["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    # Either it is being prepared, or it is the newest that was released.
    newest = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [name for name in newest if name != "Unreleased"]
    assert newest[0] == "Unreleased"
    assert not released or released[0] == version or version.endswith(".dev0")
