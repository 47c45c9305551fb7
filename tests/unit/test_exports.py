"""What `import cogwork` offers: the names that pages use without a module."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import cogwork

PACKAGE = Path(cogwork.__file__).parent
DOCS = PACKAGE.parents[1] / "docs"

ELSEWHERE = {"None", "Open", "RuntimeError", "SystemExit", "TypeError", "ValueError"}
"""What pages name that is no name of the package."""


@pytest.mark.parametrize("page", ["client.md", "cogs.md"])
def test_every_name_of_a_page_is_importable(page: str) -> None:
    named = set(re.findall(r"`(?:cogwork\.)?((?:[A-Z][a-z]+)+)\b", (DOCS / page).read_text()))
    assert {name for name in named - ELSEWHERE if not hasattr(cogwork, name)} == set()


def test_the_stub_names_what_is_there() -> None:
    stub = (PACKAGE / "__init__.pyi").read_text()
    imported = set(re.findall(r"^from \S+ import (\w+) as \1$", stub, re.MULTILINE))
    assert imported | {"__version__"} == set(dir(cogwork))


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == cogwork.__version__
