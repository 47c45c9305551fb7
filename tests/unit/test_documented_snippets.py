"""The snippets of the pages are Python and TOML, and name what there is.

Whole programs are run by `tests/system/test_pages.py`; a snippet may lack what stands before it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^( *)```(python|toml)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    """A block of a page.

    Attributes:
        place: Where it begins, for people.
        language: What the page says it is.
        text: What is in it.
    """

    place: str
    language: str
    text: str


def snippets() -> list[Snippet]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            place = f"{page.relative_to(ROOT)}:{line}"
            found.append(Snippet(place, block[2], textwrap.dedent(block[3])))
    return found


SNIPPETS = snippets()


def of(*languages: str) -> list[Snippet]:
    return [each for each in SNIPPETS if each.language in languages]


def tree_of(snippet: Snippet) -> ast.Module:
    """Read Python; `await` may stand outside of functions, as in a shell of asyncio."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    tree = compile(snippet.text, snippet.place, "exec", flags)
    assert isinstance(tree, ast.Module)
    return tree


def is_there(module: str, name: str) -> bool:
    """Return whether a module has something, or a package has such a module."""
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


def test_pages_have_snippets() -> None:
    assert len(of("python")) > 20
    assert len(of("toml")) > 5


def missing_in(snippet: Snippet) -> list[tuple[str, str]]:
    """List what a snippet takes from Cogwork's modules, and is not there."""
    named = set()
    for node in ast.walk(tree_of(snippet)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cogwork"):
            named |= {(str(node.module), each.name) for each in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named |= {("cogwork", node.attr)} if node.value.id == "cogwork" else set()
    return sorted(each for each in named if not is_there(*each))


@pytest.mark.parametrize("snippet", of("python"), ids=lambda each: each.place)
def test_what_a_snippet_takes_from_cogwork_is_there(snippet: Snippet) -> None:
    assert missing_in(snippet) == []


def test_what_is_gone_would_be_found() -> None:
    text = "from cogwork.client import Gone\nawait cogwork.conect(url)\n"
    gone = [("cogwork", "conect"), ("cogwork.client", "Gone")]
    assert missing_in(Snippet("here", "python", text)) == gone


@pytest.mark.parametrize("snippet", of("toml"), ids=lambda each: each.place)
def test_what_is_called_toml_is_toml(snippet: Snippet) -> None:
    assert tomllib.loads(snippet.text)
