"""The pages: their Python runs, their commands parse, their links lead somewhere.

A block of Python below a comment `<!-- not run -->` is left out, and one below `<!-- slow -->` runs
in the slow tests. The blocks of a page share their names, as for somebody who types them in.
"""

import os
import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
] + sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"(?:<!-- (?P<mark>[a-z ]+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.S)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)(?P<target>[^)\s]+)\)")


def blocks(page: Path, language: str) -> Iterator[tuple[str | None, int, str]]:
    """The mark, the first line's number and the text of every block of a page."""
    text = page.read_text()
    for match in BLOCK.finditer(text):
        if match["language"] == language:
            yield match["mark"], text.count("\n", 0, match.start("text")), match["text"]


def with_blocks(marks: set[str | None]) -> list[Path]:
    return [page for page in PAGES if any(mark in marks for mark, *_ in blocks(page, "python"))]


def run(page: Path, marks: set[str | None]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for mark, line, text in blocks(page, "python"):
        if mark in marks:
            source = "\n" * line + text  # so that a traceback has the page's line
            exec(compile(source, str(page), "exec"), names)


def named(page: Path) -> str:
    return page.name


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("page", with_blocks({None}), ids=named)
def test_python_runs(page: Path) -> None:
    run(page, {None})


@pytest.mark.slow
@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("page", with_blocks({"slow"}), ids=named)
def test_slow_python_runs(page: Path) -> None:
    run(page, {None, "slow"})


def test_marks_are_known() -> None:
    marks = {mark for page in PAGES for mark, *_ in blocks(page, "python")}
    assert marks <= {None, "slow", "not run"}


def commands() -> list[str]:
    """Every line of a shell block that calls the command, as it is typed."""
    found = []
    for page in PAGES:
        for _, _, text in blocks(page, "sh"):
            lines = text.replace("\\\n", " ").splitlines()
            found += [line for line in lines if line.startswith("windvane ")]
    return found


@pytest.mark.parametrize("line", commands())
def test_commands_parse(line: str) -> None:
    from windvane.cli import page_for, parse
    from windvane.cli.training import Train

    arguments = shlex.split(line, comments=True)[1:]
    if page_for(arguments) is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        command = parse(arguments)
    if isinstance(command, Train):
        _ = command.config  # checks the settings, too


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for line in re.sub(r"```.*?```", "", page.read_text(), flags=re.S).splitlines():
        if line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(words.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    broken = []
    for match in LINK.finditer(text):
        path, _, anchor = match["target"].partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        known = not anchor or target.suffix != ".md" or not target.exists()
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
