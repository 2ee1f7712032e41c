"""What the documentation's site needs beyond `docs/`: mkdocs calls these functions.

Links in the pages are those that work on GitHub, from file to file. Pages outside `docs/`, such as
those of `results/`, become part of the site under their own paths; so do data and pictures that
pages link to, and a source file is shown as a page. Links are rewritten to match.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# The extra `docs` has it; checkers run without.
from mkdocs.config.defaults import MkDocsConfig  # type: ignore[import-not-found]
from mkdocs.structure.files import File, Files  # type: ignore[import-not-found]
from mkdocs.structure.pages import Page  # type: ignore[import-not-found]

from scripts import site_reference

ROOT = Path(__file__).parents[1]
OUTSIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASING.md", "CHANGELOG.md")
SOURCES = {".py": "python", ".cff": "yaml", "": "text"}
"""Endings of files that are shown as a page, and their languages."""
LAST_FOUND = ("results/", "examples/", "CHANGELOG")
"""Pages that the search shows after others, as it does those of the API."""
LINK = re.compile(r"(?P<before>\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
FENCE = re.compile(r"(^```.*?^```)", re.M | re.S)
MARK = re.compile(r"^<!-- (?:slow|(?:not run|run with|example): .*) -->\n", re.M)
"""What `tests/test_docs.py` reads above a block."""
GENERATED = re.compile(r"^<!-- generated: (?P<name>[\w ]+) -->$", re.M)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add what lies outside `docs/`."""
    pages = [*(ROOT / name for name in OUTSIDE), *sorted((ROOT / "results").rglob("*.md"))]
    for path in pages:
        files.append(_file(path, config))
    pages += [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    for target in sorted({target for page in pages for target in _targets(page)}):
        uri = site_uri(target)
        if uri in files.src_uris:
            continue
        if uri == target:
            files.append(_file(ROOT / target, config))
        else:
            files.append(File.generated(config, uri, content=_listing(ROOT / target)))


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in what is generated, and have links lead to the site's pages."""
    markdown = GENERATED.sub(lambda match: site_reference.PARTS[match["name"]](), markdown)
    markdown = MARK.sub("", markdown)
    here = page.file.src_uri
    if here.startswith(LAST_FOUND) or "\n::: " in markdown:
        page.meta["search"] = {"boost": 0.02}  # against a factor of 1,000 for titles
    source = repository_path(here)

    def rewritten(match: re.Match[str]) -> str:
        target = _resolve(source, match["path"])
        if target == "README.md":  # the home page is its place
            return match["before"] + _relative(here, "index.md")
        return match["before"] + _relative(here, site_uri(target)) + (match["anchor"] or "")

    return _outside_fences(markdown, lambda text: LINK.sub(rewritten, text))


def site_uri(path: str) -> str:
    """Where a file of the repository is found in the site's sources."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"{path}.md" if posixpath.splitext(path)[1] in SOURCES else path


def repository_path(uri: str) -> str:
    """Where a page of the site lies in the repository."""
    return uri if (ROOT / uri).exists() else f"docs/{uri}"


def _targets(page: Path) -> Iterator[str]:
    """Files of the repository that a page links to."""
    source = page.relative_to(ROOT).as_posix()
    for text in FENCE.split(page.read_text(encoding="utf-8"))[::2]:
        for match in LINK.finditer(text):
            target = _resolve(source, match["path"])
            if (ROOT / target).is_file() and target != "README.md":
                yield target


def _resolve(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _relative(here: str, there: str) -> str:
    return posixpath.relpath(there, posixpath.dirname(here) or ".")


def _outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    parts = FENCE.split(markdown)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(parts))


def _file(path: Path, config: MkDocsConfig) -> File:
    uri = path.relative_to(ROOT).as_posix()
    return File(uri, str(ROOT), config.site_dir, config.use_directory_urls)


def _listing(path: Path) -> str:
    """A page that shows a source file."""
    name, language = path.relative_to(ROOT).as_posix(), SOURCES[path.suffix]
    return f"# {name}\n\n````{language}\n{path.read_text(encoding='utf-8')}````\n"
