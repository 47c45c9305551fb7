"""One message on its way through a schema: what it may cost, and what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from reprlib import Repr
from typing import Any

__all__ = ("Check", "Exhausted", "Failure", "Run", "key_of", "shown")

STEPS_MIN = 10_000
"""Steps that any message has. A step is some tenths of a microsecond."""

STEPS_AN_OCTET = 4

STEPS_A_PART = 5
"""Besides its own: of a key of a list or object, or of a number as text."""

COMPARED_SHIFT = 12
"""So many characters of a text, as a power of two, are compared in a step."""

WRITTEN_SHIFT = 9
"""So many bits of a number, as a power of two, are written in a step."""

PLAIN_MAX = 1 << 60
"""Whole numbers below it have hashes of their own: Python takes them modulo 2 ** 61 - 1."""

DEPTH_MAX = 128
"""How many schemas are followed within each other."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_short = Repr()
_short.maxlist = _short.maxdict = 4
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 3


class Exhausted(Exception):
    """A message needs more steps than it has, or goes too deep."""


class Run:
    """What is left of a message's steps.

    Attributes:
        steps: So many.
        depth: How many schemas are being followed.
    """

    __slots__ = ("depth", "steps")

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.depth = 0

    @classmethod
    def of(cls, size_bytes: int) -> Run:
        """Give a message of a size its steps."""
        return cls(STEPS_MIN + STEPS_AN_OCTET * size_bytes)

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            Exhausted: There are not so many.
        """
        self.steps -= steps
        if self.steps < 0:
            raise Exhausted


class Failure:
    """What is wrong with a value; put into words only for who wants to read it.

    Attributes:
        path: Where: names and indexes, the innermost first.
    """

    __slots__ = ("_rule", "_say", "_value", "path")

    def __init__(self, say: Callable[[str, Any], str], value: object, rule: object) -> None:
        """Note it.

        Args:
            say: Says it, of the value as it is shown, and of the rule.
            value: What is wrong.
            rule: What it should be.
        """
        self._say = say
        self._value = value
        self._rule = rule
        self.path: list[str | int] = []

    @property
    def reason(self) -> str:
        """What is wrong."""
        return self._say(shown(self._value), self._rule)

    @property
    def place(self) -> str:
        """Where it is, as a JSONPath."""
        return "$" + "".join(map(_part, reversed(self.path)))


Check = Callable[[Any, Run], Failure | None]
"""Looks at a value; returns what is wrong with it."""


def shown(value: object) -> str:
    """Write a value down, or as much of it as a person reads."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a number of very many digits"
    return _short.repr(value)


def _part(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _NAME.fullmatch(part) else f"[{part!r:.80}]"


def key_of(value: object, run: Run) -> object:
    """Return what is equal where values are equal in JSON: 1 and 1.0 are, 1 and true are not.

    Nobody can choose many values whose keys have the same hash, and so make a set of them slow:
    Python's hash of a number is known to everybody, that of a text to nobody.

    Args:
        value: Any value of JSON.
        run: Pays for it.

    Raises:
        Exhausted: It cannot.
    """
    if type(value) is int and -PLAIN_MAX < value < PLAIN_MAX:
        run.steps -= 1
        if run.steps < 0:
            raise Exhausted
        return value
    if type(value) is float and -PLAIN_MAX < value < PLAIN_MAX and value.is_integer():
        return key_of(int(value), run)
    return _text_key_of(value, run)


def _text_key_of(value: object, run: Run) -> object:
    """Make a key without any plain number: within others, the hashes of small ones do harm, too.

    Raises:
        Exhausted: It takes more steps than there are.
    """
    run.steps -= 1
    if run.steps < 0:
        raise Exhausted
    if isinstance(value, str):
        run.steps -= len(value) >> COMPARED_SHIFT
        return value
    if isinstance(value, list):
        run.steps -= STEPS_A_PART
        return ("list", *(_text_key_of(each, run) for each in value))
    if isinstance(value, dict):
        run.steps -= STEPS_A_PART + (len(value) << 1) + (sum(map(len, value)) >> COMPARED_SHIFT)
        parts = ((name, _text_key_of(each, run)) for name, each in value.items())
        return ("dict", frozenset(parts))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        run.steps -= STEPS_A_PART
        return _number_key_of(value, run)
    return value


def _number_key_of(value: float, run: Run) -> object:
    """Make a key of what a number is as floating point or, where it is none, in digits."""
    try:
        nearest = float(value) + 0.0  # which makes 0.0 of -0.0
    except OverflowError:
        nearest = math.inf
    if isinstance(value, int) and nearest != value:
        run.steps -= value.bit_length() >> WRITTEN_SHIFT
        return ("number", hex(value))
    return ("number", nearest.hex())
