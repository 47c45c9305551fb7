"""A hook of MkDocs: brings pages from outside of `docs/` into the site, and makes links lead there.

In the repository, README.md links to docs/client.md, and docs/nodes.md to ../examples. The site has
README.md as its index.md, the pages of docs/ at the top, and examples/ beside them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

ROOT_PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "SECURITY.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
"""Pages in the root of the repository, and what they are called in the site."""

EXAMPLES = "examples/index.md"
"""The generated page that lists the examples."""

CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def site_path(path: str) -> str:
    """Return where the site has a file of the repository; a folder of examples is in their list."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    if path.startswith("docs/"):
        path = path.removeprefix("docs/")
        return path if PurePosixPath(path).suffix else f"{path}/README.md"
    if path.startswith("examples/") and not PurePosixPath(path).suffix:
        return f"{EXAMPLES}#{path.removeprefix('examples/').replace('/', '')}"
    return path


def repository_path(path: str) -> str:
    """Return which file of the repository a page of the site is made of."""
    for name, page in ROOT_PAGES.items():
        if path == page:
            return name
    return path if path.startswith("examples/") else f"docs/{path}"


def site_link(source: str, link: str) -> str:
    """Return a link as the site needs it.

    Args:
        source: The file of the repository that has the link.
        link: The link, relative to that file.
    """
    if "://" in link or link.startswith(("#", "mailto:")):
        return link
    name, hash_sign, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(source), name))
    page = os.path.dirname(site_path(source))
    path, _, heading = site_path(target).partition("#")
    relative = os.path.relpath(path, page or ".")
    return f"{relative}#{heading}" if heading else f"{relative}{hash_sign}{anchor}"


def rewritten(source: str, markdown: str) -> str:
    """Return a page with its links as the site needs them; code stays as it is."""
    parts, end = [], 0
    for code in CODE.finditer(markdown):
        parts += [_relinked(source, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, _relinked(source, markdown[end:])])


def _relinked(source: str, text: str) -> str:
    return LINK.sub(lambda found: f"]({site_link(source, found[1])})", text)


def example_files() -> list[str]:
    """List the files below `examples/`, by their paths in the repository."""
    found = (ROOT / "examples").rglob("*")
    own = (path for path in found if path.is_file() and "__pycache__" not in path.parts)
    return sorted(str(path.relative_to(ROOT)) for path in own)


def list_of_examples() -> str:
    """Return the page that links to each example."""
    lines = ["# Examples", ""]
    folder = ""
    for path in example_files():
        name = path.removeprefix("examples/")
        if "/" in name and name.partition("/")[0] != folder:
            folder = name.partition("/")[0]
            lines += ["", f"## {folder}", ""]
        lines.append(f"- [{name}]({name})")
    return "\n".join([*lines, ""])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make anchors as GitHub does."""
    from pymdownx.slugs import slugify  # noqa: PLC0415  # brought by mkdocs-material alone

    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what is outside of `docs/`."""
    from mkdocs.structure.files import File  # noqa: PLC0415  # tests import this module without it

    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for path in example_files():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, EXAMPLES, content=list_of_examples()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make the links of a page lead somewhere in the site."""
    del config, files
    source = page.file.src_uri
    return markdown if source == EXAMPLES else rewritten(repository_path(source), markdown)
