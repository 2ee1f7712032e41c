"""The pages: Python and tutorials run, commands parse, links lead somewhere.

Comments above a block say how it is tested, each on a line of its own:

- `<!-- slow -->`: in the slow tests;
- `<!-- not run: REASON -->`: not at all;
- `<!-- run with: ARGUMENTS -->`: commands that take long get these besides, in the slow tests;
- `<!-- example: FILE -->`: the block is a part of that file in `examples/`, which is run instead.

The blocks of a page share their names and a folder, in which the examples are, as for somebody who
types them in. Commands are parsed on all pages, and run on those of `docs/tutorials`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGES = [
    ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
] + sorted((ROOT / "docs").rglob("*.md"))
MARKS = ("slow", "not run", "run with", "example")
BLOCK = re.compile(
    r"(?P<marks>(?:<!-- [^>]* -->\n)*)(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)```", re.S
)
MARK = re.compile(r"<!-- (?P<name>[a-z ]+?)(?:: (?P<value>.*?))? -->")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)(?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    """A block of code, what is said above it, and its first line's number."""

    marks: dict[str, str | None]
    line: int
    text: str

    @property
    def left_out(self) -> bool:
        return "not run" in self.marks or "example" in self.marks


def blocks(page: Path, language: str) -> Iterator[Block]:
    text = page.read_text()
    for match in BLOCK.finditer(text):
        if match["language"] == language:
            marks = {mark["name"]: mark["value"] for mark in MARK.finditer(match["marks"])}
            yield Block(marks, text.count("\n", 0, match.start("text")), match["text"])


def with_python(*, slow: bool) -> list[Path]:
    return [
        page
        for page in PAGES
        if any(not b.left_out and ("slow" in b.marks) == slow for b in blocks(page, "python"))
    ]


def run(page: Path, *, slow: bool) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page, "python"):
        if not block.left_out and (slow or "slow" not in block.marks):
            source = "\n" * block.line + block.text  # so that a traceback has the page's line
            exec(compile(source, str(page), "exec"), names)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with nothing but the examples, whose modules can be imported."""
    for example in EXAMPLES.glob("*.py"):
        shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for example in EXAMPLES.glob("*.py"):
        sys.modules.pop(example.stem, None)


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("page", with_python(slow=False), ids=named)
def test_python_runs(page: Path) -> None:
    run(page, slow=False)


@pytest.mark.slow
@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("page", with_python(slow=True), ids=named)
def test_slow_python_runs(page: Path) -> None:
    run(page, slow=True)


def tutorials() -> list[Path]:
    """Those with commands to run."""
    pages = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
    return [page for page in pages if any(not block.left_out for block in blocks(page, "sh"))]


def with_arguments(text: str, extra: str) -> str:
    """The commands of a block with more arguments for those that train or run an example."""
    longer = r"\g<0> " + extra.replace("\\", r"\\")
    text = text.replace("\\\n", " ")
    return re.sub(
        r"^(?:windvane train|python) [^#&\n]*?(?=\s*(?:[#&]|$))", longer, text, flags=re.M
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", tutorials(), ids=named)
def test_tutorial_runs(page: Path, somewhere: Path) -> None:
    """Every command of a tutorial, in its order; what takes long with fewer steps."""
    programs = somewhere / "programs"
    programs.mkdir()
    for name, call in (("windvane", "-m windvane"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (programs / name).chmod(0o755)
    environment = os.environ | {
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # they compile much and compute little
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    for block in blocks(page, "sh"):
        if not block.left_out:
            script = with_arguments(block.text, block.marks.get("run with") or "")
            command = ["bash", "-euo", "pipefail", "-c", script]
            done = subprocess.run(
                command, env=environment, cwd=somewhere, capture_output=True, text=True
            )
            assert done.returncode == 0, f"line {block.line}: {done.stderr}"


def test_arguments_are_added() -> None:
    text = "windvane train --out a  # slow\nwindvane evaluate a\npython b.py &\n"
    longer = (
        "windvane train --out a --steps 8  # slow\nwindvane evaluate a\npython b.py --steps 8 &\n"
    )
    assert with_arguments(text, "--steps 8") == longer


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_marks_are_known(page: Path) -> None:
    for language in ("python", "sh"):
        for block in blocks(page, language):
            assert set(block.marks) <= set(MARKS)
            assert all((name == "slow") == (value is None) for name, value in block.marks.items())


def test_parts_of_examples_are_the_examples() -> None:
    found = [
        (page, block)
        for page in PAGES
        for block in blocks(page, "python")
        if block.marks.get("example")
    ]
    assert found
    for page, block in found:
        assert block.text in (EXAMPLES / str(block.marks["example"])).read_text(), (
            page,
            block.line,
        )


def commands() -> list[str]:
    """Every line of a shell block that calls the command, as it is typed."""
    found = []
    for page in PAGES:
        for block in blocks(page, "sh"):
            lines = block.text.replace("\\\n", " ").splitlines()
            found += [line for line in lines if line.startswith("windvane ")]
        # Recipes are in tables.
        found += re.findall(r"^\| `(windvane .*?)` \|", page.read_text(), flags=re.M)
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("line", commands())
def test_commands_parse(line: str) -> None:
    from windvane.cli import page_for, parse
    from windvane.cli.training import Train

    arguments = shlex.split(line.removesuffix("&"), comments=True)[1:]
    if page_for(arguments) is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        command = parse(arguments)
    if isinstance(command, Train):
        _ = command.config  # checks the settings, too


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them, and of the API on the site's pages.

    On GitHub a link to one of the latter leads to the page.
    """
    found = set()
    for line in re.sub(r"```.*?```", "", page.read_text(), flags=re.S).splitlines():
        if line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(words.replace(" ", "-"))
        if line.startswith("::: "):
            found.add(line.removeprefix("::: ").strip())
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    broken = []
    for match in LINK.finditer(text):
        path, _, anchor = match["target"].partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        generated = target.exists() and "<!-- generated: " in target.read_text(errors="ignore")
        known = not anchor or target.suffix != ".md" or not target.exists() or generated
        if not target.exists() or not (known or anchor in anchors(target)):
            broken.append(match["target"])
    assert not broken


def test_pages_name_files_that_exist() -> None:
    """Paths such as `windvane/agents/core.py` in running text."""
    pattern = re.compile(
        r"`((?:windvane|tests|examples|scripts|benchmarks|results)/[\w/.-]+\.\w+)`"
    )
    lost = [
        f"{page.name}: {name}"
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for name in pattern.findall(page.read_text())
        if not (ROOT / name).exists() and not name.endswith("/mine.py")
    ]
    assert not lost


def test_numbers_of_recipes_are_in_their_sources() -> None:
    """Times and results in the tables of recipes and of performance are those of the page named."""
    wrong = []
    for page in (ROOT / "docs" / "recipes.md", ROOT / "docs" / "performance.md"):
        source = ""
        for line in page.read_text().splitlines():
            linked = re.findall(r"\]\(\.\./(results/[\w/.-]+)\)", line)
            if not line.startswith("|") or not (linked or line.endswith("| the same |")):
                continue
            source = (ROOT / linked[-1]).read_text() if linked else source
            cells = "|".join(re.split(r"(?<!\\)\|", line)[2:-2])
            numbers = re.findall(r"\d[\d,]*\.?\d*", re.sub(r"`[^`]*`", "", cells))
            wrong += [(line, number) for number in numbers if number not in source]
    assert not wrong
