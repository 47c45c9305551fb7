"""From a selector's text to tokens.

Keywords are taken in any case; identifiers and strings keep theirs. Numbers are written as in Java
(JMS 1.1 §3.8.1.1): exact ones without a point, decimal, `0x` hexadecimal or, after a leading 0,
octal, at most 64 bits; approximate ones with a point or an exponent. A name that is no identifier,
as with hyphens, goes into double quotes (SQL-92 §5.2, delimited identifier).
"""

from __future__ import annotations

import re
from enum import Enum
from math import isinf

from msgspec import Struct

__all__ = ("MAX_SELECTOR_LENGTH", "SelectorSyntaxError", "Token", "TokenKind", "tokenize")

MAX_SELECTOR_LENGTH = 8192
"""Characters. Selectors that people write are below a hundred; each is run for each message."""

KEYWORDS = frozenset(
    ["AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"]
)

_TOKEN = re.compile(
    r"""
      (?P<space>\s++)
    | (?P<text>'(?:[^']++|'')*+')
    | (?P<quoted>"(?:[^"]++|"")++")
    | (?P<approximate>(?:\d++\.\d*+|\.\d++)(?:[eE][+-]?\d++)?[fFdD]?
                     |\d++[eE][+-]?\d++[fFdD]?|\d++[fFdD])
    | (?P<exact>0[xX][0-9a-fA-F]++[lL]?|\d++[lL]?)
    | (?P<word>(?:[^\W\d]|\$)[\w$]*+(?:\.[\w$]++)*+)
    | (?P<sign><>|<=|>=|[=<>+\-*/(),])
    """,
    re.VERBOSE,
)
_WORD_GOES_ON = re.compile(r"[\w$.]")


class SelectorSyntaxError(ValueError):
    """A text that is no selector.

    Attributes:
        position: Where, in characters from 0.
        problem: What stands there.
        expected: What could stand there.
    """

    def __init__(self, position: int, problem: str, expected: str) -> None:
        super().__init__(f"selector, character {position + 1}: {problem}; expected {expected}")
        self.position = position
        self.problem = problem
        self.expected = expected


class TokenKind(Enum):
    """What a token is."""

    KEYWORD = "keyword"
    IDENTIFIER = "identifier"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"
    END = "end"


class Token(Struct, frozen=True):
    """One token.

    Attributes:
        kind: What it is.
        value: A keyword in capitals, an identifier's name, a literal's value, a sign as written.
        position: Where it begins, in characters from 0.
        shown: As written, for errors.
    """

    kind: TokenKind
    value: str | int | float
    position: int
    shown: str


def tokenize(text: str, parts_max: int | None = None) -> list[Token]:
    """Take a selector apart; an END token closes the list.

    Args:
        text: The selector.
        parts_max: How many words, literals and signs it may have, commas aside; None for any.

    Raises:
        SelectorSyntaxError: The text is too long, or has something that is no token.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        problem = f"a selector of {len(text)} characters"
        raise SelectorSyntaxError(MAX_SELECTOR_LENGTH, problem, f"at most {MAX_SELECTOR_LENGTH}")
    tokens: list[Token] = []
    position = parts = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _no_token(text, position)
        if found.lastgroup != "space":
            tokens.append(_token(found, text))
            parts += found.group() != ","
            if parts_max is not None and parts > parts_max:
                problem = f"a selector of more than {parts_max} words, literals and signs"
                raise SelectorSyntaxError(position, problem, "a shorter one, or IN with a list")
        position = found.end()
    tokens.append(Token(TokenKind.END, "", len(text), "the end"))
    return tokens


def _token(found: re.Match[str], text: str) -> Token:
    shown, position = found.group(), found.start()
    match found.lastgroup:
        case "text":
            value = shown[1:-1].replace("''", "'")
            return Token(TokenKind.STRING, value, position, "a string")
        case "quoted":
            return Token(TokenKind.IDENTIFIER, shown[1:-1].replace('""', '"'), position, shown)
        case "exact" | "approximate" as form:
            if _WORD_GOES_ON.match(text, found.end()):
                raise SelectorSyntaxError(found.end(), f"goes on after {shown}", "a number's end")
            number = _exact(shown, position) if form == "exact" else _approximate(shown, position)
            return Token(TokenKind.NUMBER, number, position, shown)
        case "word" if shown.upper() in KEYWORDS:
            return Token(TokenKind.KEYWORD, shown.upper(), position, shown.upper())
        case "word":
            return Token(TokenKind.IDENTIFIER, shown, position, shown)
    return Token(TokenKind.SIGN, shown, position, shown)


def _exact(shown: str, position: int) -> int:
    digits = shown.rstrip("lL")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    try:
        number = int(digits, 8 if octal else 0)
    except ValueError:
        raise SelectorSyntaxError(position, shown, "octal digits after a leading 0") from None
    # 2**63 itself is the number of -2**63, whose sign is an operator.
    if number > 2**63:
        raise SelectorSyntaxError(position, shown, "a number of at most 64 bits")
    return number


def _approximate(shown: str, position: int) -> float:
    number = float(shown.rstrip("fFdD"))
    if isinf(number):
        raise SelectorSyntaxError(position, shown, "a number below 1.8e308")
    return number


def _no_token(text: str, position: int) -> SelectorSyntaxError:
    character = text[position]
    if character in "'\"":
        return SelectorSyntaxError(position, f"{character} opens", f"a closing {character}")
    if character == "!":
        return SelectorSyntaxError(position, "!", "<> for unequal, or NOT")
    return SelectorSyntaxError(position, character, "an identifier, a literal or an operator")
