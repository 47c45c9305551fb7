"""JSON, token by token, in the form that Spark's `from_json` takes.

Theory of operation. This reads what the quick decoder does not take: JSON with the liberties that
Spark has by default (strings in single quotes, NaN and infinities), and values that become strings
as they are written. It is slow, being plain Python, and exact: numbers are given as texts, and so
nothing is rounded here. Unlike Spark it reads to the end: what follows the value is no JSON.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Kind", "Token", "Tokens", "checked", "compact")


class Kind(Enum):
    """What a token is."""

    OBJECT = "{"
    OBJECT_END = "}"
    LIST = "["
    LIST_END = "]"
    TEXT = "text"
    INTEGER = "integer"
    FRACTION = "fraction"
    NO_NUMBER = "no number"
    TRUE = "true"
    FALSE = "false"
    NULL = "null"


class Token(NamedTuple):
    """A value, or the beginning or the end of one.

    Attributes:
        kind: What it is.
        text: A string as it is meant, a number as it is written.
    """

    kind: Kind
    text: str


BLANK = re.compile(r"[ \t\r\n]*")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
NO_NUMBER = re.compile(r"NaN|[+-]?Infinity|[+-]INF")
PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]*'),
    "'": re.compile(r"[^'\\\x00-\x1f]*"),
}
SURROGATE = re.compile(r"[\ud800-\udfff]")
HEX = re.compile(r"[0-9a-fA-F]{4}")
ESCAPED = {
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
WORDS = {"true": Kind.TRUE, "false": Kind.FALSE, "null": Kind.NULL}
BRACKETS = {kind.value: kind for kind in Kind if len(kind.value) == 1}

TO_ESCAPE = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}

REWORDED = {
    "-0": "0",
    "NaN": '"NaN"',
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), '"Infinity"'),
    **dict.fromkeys(("-Infinity", "-INF"), '"-Infinity"'),
}
"""What Spark writes in another way than it was."""

PLAIN_EXPONENTS = range(-3, 7)
"""Java writes floats of these without an exponent."""


class Tokens:
    """Reads one value."""

    def __init__(self, text: str) -> None:
        """Initialize it; it stands before the first token.

        Args:
            text: The JSON.
        """
        self._text = text
        self._at = 0

    def value(self) -> Token:
        """Return the next token, which begins a value.

        Raises:
            ValueError: None does.
        """
        token = self._token()
        if token.kind in {Kind.OBJECT_END, Kind.LIST_END}:
            raise ValueError("a value was expected")
        return token

    def items(self) -> Iterator[Token]:
        """Yield the first token of each value of a list that has begun; the rest is read between.

        Raises:
            ValueError: It is malformed.
        """
        token = self._token()
        while token.kind is not Kind.LIST_END:
            if token.kind is Kind.OBJECT_END:
                raise ValueError("a list was not ended")
            yield token
            if self._separator("]"):
                return
            token = self.value()

    def fields(self) -> Iterator[tuple[str, Token]]:
        """Yield the names of an object that has begun, and of each the first token of its value.

        Raises:
            ValueError: It is malformed.
        """
        token = self._token()
        while token.kind is not Kind.OBJECT_END:
            if token.kind is not Kind.TEXT:
                raise ValueError("a name was expected")
            self._expect(":")
            yield token.text, self.value()
            if self._separator("}"):
                return
            token = self._token()
            if token.kind is Kind.OBJECT_END:
                raise ValueError("a name was expected")

    def skip(self, token: Token) -> None:
        """Read the rest of a value.

        Raises:
            ValueError: It is malformed.
        """
        if token.kind is Kind.LIST:
            for item in self.items():
                self.skip(item)
        elif token.kind is Kind.OBJECT:
            for _, value in self.fields():
                self.skip(value)

    def end(self) -> None:
        """See that nothing follows.

        Raises:
            ValueError: Something does.
        """
        self._pass_blanks()
        if self._at != len(self._text):
            raise ValueError("something follows the value")

    def _pass_blanks(self) -> str:
        match = BLANK.match(self._text, self._at)
        self._at = self._at if match is None else match.end()
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str) -> None:
        if self._pass_blanks() != character:
            raise ValueError(f"{character} was expected")
        self._at += 1

    def _separator(self, end: str) -> bool:
        """Read a comma, or the end; return whether it was the end."""
        found = self._pass_blanks()
        if found not in {",", end}:
            raise ValueError(f", or {end} was expected")
        self._at += 1
        return found == end

    def _token(self) -> Token:
        first = self._pass_blanks()
        if first in PLAIN:
            return Token(Kind.TEXT, self._string(first))
        if first in BRACKETS:
            self._at += 1
            return Token(BRACKETS[first], first)
        for word, kind in WORDS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return Token(kind, word)
        return self._number()

    def _number(self) -> Token:
        if (match := NUMBER.match(self._text, self._at)) is not None:
            is_integer = match[1] is None and match[2] is None
            kind = Kind.INTEGER if is_integer else Kind.FRACTION
        elif (match := NO_NUMBER.match(self._text, self._at)) is not None:
            kind = Kind.NO_NUMBER
        else:
            raise ValueError("not a value")
        self._at = match.end()
        return Token(kind, match[0])

    def _string(self, quote: str) -> str:
        parts = []
        self._at += 1
        while True:
            match = PLAIN[quote].match(self._text, self._at)
            if match is None:  # it matches nothing at least
                raise ValueError("a string is not ended")
            parts.append(match[0])
            self._at = match.end() + 1
            ended_by = self._text[match.end() : self._at]
            if ended_by == quote:
                return _whole("".join(parts))
            if ended_by != "\\":
                raise ValueError("a string is not ended")
            parts.append(self._escaped())

    def _escaped(self) -> str:
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        if letter != "u":
            if letter not in ESCAPED:
                raise ValueError("nothing is escaped like that")
            return ESCAPED[letter]
        digits = HEX.match(self._text, self._at)
        if digits is None:
            raise ValueError("four hexadecimal digits were expected")
        self._at += 4
        return chr(int(digits[0], 16))


def _whole(text: str) -> str:
    """Join characters that were escaped as two surrogates."""
    if SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def checked(text: str) -> str:
    """Return a text; half of a character is none.

    Raises:
        ValueError: It has a surrogate without the other one.
    """
    if SURROGATE.search(text) is not None:
        raise ValueError("half of a surrogate pair is no character")
    return text


def compact(token: Token, tokens: Tokens) -> str:
    """Return a value as Spark makes a string of it; a string in it is quoted.

    Args:
        token: Where the value begins.
        tokens: Has the rest.
    """
    if token.kind is Kind.LIST:
        return f"[{','.join(compact(item, tokens) for item in tokens.items())}]"
    if token.kind is Kind.OBJECT:
        fields = (f"{_quoted(name)}:{compact(value, tokens)}" for name, value in tokens.fields())
        return f"{{{','.join(fields)}}}"
    if token.kind is Kind.TEXT:
        return _quoted(token.text)
    return _fraction(token.text) if token.kind is Kind.FRACTION else _word(token.text)


def _word(text: str) -> str:
    return REWORDED.get(text, text)


def _quoted(text: str) -> str:
    def escape(match: re.Match[str]) -> str:
        units = match[0].encode("utf-16-be")
        halves = (units[at : at + 2].hex().upper() for at in range(0, len(units), 2))
        return SHORT_ESCAPES.get(match[0]) or "".join(f"\\u{half}" for half in halves)

    return f'"{TO_ESCAPE.sub(escape, checked(text))}"'


def _fraction(text: str) -> str:
    """Write a number as Java does; where a float would not be the same number, as it is written."""
    value = float(text)
    written = repr(value)
    exact = Decimal(text)
    if Decimal(written) != exact:
        return text
    sign = "-" if text.startswith("-") else ""
    digits = "".join(map(str, exact.as_tuple().digits)).strip("0") or "0"
    exponent = exact.adjusted() if exact else 0
    if exponent not in PLAIN_EXPONENTS:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    plain = f"{abs(exact):f}"
    whole, _, part = plain.partition(".")
    return f"{sign}{whole}.{part.rstrip('0') or '0'}"
