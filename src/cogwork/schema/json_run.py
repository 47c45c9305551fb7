"""One message on its way through a schema: what it may cost, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from reprlib import Repr
from typing import Any

__all__ = ("Check", "Exhausted", "Failure", "Run", "key_of", "shown")

STEPS_MIN = 10_000
"""Steps that any message has. A step is some tenths of a microsecond."""

STEPS_AN_OCTET = 4

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
        """Gives a message of a size its steps."""
        return cls(STEPS_MIN + STEPS_AN_OCTET * size_bytes)

    def spend(self, steps: int) -> None:
        """Takes steps.

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
        """Notes it.

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
    """Writes a value down, or as much of it as a person reads."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a number of very many digits"
    return _short.repr(value)


def _part(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _NAME.fullmatch(part) else f"[{part!r:.80}]"


def key_of(value: object, run: Run) -> object:
    """Returns what is equal where values are equal in JSON: 1 and 1.0 are, 1 and true are not."""
    run.steps -= 1
    if run.steps < 0:
        raise Exhausted
    if isinstance(value, list):
        return ("list", *(key_of(each, run) for each in value))
    if isinstance(value, dict):
        return ("dict", frozenset((name, key_of(each, run)) for name, each in value.items()))
    if isinstance(value, bool):
        return ("bool", value)
    return value
