"""Reads the configuration file of a router: blocks of `key: value`, as qdrouterd takes them.

Theory of operation. The text is one block after the other, `name { key: value ... }`, with keys on
lines of their own or several on one. A value goes on to the next key, to the end of its line or of
its block, and is a word or a few. `#` begins a comment, except within a word. A value may also be a
map, from one brace to its partner, on as many lines as it needs; it is kept as text. What the
blocks mean is in `router_blocks`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from cogwork.config.errors import ConfigurationError

__all__ = ("Block", "Value", "is_router_file", "read_blocks")

SHOWN_CHARACTERS_MAX = 40

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_OPENING = re.compile(r"([A-Za-z][\w-]*)\s*\{")
_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*")
_VALUE = re.compile(
    r"(?:[^\s}][^}\n]*?)?"
    r"(?=[ \t]+[A-Za-z][\w-]*[ \t]*:(?:\s|$)|[ \t]+#|[ \t]*(?:\}|\n|\r|$))"
)


_MAP_PART = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|[{}]')
"""What decides where a map ends: a string, a comment or a brace."""


class Value(NamedTuple):
    """What stands behind a key, and where."""

    text: str
    line: int


@dataclass(frozen=True)
class Block:
    """One block.

    Attributes:
        name: As written.
        line: Where it begins, counted from 1.
        values: By key, as written, in their order; of a key that is repeated, the last one.
        repeated: The keys that stand there again, with the line of each repetition.
    """

    name: str
    line: int
    values: dict[str, Value] = field(default_factory=dict)
    repeated: list[Value] = field(default_factory=list)


def is_router_file(text: str) -> bool:
    """Return whether a text begins with a block, which no TOML document does."""
    start = _BLANK.match(text)
    return _OPENING.match(text, 0 if start is None else start.end()) is not None


def read_blocks(text: str, source_name: str) -> list[Block]:
    """Read all blocks of a file.

    Args:
        text: What stands in it.
        source_name: What messages call it.

    Raises:
        ConfigurationError: It is not made of blocks; names the line.
    """
    return _Reader(text, source_name).read()


class _Reader:
    """One way through one text."""

    def __init__(self, text: str, source_name: str) -> None:
        self._text = text
        self._source_name = source_name
        self._at = 0

    def read(self) -> list[Block]:
        """Read to the end."""
        blocks = []
        while self._skip_blank():
            opening = _OPENING.match(self._text, self._at)
            if opening is None:
                self._fail(self._rest_of_line(), "a block, as in listener { port: 5672 }")
            block = Block(opening[1], self._line())
            self._at = opening.end()
            self._fill(block)
            blocks.append(block)
        return blocks

    def _fill(self, block: Block) -> None:
        """Read the keys of a block, and its closing brace."""
        while self._skip_blank():
            if self._text[self._at] == "}":
                self._at += 1
                return
            key = _KEY.match(self._text, self._at)
            if key is None:
                self._fail(self._rest_of_line(), f"KEY: VALUE, or the }} of {block.name}")
            if key[1] in block.values:
                block.repeated.append(Value(key[1], self._line()))
            line = self._line()
            self._at = key.end()
            block.values[key[1]] = Value(self._value(key[1]), line)
        self._fail("the end of the file", f"the }} of {block.name} in line {block.line}")

    def _value(self, key: str) -> str:
        """Read what stands behind a key."""
        if self._text.startswith("{", self._at):
            return self._map(key)
        value = _VALUE.match(self._text, self._at)
        if value is None or not value[0]:
            self._fail(f"nothing behind {key}:", "a value")
        self._at = value.end()
        return value[0].strip("\"'")

    def _map(self, key: str) -> str:
        """Read a map, whose braces may hold others; those in strings and comments do not count."""
        start, line, depth = self._at, self._line(), 0
        for part in _MAP_PART.finditer(self._text, start):
            depth += {"{": 1, "}": -1}.get(part[0], 0)
            if depth == 0:
                self._at = part.end()
                return self._text[start : self._at]
        self._at = len(self._text)
        return self._fail("the end of the file", f"the }} of {key} in line {line}")

    def _skip_blank(self) -> bool:
        """Go on to what is neither space nor comment; tell whether there is anything."""
        blank = _BLANK.match(self._text, self._at)
        self._at = self._at if blank is None else blank.end()
        return self._at < len(self._text)

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _rest_of_line(self) -> str:
        rest = self._text[self._at :].partition("\n")[0].rstrip()
        more = "..." if len(rest) > SHOWN_CHARACTERS_MAX else ""
        return f'"{rest[:SHOWN_CHARACTERS_MAX]}{more}"'

    def _fail(self, found: str, expected: str) -> NoReturn:
        raise ConfigurationError(self._source_name, self._line(), "", found, expected)
