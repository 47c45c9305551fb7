"""Lines of keys: held to the library's own reading of the same text."""

from __future__ import annotations

import tomllib

import pytest

from cogwork.config.toml_lines import Path, find_lines, line_of

DOCUMENT = '''\
# A comment = "that is no key"
id = "one"          # [not.a.table]

[[listen]]
host = "127.0.0.1"
port = 5672

[listen.tls]
certificate = 'C:\\new'

[[listen]]
port = [ # an array = over
  "a, b]", # with # everything
  { x = 1, "y.z" = [[], [1, 2]] },
  """
  [[not.a.table]]
  key = 1 \\""" """,
]

[[listen.inner]]
a.b."c d" = 1979-05-27T07:32:00Z

[deep."quoted.name".table]
text = """say "hello"""""
raw = \'\'\'
]
it\'s\'\'\'
last = -1.5e3
[deep.later]
'''

LINES = {
    (): 1,
    ("id",): 2,
    ("listen",): 4,
    ("listen", 0): 4,
    ("listen", 0, "port"): 6,
    ("listen", 0, "tls"): 8,
    ("listen", 0, "tls", "certificate"): 9,
    ("listen", 1): 11,
    ("listen", 1, "port"): 12,
    ("listen", 1, "port", 0): 13,
    ("listen", 1, "port", 1, "y.z", 1, 1): 14,
    ("listen", 1, "port", 2): 15,
    ("listen", 1, "inner", 0): 20,
    ("listen", 1, "inner", 0, "a", "b", "c d"): 21,
    ("deep", "quoted.name", "table", "raw"): 25,
    ("deep", "quoted.name", "table", "last"): 28,
    ("deep", "later"): 29,
}


def paths(value: object, path: Path = ()) -> list[Path]:
    """List every path that the library finds."""
    children: list[tuple[Path, object]] = []
    if isinstance(value, dict):
        children = [((*path, key), child) for key, child in value.items()]
    elif isinstance(value, list):
        children = [((*path, at), child) for at, child in enumerate(value)]
    return [path, *(found for at, child in children for found in paths(child, at))]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_path_of_the_library_has_a_line_and_no_other_has(newline: str) -> None:
    text = DOCUMENT.replace("\n", newline)
    assert set(find_lines(text)) == set(paths(tomllib.loads(text)))


@pytest.mark.parametrize(("path", "line"), LINES.items())
def test_the_line_is_where_the_key_stands(path: Path, line: int) -> None:
    assert find_lines(DOCUMENT)[path] == line


def test_a_missing_key_has_the_line_of_its_table() -> None:
    lines = find_lines(DOCUMENT)
    assert line_of(lines, ("listen", 1, "transport")) == 11
    assert line_of(lines, ("nowhere", 3, "key")) == 1


def test_an_empty_document_has_a_line() -> None:
    assert find_lines("") == {(): 1}
