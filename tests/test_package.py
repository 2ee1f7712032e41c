"""The package as a whole: its public names, its version and what importing it costs."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import windvane

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", windvane.__all__)
def test_public_names_exist(name):
    assert getattr(windvane, name) is not None
    assert name in dir(windvane)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="'windvane' has no attribute 'nonsense'"):
        windvane.nonsense  # noqa: B018


def test_the_version_is_stated_once():
    assert version("windvane") == windvane.__version__
    assert f"version: {windvane.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_importing_the_package_is_light_and_registers_the_ids():
    program = """
import sys, windvane
assert not {"jax", "numpy", "gymnasium"} & set(sys.modules)
import gymnasium
assert not {"jax", "equinox", "matplotlib"} & set(sys.modules)
assert {"windvane/Minecart-v0", "windvane/DeepSeaTreasure-v0"} <= set(gymnasium.registry)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("order", ["gymnasium, windvane", "windvane, gymnasium.vector"])
def test_the_ids_are_registered_in_either_order(order: str):
    program = f"""
import {order}
assert "windvane/Minecart-v0" in gymnasium.registry
assert gymnasium.__spec__.name == "gymnasium"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_gymnasium_may_be_missing():
    program = "import sys; sys.modules['gymnasium'] = None; import windvane"
    subprocess.run([sys.executable, "-c", program], check=True)
