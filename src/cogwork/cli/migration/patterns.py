"""RabbitMQ's permissions: regular expressions of names, as patterns of addresses."""

from __future__ import annotations

import re

from cogwork.router.addresses import InvalidAddressError, normalize
from cogwork.router.patterns import is_pattern

__all__ = ("addresses_of",)

ALL = re.compile(r"\^?\.\*\$?")
NONE = re.compile(r"\^?\$|")
ANCHORED = re.compile(r"\^(.+)\$")
GROUPED = re.compile(r"\((?:\?:)?([^()]+)\)")
PREFIX = re.compile(r"\^(.+)\\\.\.\*\$?")
"""All names that begin with some words and a dot."""

LITERAL = re.compile(r"(?:[A-Za-z0-9_:/ -]|\\[.+*?(){}\[\]|^$\\-])+")
"""What stands for itself: letters, and signs that are escaped."""


def addresses_of(expression: str) -> list[str] | None:
    """Return the patterns of addresses that match what a regular expression of names does.

    Only those are translated that mean the very same: everything, nothing, names one by one, and
    all names below a word. What would allow more or less is left to people.

    Args:
        expression: As RabbitMQ has it for `configure`, `write` or `read`.

    Returns:
        Patterns; None for an expression that has none.
    """
    if ALL.fullmatch(expression):
        return ["#"]
    if NONE.fullmatch(expression):
        return []
    below = PREFIX.fullmatch(expression)
    if below is not None:
        return _of([below[1]], ".*.#")
    exact = ANCHORED.fullmatch(expression)
    if exact is None:
        return None  # RabbitMQ looks for it anywhere in a name
    grouped = GROUPED.fullmatch(exact[1])
    return _of([exact[1]] if grouped is None else grouped[1].split("|"), "")


def _of(literals: list[str], ending: str) -> list[str] | None:
    found = []
    for literal in literals:
        if not LITERAL.fullmatch(literal):
            return None
        name = re.sub(r"\\(.)", r"\1", literal)
        for kind in ("queue", "exchange"):
            try:
                address = normalize(f"{kind}/{name}")
            except InvalidAddressError:
                return None
            if is_pattern(address):
                return None
            found.append(address + ending)
    return found
