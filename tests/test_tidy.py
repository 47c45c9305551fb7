"""Rules of the house that no linter knows: sizes, reasons, what has to be documented, declarations.

Sizes have a ratchet: the functions named here are longer than the rule allows, and none may join
them. Files have none: none is too large.
"""

from __future__ import annotations

import ast
import configparser
import functools
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "cogwork"

FILE_LINES_MAX = 1000
FUNCTION_LINES_MAX = 70

LONG_FUNCTIONS = {
    "dataplane/transport/transfers.py": {"parse_common_transfer"},
    "tests/fuzz/seeds.py": {"conversations"},  # a table
}

CIRCLE_FILES_MAX = 4

LARGE_CIRCLES = {
    "container": [39, 6],
    "dataplane": [6],
    "gateways": [9],
    "raft": [7],
    "replication": [13],
}
"""How many files of a package import each other, in each circle that is larger than the rule
allows, imports for type checking included. These numbers may only become smaller."""

DESCRIBED = {"property", "cached_property", "setter"}
"""Decorators of what a docstring describes like an attribute."""

CHECKED = ("src", "tests", "bench", "examples", "tools")
SILENCED = re.compile(
    r"#\s*(?:noqa(?::\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?|type:\s*ignore(?:\[[^\]]*\])?"
    r"|pragma:\s*no \w+|fmt:\s*(?:off|skip)|ruff:\s*noqa\S*|mypy:\s*\S+)"
)
PAGES = sorted(
    [*ROOT.glob("*.md")]
    + [page for folder in ("docs", "examples") for page in (ROOT / folder).rglob("*.md")]
)
SKIPPING = {"skip", "skipif", "xfail", "importorskip"}
HIDING = {"filterwarnings", "simplefilter"}

TABLES = {
    "amqp091.md": ("amqp091",),
    "client.md": (
        *("client", "client/connection", "client/interception", "client/links"),
        *("client/publishing", "client/receiving", "client/requests", "client/streams"),
        *("rpc", "rpc/calling", "rpc/direct", "rpc/serving"),
        "sync",
    ),
    "dataplane.md": ("dataplane",),
    "log.md": ("log",),
    "mesh.md": ("router/mesh",),
    "raft.md": ("raft",),
    "replication.md": ("replication", "container/cluster"),
    "tunnels.md": ("container/mesh", "container/federation"),
}
"""Pages of `docs/internals` that end with a table of the files in these packages."""

CIMPORT = re.compile(r"^(?:from|cimport) (?:cython\.cimports\.)?cogwork\.(\w+)", re.MULTILINE)


class Facts(NamedTuple):
    """What the rules ask of a file, found in one pass over its tree.

    Attributes:
        lines: How many it has.
        long_functions: The names of those that are too long.
        unexcused: Where it leaves a test out or hides a warning, and does not say why.
        first_words: With which word the docstring of each function begins, by where that is.
    """

    lines: int
    long_functions: set[str]
    unexcused: list[str]
    first_words: dict[str, str]


@functools.cache
def sources(*endings: str) -> list[Path]:
    """Everything that is written here, by the endings of file names."""
    paths = [path for top in CHECKED for path in (ROOT / top).rglob("*")]
    return sorted(path for path in paths if path.suffix in endings)


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCES if path.is_relative_to(SOURCES) else ROOT))


@functools.cache
def facts() -> dict[str, Facts]:
    """Look at every file of Python, by its name."""
    return {name_of(path): facts_of(path) for path in sources(".py")}


def facts_of(path: Path) -> Facts:
    text = path.read_text()
    lines = text.splitlines()
    found = Facts(text.count("\n"), set(), [], {})
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX:
                found.long_functions.add(node.name)
            if word := first_word(node):
                found.first_words[f"{path.relative_to(ROOT)}:{node.lineno}"] = word
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not is_excused(node, lines[node.lineno - 1])
        ):
            found.unexcused.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_docstrings_of_functions_are_in_the_imperative() -> None:
    """PEP 257: "Return", not "Returns"; a verb is known by its base form, that others use."""
    words = {at: word for each in facts().values() for at, word in each.first_words.items()}
    known = set(words.values()) | {"Have"}
    assert [f"{at}: {word}" for at, word in words.items() if base_forms(word) & known] == []


def first_word(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Return with what the docstring begins; None for tests and what is like an attribute."""
    names = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
    if names & DESCRIBED or node.name.startswith("test_"):
        return None
    return re.split(r"[ ,.;:\n]", ast.get_docstring(node) or "", maxsplit=1)[0] or None


def base_forms(word: str) -> set[str]:
    """Return what a verb in the third person may be derived from; nothing for other words."""
    if word == "Has":
        return {"Have"}
    return (
        {word[:-1], word[:-2], f"{word[:-3]}y"} if word.endswith("s") and len(word) > 3 else set()
    )


def test_a_file_is_a_room_one_can_live_in() -> None:
    assert {name: each.lines for name, each in facts().items() if each.lines > FILE_LINES_MAX} == {}


def test_a_function_fits_a_screen_or_two() -> None:
    """And the ratchet names nothing that has become small."""
    long = {name: each.long_functions for name, each in facts().items() if each.long_functions}
    assert long == LONG_FUNCTIONS


def test_a_part_is_understood_without_the_whole() -> None:
    """A circle of imports, for type checking too, is a room that can only be read all at once."""
    found: dict[str, list[int]] = {}
    for circle in sorted(circles_of(imports_of_modules()), key=len, reverse=True):
        if len(circle) > CIRCLE_FILES_MAX:
            package = sorted(circle)[0].split(".")[1]
            found.setdefault(package, []).append(len(circle))
    assert found == LARGE_CIRCLES


def test_circles_are_found_whatever_hangs_on_them() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"e", "a"}}
    assert sorted(map(sorted, circles_of(imports))) == [["a"], ["b", "c"], ["d"], ["e"]]


def imports_of_modules() -> dict[str, set[str]]:
    """The modules of the project that each module imports, wherever in it the import stands."""
    paths = {module_name(path): path for path in SOURCES.rglob("*.py")}
    return {name: imported_by(path, paths.keys()) - {name} for name, path in paths.items()}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_by(path: Path, modules: Collection[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
            found.update(name if name in modules else str(node.module) for name in names)
        elif isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
    return found & set(modules)


def circles_of(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of a graph, by Kosaraju's algorithm."""
    importers: dict[str, set[str]] = {name: set() for name in imports}
    for name, others in imports.items():
        for other in others:
            importers[other].add(name)
    circles: list[set[str]] = []
    taken: set[str] = set()
    for name in reversed(left_in_order(imports)):
        if name not in taken:
            circle = set(left_in_order(importers, [name], taken))
            taken |= circle
            circles.append(circle)
    return circles


def left_in_order(
    graph: Mapping[str, set[str]], starts: Iterable[str] | None = None, seen: Iterable[str] = ()
) -> list[str]:
    """The nodes that a depth-first search finds, in the order in which it leaves them."""
    seen, order = set(seen), list[str]()
    stack = [(name, False) for name in (graph if starts is None else starts)]
    while stack:
        name, is_left = stack.pop()
        if is_left:
            order.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack.extend((other, False) for other in graph[name])
    return order


@functools.cache
def layers() -> dict[str, int]:
    """Numbers the layers of the import contract by what they have, lower ones first."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    lines = parser["importlinter:contract:layers"]["layers"].strip().splitlines()
    return {
        name: number
        for number, line in enumerate(reversed(lines))
        for name in re.findall(r"\w+", line)
    }


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.pxd")), ids=name_of)
def test_declarations_keep_to_the_layers_too(path: Path) -> None:
    """The linter does not see what one compiled module takes from another."""
    own = layers()[path.relative_to(SOURCES).parts[0]]
    texts = [path.read_text()]
    if path.with_suffix(".py").exists():
        texts.append(path.with_suffix(".py").read_text())
    for text in texts:
        for layer in CIMPORT.findall(text):
            assert layers().get(layer, 0) <= own, f"{name_of(path)} takes from {layer}"


def test_every_hook_of_a_node_is_documented() -> None:
    page = (ROOT / "docs" / "nodes.md").read_text()
    tree = ast.parse((SOURCES / "plugin" / "node.py").read_text())
    node = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Node")
    hooks = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
    assert len(hooks) >= 6
    assert [hook for hook in hooks if f"`{hook}" not in page] == []


@pytest.mark.parametrize("page", TABLES)
def test_a_page_of_the_inside_names_every_file(page: str) -> None:
    """Its table says what each is for; one that is new has to be put there."""
    text = (ROOT / "docs" / "internals" / page).read_text()
    _, _, table = text.partition("## Where things are")
    named = set(re.findall(r"`(?:\w+/)*(\w+)`", table))
    files = {path.stem for folder in TABLES[page] for path in (SOURCES / folder).glob("*.p*")}
    assert sorted(files - named - {"__init__"}) == []


def test_the_page_of_foreign_clients_names_every_file_of_their_tests() -> None:
    text = (ROOT / "docs" / "internals" / "interop.md").read_text()
    names = [path.name for path in (ROOT / "tests" / "interop").glob("test_*.py")]
    assert sorted(name for name in names if f"| `{name}` |" not in text) == []


def test_what_silences_a_check_says_why_in_its_line() -> None:
    unsaid = []
    for path in sources(".py", ".pyi", ".pxd"):
        if not SILENCED.search(path.read_text()):
            continue  # not even in a text: what follows takes ten times as long
        with path.open("rb") as file:
            unsaid += [
                f"{path.relative_to(ROOT)}:{token.start[0]}"
                for token in tokenize.tokenize(file.readline)
                if token.type == tokenize.COMMENT
                and SILENCED.search(token.string)
                and not SILENCED.sub("", token.string).strip(" #")
            ]
    assert unsaid == []


def is_excused(call: ast.Call, line: str) -> bool:
    """Return whether a call that leaves a test out, or hides a warning, says why."""
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    if name in HIDING:
        return "  # " in line
    if name not in SKIPPING or "pytest" not in ast.unparse(call.func.value):
        return True
    return (name == "skip" and bool(call.args)) or any(k.arg == "reason" for k in call.keywords)


def test_what_leaves_a_test_out_or_hides_a_warning_says_why() -> None:
    assert [place for each in facts().values() for place in each.unexcused] == []


def test_no_two_test_files_have_one_name() -> None:
    """Folders of tests without an `__init__.py` are one name space to pytest."""
    flat = [
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert sorted(flat) == sorted(set(flat))


def glossary() -> list[tuple[str, list[str]]]:
    """List the terms of the glossary, each with the modules or classes where it is at home."""
    text = (ROOT / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| (`[^|]+`) \|$", text, re.MULTILINE)
    return [(term, re.findall(r"`([\w.]+)`", places)) for term, places in rows]


def texts_of(place: str) -> list[str]:
    """Return what a package, a module or a class of a module holds; nothing where it is missing.

    Args:
        place: `cogwork.package`, `cogwork.package.module` or `cogwork.package.module.Class`.
    """
    path = ROOT.joinpath("src", *place.split("."))
    if path.is_dir():
        return [each.read_text() for each in path.rglob("*.py*") if each.suffix != ".pyc"]
    texts = [
        path.with_suffix(ending).read_text()
        for ending in (".py", ".pyx", ".pxd")
        if path.with_suffix(ending).exists()
    ]
    module, _, name = place.rpartition(".")
    if texts or not name[:1].isupper():
        return texts
    return [text for text in texts_of(module) if re.search(rf"^class {name}\b", text, re.MULTILINE)]


def test_the_glossary_has_each_term_once_and_in_order() -> None:
    terms = [term.casefold() for term, _ in glossary()]
    assert len(terms) >= 80
    assert terms == sorted(set(terms))


@pytest.mark.parametrize(("term", "places"), glossary(), ids=[term for term, _ in glossary()])
def test_a_term_of_the_glossary_is_found_where_it_is_said_to_be(
    term: str, places: list[str]
) -> None:
    """The words in brackets tell two meanings apart, and need not be there."""
    words = re.sub(r" \(.*\)", "", term).replace("-", " ").split()
    pattern = re.compile(r"[\s_#-]*".join(words), re.IGNORECASE)
    assert [p for p in places if not any(map(pattern.search, texts_of(p)))] == []


@pytest.mark.parametrize("folder", [SOURCES, ROOT / "tests"], ids=name_of)
def test_every_folder_is_on_the_page_that_says_where_things_are(folder: Path) -> None:
    page = (ROOT / "docs" / "internals" / "README.md").read_text()
    names = {path.parent.name for path in folder.glob("*/*.py")}
    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_every_decision_is_on_the_page_that_lists_them() -> None:
    page = (ROOT / "docs" / "internals" / "README.md").read_text()
    paths = (ROOT / "docs" / "adr").glob("*.md")
    assert sorted(path.name for path in paths if f"(../adr/{path.name})" not in page) == []


def headings_of(page: Path) -> set[str]:
    """List what a link may name in a page, as its readers' browsers make it of the headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    names: set[str] = set()
    for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        names.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return names


def links_of(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, heading = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not heading or heading in headings_of(target))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert [link for link in links_of(page) if not leads_somewhere(page, link)] == []


def test_every_page_is_found_from_the_readme() -> None:
    found, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in found:
            found.add(page)
            named = ((page.parent / link.partition("#")[0]).resolve() for link in links_of(page))
            todo += [each / "README.md" if each.is_dir() else each for each in named]
            todo = [each for each in todo if each in PAGES]
    assert [name_of(page) for page in PAGES if page not in found] == ["CHANGELOG.md"]


def test_the_picture_of_the_packages_shows_the_imports_that_there_are() -> None:
    program = ROOT / "tools" / "architecture.py"
    checked = subprocess.run(
        [sys.executable, program, "--check"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
NAMED_PATH = re.compile(
    r"(?<![\w/.])(?:(?:src|tests|docs|bench|examples|tools|\.github)/[\w./-]*\w/?"
    r"|[A-Z_]+\.md|pyproject\.toml)"
)
MADE = "bench/build/"


def test_every_path_that_contributors_read_is_there() -> None:
    named = [each for each in NAMED_PATH.findall(CONTRIBUTING) if not each.startswith(MADE)]
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_recipe_for_contributors_names_sources_pages_and_tests() -> None:
    _, _, recipes = CONTRIBUTING.partition("## Five usual changes")
    named = {
        text.partition("\n")[0]: {each.partition("/")[0] for each in NAMED_PATH.findall(text)}
        for text in recipes.split("\n### ")[1:]
    }
    assert len(named) == 5
    assert [each for each in named if not named[each] >= {"src", "docs", "tests"}] == []


def test_contributors_are_told_of_targets_that_make_has() -> None:
    targets = re.findall(r"^([\w/%-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"(?:^ {4}|`)make ([\w/-]+)", CONTRIBUTING, re.MULTILINE)
    patterns = [re.compile(each.replace("%", r"[\w-]+")) for each in targets]
    assert len(named) >= 8
    assert [each for each in named if not any(p.fullmatch(each) for p in patterns)] == []


def test_each_claim_of_the_threat_model_names_tests_that_there_are() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    rows = re.findall(r"^\| (?!it cannot|--)(.+?) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) >= 30
    missing = []
    for claim, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
        missing += [claim] * (not named)
        missing += [test for file, test in named if not has_test(ROOT / file, test)]
    assert missing == []


@pytest.mark.parametrize("page", ["docs/internals/cluster-promises.md", "docs/operations.md"])
def test_each_promise_of_a_cluster_names_tests_that_there_are(page: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (ROOT / page).read_text())
    assert len(named) >= 10
    assert [test for file, test in named if not has_test(ROOT / file, test)] == []


def has_test(file: Path, name: str) -> bool:
    pattern = rf"^(?:async )?def {name}\("
    return file.exists() and re.search(pattern, file.read_text(), re.MULTILINE) is not None
