"""Rules of the house that no linter knows: sizes, documented hooks, purity of declarations.

Sizes have a ratchet: the files named here are larger than the rule allows. They may shrink, never
grow, and no file may join them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "cogwork"

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

LARGE_FILES: dict[str, int] = {}
LONG_FUNCTIONS = {
    "dataplane/wire.py": {"scan_run"},
    "dataplane/entry.py": {"multicast_run"},
    "dataplane/transfers.py": {"parse_common_transfer"},
    "dataplane/scan.py": {"parse_transfer", "parse_flow", "parse_disposition"},
}

LAYERS = (
    "amqp",
    "dataplane",
    "router",
    "log",
    "consensus",
    "spi",
    "nodes",
    "io",
    "container",
    "cli",
)
"""Lower ones first: a declaration file takes declarations from its own layer or a lower one."""

CIMPORT = re.compile(r"^(?:from|cimport) (?:cython\.cimports\.)?cogwork\.(\w+)", re.MULTILINE)


def modules() -> list[Path]:
    return sorted(SOURCES.rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCES))


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_file_is_a_room_one_can_live_in(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= LARGE_FILES.get(name_of(path), FILE_LINES_MAX)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_function_fits_a_screen_or_two(path: Path) -> None:
    allowed = LONG_FUNCTIONS.get(name_of(path), set())
    tree = ast.parse(path.read_text())
    long = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
    }
    assert long <= allowed


def test_the_ratchet_names_nothing_that_has_become_small() -> None:
    small = [
        name for name in LARGE_FILES if (SOURCES / name).read_text().count("\n") <= FILE_LINES_MAX
    ]
    assert small == []


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.pxd")), ids=name_of)
def test_declarations_keep_to_the_layers_too(path: Path) -> None:
    own = LAYERS.index(path.relative_to(SOURCES).parts[0])
    texts = [path.read_text()]
    if path.with_suffix(".py").exists():
        texts.append(path.with_suffix(".py").read_text())
    for text in texts:
        for layer in CIMPORT.findall(text):
            if layer in LAYERS:
                assert LAYERS.index(layer) <= own, f"{name_of(path)} takes from {layer}"


def test_every_hook_of_a_node_is_documented() -> None:
    page = (ROOT / "docs" / "nodes.md").read_text()
    tree = ast.parse((SOURCES / "spi" / "node.py").read_text())
    node = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Node")
    hooks = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
    assert len(hooks) >= 6
    assert [hook for hook in hooks if f"`{hook}" not in page] == []


def test_no_two_test_files_have_one_name() -> None:
    """Folders of tests without an `__init__.py` are one name space to pytest."""
    flat = [
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert sorted(flat) == sorted(set(flat))


def test_the_readme_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []
