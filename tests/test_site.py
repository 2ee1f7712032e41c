"""The documentation as a site: what is generated is complete, and in the built site all links,
anchors and pictures lead somewhere and nothing comes from outside.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import windvane
from scripts import site_reference
from windvane.cli.commands import COMMANDS
from windvane.cli.options import options_of
from windvane.cli.training import Train
from windvane.training.presets import PRESETS

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\|.*\| (?P<names>`[^|]*`) \| `(?P<file>windvane/[\w/]+\.py)` \|$", re.M)


def defined(path: Path) -> Iterator[str]:
    """Functions and classes of a file, and methods with their class."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{part.name}" for part in node.body if hasattr(part, "name"))


def test_functions_beside_the_paper_s_lines_exist() -> None:
    rows = list(ROW.finditer((ROOT / "docs" / "paper.md").read_text()))
    assert len(rows) > 60
    for row in rows:
        names = re.findall(r"`([\w.]+)`", row["names"])
        assert names, row[0]
        assert set(names) <= set(defined(ROOT / row["file"])), row[0]


def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    documented = set(re.findall(r"^::: ([\w.]+)", pages, flags=re.M))
    public = {f"windvane.{name}" for name in windvane.__all__ if name != "__version__"}
    assert public <= documented


def test_every_command_is_in_the_reference() -> None:
    text = site_reference.command_line()
    for name, entry in COMMANDS.items():
        assert f"## {name}\n\n" in text
        for option in options_of(entry.load()):
            assert option.flag in text, (name, option.flag)


def test_every_setting_and_preset_is_in_the_reference() -> None:
    settings, presets = site_reference.all_settings(), site_reference.presets()
    config = Train.defaults([]).config
    for name in set(config.to_json()) - {"format", "custom", "start_checksum"}:
        assert f"| `{name}` |" in settings, name
    assert "| `learning_rate` | `0.02` | Learning rate of the optimiser. |" in settings
    for name in PRESETS:
        assert f"### {name}\n" in presets
    assert "| `agent_args` | `minibatches=32`, `td_lambda=0.75` |" in presets


def test_every_part_is_in_the_reference() -> None:
    text = site_reference.parts()
    for registry in site_reference.REGISTRIES.values():
        for name, entry in registry.items():
            assert f"| `{name}` | `{entry.home}` |" in text


class Links(HTMLParser):
    """Where a page's links lead, what it loads, and its anchors."""

    def __init__(self, page: Path):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.anchors.add(str(values["id"]))
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        rel = values.get("rel") or ""
        if tag == "link" and values.get("href") and rel not in ("canonical", "next", "prev"):
            self.loaded.append(str(values["href"]))
        if tag in ("img", "script", "iframe") and values.get("src"):
            self.loaded.append(str(values["src"]))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is missing: make docs brings it")
def test_the_built_site_is_whole(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {page.resolve(): Links(page) for page in site.rglob("*.html")}
    assert len(pages) > 50
    broken = []
    for page, found in pages.items():
        if page.name == "404.html":  # its links are from the root, wherever it is served
            continue
        assert not [name for name in found.loaded if urlsplit(name).netloc], page
        for link in found.links + found.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            known = not anchor or target not in pages or anchor in pages[target].anchors
            if not target.is_file() or not (known or anchor == "__skip"):
                broken.append((page.relative_to(site), link))
    assert not broken
    assert "fonts.googleapis" not in (site / "index.html").read_text()
    assert "<!-- generated" not in (site / "reference" / "cli.html").read_text()
    assert "windvane-Policy" in "".join(
        pages[site / "reference" / "training.html"].anchors
    ).replace(".", "-")
