"""Finds the line of every key in a TOML document, which the library does not tell.

Theory of operation. The text has been parsed before, so it is valid and can be walked by its
grammar with little care: headers, `key = value` pairs, and inside values only strings, arrays and
inline tables matter, as they alone hold keys, commas and brackets. A path is what leads to a value
in the parsed document: names of keys and positions in arrays.
"""

from __future__ import annotations

import re
import tomllib

from cogwork.plugin.shape import Path

__all__ = ("Path", "find_lines", "line_of")

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY_PART = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_BARE_VALUE = re.compile(r"[^,\]}#\n]+")


def find_lines(text: str) -> dict[Path, int]:
    """Map the path of every table, key and array item to its line, counted from 1.

    Args:
        text: A valid TOML document.

    Returns:
        The first line of each; the empty path stands for the document.
    """
    return _Walker(text.replace("\r\n", "\n")).walk()


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Find the line of a path, or of the nearest table around it that is there.

    Args:
        lines: What `find_lines` returned.
        path: Where to look; may end in a key that is missing.
    """
    while path not in lines:
        path = path[:-1]
    return lines[path]


class _Walker:
    """One walk over one document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted_to = 0
        self._line = 1
        self._lines: dict[Path, int] = {(): 1}
        self._array_lengths: dict[Path, int] = {}

    def walk(self) -> dict[Path, int]:
        table: Path = ()
        self._skip_blank()
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip_blank()
        return self._lines

    def _header(self) -> Path:
        line = self._line_here()
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        *parents, name = self._key()
        self._at += 2 if is_array else 1
        path: Path = ()
        for parent in parents:
            path = self._latest((*path, parent))
            self._lines.setdefault(path, line)
        path = (*path, name)
        self._lines.setdefault(path, line)
        if is_array:
            position = self._array_lengths.get(path, 0)
            self._array_lengths[path] = position + 1
            path = (*path, position)
        self._lines[path] = line
        return path

    def _latest(self, path: Path) -> Path:
        """Follow the rule that a header below an array of tables means its latest table."""
        length = self._array_lengths.get(path, 0)
        return (*path, length - 1) if length else path

    def _pair(self, table: Path) -> None:
        line = self._line_here()
        path = table
        for part in self._key():
            path = (*path, part)
            self._lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._skip_blank()
        self._value(path)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while match := _KEY_PART.match(self._text, self._at):
            self._at = match.end()
            parts.append(_unquote(match[1]))
            if not self._text.startswith(".", self._at):
                break
            self._at += 1
        return parts

    def _value(self, path: Path) -> None:
        opening = self._text[self._at]
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            pattern = _STRING if opening in "\"'" else _BARE_VALUE
            match = pattern.match(self._text, self._at)
            assert match is not None
            self._at = match.end()

    def _array(self, path: Path) -> None:
        position = 0
        while self._enter_item("]"):
            item = (*path, position)
            self._lines[item] = self._line_here()
            self._value(item)
            position += 1

    def _inline_table(self, path: Path) -> None:
        while self._enter_item("}"):
            self._pair(path)

    def _enter_item(self, closing: str) -> bool:
        """Step over the bracket or comma before an item; False steps over the closing bracket."""
        self._skip_blank()
        if self._text[self._at] in "[{,":
            self._at += 1
            self._skip_blank()
        if self._text[self._at] != closing:
            return True
        self._at += 1
        return False

    def _skip_blank(self) -> None:
        match = _BLANK.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _line_here(self) -> int:
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        return self._line


def _unquote(key: str) -> str:
    if key[0] not in "\"'":
        return key
    value: str = tomllib.loads(f"key = {key}")["key"]
    return value
