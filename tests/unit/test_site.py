"""The site's navigation, and the links that its hook rewrites; MkDocs itself is not needed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOOK = runpy.run_path(str(ROOT / "tools" / "site_pages.py"))


def pages_of(navigation: object) -> list[str]:
    """List the pages in the navigation, however deep."""
    if isinstance(navigation, str):
        return [navigation]
    below: Any = navigation.values() if isinstance(navigation, dict) else navigation
    return [page for each in below for page in pages_of(each)]


def test_the_navigation_has_each_page_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    docs = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    examples = [path for path in HOOK["example_files"]() if path.endswith(".md")]
    there = [*docs, *examples, *HOOK["ROOT_PAGES"].values(), HOOK["EXAMPLES"]]
    assert sorted(pages_of(settings["nav"])) == sorted(there)


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("README.md", "docs/client.md", "client.md"),
        (
            "README.md",
            "docs/operations.md#what-is-shared-where",
            "operations.md#what-is-shared-where",
        ),
        ("README.md", "docs/internals/", "internals/README.md"),
        ("README.md", "CONTRIBUTING.md", "CONTRIBUTING.md"),
        ("docs/client.md", "#errors", "#errors"),
        ("docs/client.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/tutorials/topics.md", "../client.md", "../client.md"),
        ("docs/nodes.md", "../examples/word_counter.py", "examples/word_counter.py"),
        ("docs/zeromq.md", "../examples/zeromq", "examples/index.md#zeromq"),
        ("docs/internals/README.md", "../../CONTRIBUTING.md", "../CONTRIBUTING.md"),
        ("docs/internals/README.md", "../../README.md", "../index.md"),
        ("examples/nova/README.md", "../../docs/oslo.md", "../../oslo.md"),
    ],
)
def test_a_link_leads_to_its_place_in_the_site(source: str, link: str, expected: str) -> None:
    assert HOOK["site_link"](source, link) == expected


def test_code_keeps_what_looks_like_a_link() -> None:
    text = "[a](docs/a.md)\n```python\nx[0](docs/a.md)\n```\n"
    assert HOOK["rewritten"]("README.md", text) == text.replace("docs/", "", 1)
