"""What is released: the wheel holds the package and nothing else, and works where nothing else is.

These tests build, install everything that Windvane requires, and train: minutes. They need the
package index, and are skipped without it.
"""

import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from windvane.version import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TINY = (
    "train --env dst --observation features --agent pqn --replay none --schedule random "
    "--steps 256 --rollout 16 --num-envs 4 --agent-args minibatches=2 --width 8 --depth 1 "
    "--chunk 128 --out out"
)


def tracked() -> list[str]:
    """Files of the repository, and those that are about to be in it."""
    line = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def package_files() -> set[str]:
    return {name for name in tracked() if name.startswith("windvane/")}


def run(*command: str | Path, at: Path, code: int = 0) -> str:
    """What a command says, far from the checkout."""
    outside = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "JAX_DISABLE_MOST_OPTIMIZATIONS"}
    environment = {name: value for name, value in os.environ.items() if name not in outside}
    done = subprocess.run(
        list(map(str, command)), cwd=at, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    unreachable = ("Could not find a version", "No matching distribution", "Failed to establish")
    if code == 0 and done.returncode and any(text in done.stdout for text in unreachable):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and the wheel that was made from it."""
    root = tmp_path_factory.mktemp("built")
    # Not in the checkout: what earlier builds left there would go into the wheel.
    for name in tracked():
        if name.startswith("windvane/") or "/" not in name:
            copy = root / "source" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--outdir", root / "dist", root / "source", at=root)
    return root / "dist"


@pytest.fixture(scope="module")
def place(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with a virtual environment that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("elsewhere")
    begun = time.monotonic()
    run(sys.executable, "-m", "venv", folder / "venv", at=folder)
    [wheel] = built.glob("*.whl")
    run(program(folder, "python"), "-m", "pip", "install", "--quiet", wheel, at=folder)
    print(f"installed after {time.monotonic() - begun:.0f} s")
    return folder


def program(place: Path, name: str) -> Path:
    return place / "venv" / ("Scripts" if os.name == "nt" else "bin") / name


def test_the_wheel_holds_the_package_alone(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    assert wheel.name == f"windvane-{__version__}-py3-none-any.whl"
    home = f"windvane-{__version__}.dist-info/"
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if not name.startswith(home)} == package_files()


def test_the_source_archive_holds_what_builds_the_wheel(built: Path) -> None:
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert package_files() <= names
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"} <= names
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders == {"windvane", "windvane.egg-info"}


def test_it_works_where_nothing_else_is(place: Path) -> None:
    windvane = program(place, "windvane")
    assert run(windvane, "--version", at=place).strip() == f"windvane {__version__}"
    begun = time.monotonic()
    assert "10 policies" in run(windvane, "oracle", "dst", "--out", "oracle", at=place)
    print(f"the oracle after {time.monotonic() - begun:.1f} s")
    begun = time.monotonic()
    assert "written: out" in run(windvane, *TINY.split(), at=place)
    print(f"a trained policy after {time.monotonic() - begun:.1f} s")
    assert "101 weight vectors" in run(windvane, "evaluate", "out", at=place)
    said = run(windvane, "doctor", at=place)
    assert "all that Windvane needs works" in said
    assert str(ROOT) not in said
    assert 'pip install "windvane[studio]"' in said
    assert "windvane[studio]" in run(windvane, "studio", "--no-browser", at=place, code=2)


def test_the_studio_comes_with_its_extra(place: Path, built: Path) -> None:
    [wheel] = built.glob("*.whl")
    python = program(place, "python")
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[studio]", at=place)
    code = """
from windvane.studio.app import STATIC, make_app
from windvane.studio.library import Library
library = Library(None, (), trust=False)
make_app(library, "token", host="127.0.0.1", port=0)
assert (STATIC / "index.html").is_file()
print(len(library.to_json()["policies"]), "policies")
"""
    assert run(python, "-c", code, at=place).strip() == "3 policies"
