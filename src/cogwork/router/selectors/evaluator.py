"""From a tree to a function of the message.

Three-valued logic (SQL-92 §8.12): True, False and None, which is NULL and unknown at once. What the
message lacks is None, and what is made of None is None, except where AND meets False or OR meets
True.

Only values of one kind compare: numbers, exact with approximate; strings; truth values, for
equality alone. Any other comparison is False (JMS 1.1 §3.8.1.2). Beyond JMS, strings have an order,
by code points. Arithmetic follows Java: dividing exact numbers truncates; dividing by zero, or a
result beyond the range of numbers, gives None.

An evaluation is bounded: a selector runs for each message, on the thread that serves everybody.
What a part costs is known from the text, but for LIKE and for strings of the message that are
compared with each other: these spend steps of a `Meter`, which stops the evaluation when none are
left.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeGuard
from uuid import UUID

from cogwork.router.selectors.tree import (
    All,
    AnyOf,
    Arithmetic,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Tree,
)

__all__ = ("STEPS_MAX", "Evaluate", "Lookup", "Meter", "SelectorCostError", "evaluator")

Lookup = Callable[[str], object]
Evaluate = Callable[[Lookup], object]

STEPS_MAX = 50_000
"""Steps of one evaluation; a step takes some tenths of a microsecond."""

LITERAL_CHARACTERS = 512
"""Characters of a text that LIKE searches for a literal in one step, times those of the literal up
to `LITERAL_SIZE_MAX`: the search of longer ones takes no longer."""

LITERAL_SIZE_MAX = 16

WILDCARD_CHARACTERS = 64
"""The same for a part with `_`, which is tried at each place: times all characters of the part."""

COMPARED_CHARACTERS = 2048
"""Characters of two strings of a message that one step compares."""

NUMBER_BITS_MAX = 4096
"""Of an exact result: each further factor of a product without an end would take longer."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_KINDS: dict[type, type] = {str: str, int: float, float: float, bool: bool}
"""The kind of a plain value, by its type; values of no kind compare with nothing."""
_PLAIN = frozenset((*_KINDS, type(None)))


class SelectorCostError(Exception):
    """An evaluation takes more steps than it may."""

    def __init__(self, steps_max: int) -> None:
        super().__init__(f"more than {steps_max} steps")
        self.steps_max = steps_max


class Meter:
    """Counts down the steps that an evaluation may still take.

    Attributes:
        left: How many they are.
        steps_max: How many there are for an evaluation.
    """

    __slots__ = ("left", "steps_max")

    def __init__(self, steps_max: int) -> None:
        self.steps_max = self.left = steps_max

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            SelectorCostError: There are not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise SelectorCostError(self.steps_max)


def evaluator(tree: Tree, meter: Meter) -> Evaluate:
    """Make the function that works out the value of `tree` for the message behind a lookup.

    Args:
        tree: Of the selector, or of a part of it.
        meter: Whoever calls the function winds it up before.
    """
    return _MAKERS[type(tree)](tree, meter)


# --- values ---


def _literal(tree: Literal, _meter: Meter) -> Evaluate:
    value = tree.value
    return lambda _lookup: value


def _identifier(tree: Identifier, _meter: Meter) -> Evaluate:
    name = tree.name

    def evaluate(lookup: Lookup) -> object:
        value = lookup(name)
        return value if type(value) in _PLAIN else _plain(value)

    return evaluate


def _plain(value: object) -> object:
    """Bring a message's value to a plain type, if it has one: AMQP's integers, symbols, times."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _MILLISECOND
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, UUID):
        return str(value)
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    return value


def _is_number(value: object) -> TypeGuard[float]:
    return _KINDS.get(type(value)) is float


def _arithmetic(tree: Arithmetic, meter: Meter) -> Evaluate:
    first = evaluator(tree.first, meter)
    steps = [(_OPERATIONS[sign], evaluator(step, meter)) for sign, step in tree.steps]

    def evaluate(lookup: Lookup) -> object:
        result = first(lookup)
        for operation, step in steps:
            right = step(lookup)
            if not (_is_number(result) and _is_number(right)):
                return None
            try:
                result = operation(result, right)
            except (OverflowError, ZeroDivisionError):
                return None
            if isinstance(result, int) and result.bit_length() > NUMBER_BITS_MAX:
                return None
        return result

    return evaluate


def _negative(tree: Negative, meter: Meter) -> Evaluate:
    value = evaluator(tree.value, meter)

    def evaluate(lookup: Lookup) -> object:
        number = value(lookup)
        return -number if _is_number(number) else None

    return evaluate


def _divide(left: float, right: float) -> float:
    if not (isinstance(left, int) and isinstance(right, int)):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_OPERATIONS: dict[str, Callable[..., object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
}

# --- conditions ---


def _not(tree: Not, meter: Meter) -> Evaluate:
    condition = evaluator(tree.condition, meter)

    def evaluate(lookup: Lookup) -> object:
        value = condition(lookup)
        return not value if isinstance(value, bool) else None

    return evaluate


def _all(tree: All, meter: Meter) -> Evaluate:
    return _until(False, tree.conditions, meter)


def _any_of(tree: AnyOf, meter: Meter) -> Evaluate:
    return _until(True, tree.conditions, meter)


def _until(decisive: bool, trees: tuple[Tree, ...], meter: Meter) -> Evaluate:
    """AND until one is False, or OR until one is True; what is no truth value is unknown."""
    conditions = [evaluator(tree, meter) for tree in trees]
    otherwise = not decisive

    def evaluate(lookup: Lookup) -> object:
        result: bool | None = otherwise
        for condition in conditions:
            value = condition(lookup)
            if value is decisive:
                return decisive
            if value is not otherwise:
                result = None
        return result

    return evaluate


_COMPARE: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(tree: Comparison, meter: Meter) -> Evaluate:
    left, right = evaluator(tree.left, meter), evaluator(tree.right, meter)
    compare = _COMPARE[tree.operator]
    kinds = (str, float, bool) if tree.operator in ("=", "<>") else (str, float)
    if isinstance(tree.right, Literal):
        return _comparison_with(tree.right.value, left, compare, kinds)

    def evaluate(lookup: Lookup) -> object:
        a, b = left(lookup), right(lookup)
        if a is None or b is None:
            return None
        kind = _KINDS.get(type(a))
        if kind not in kinds or kind is not _KINDS.get(type(b)):
            return False
        if isinstance(a, str) and isinstance(b, str):
            meter.spend(min(len(a), len(b)) // COMPARED_CHARACTERS)
        return compare(a, b)

    return evaluate


def _comparison_with(
    constant: object, left: Evaluate, compare: Callable[..., bool], kinds: tuple[type, ...]
) -> Evaluate:
    """Return the same where the right side is a literal, as in most selectors."""
    kind = _KINDS[type(constant)]
    comparable = kind in kinds

    def evaluate(lookup: Lookup) -> object:
        a = left(lookup)
        if a is None:
            return None
        return comparable and _KINDS.get(type(a)) is kind and compare(a, constant)

    return evaluate


def _in(tree: In, meter: Meter) -> Evaluate:
    value = evaluator(tree.value, meter)
    # With their kinds: Python takes True for 1.
    choices = frozenset((_KINDS[type(choice)], choice) for choice in tree.choices)

    def evaluate(lookup: Lookup) -> object:
        found = value(lookup)
        if found is None:
            return None
        kind = _KINDS.get(type(found))
        return kind is not None and (kind, found) in choices

    return evaluate


def _like(tree: Like, meter: Meter) -> Evaluate:
    value = evaluator(tree.value, meter)
    head, *rest = _parts(tree.pattern, tree.escape)
    tail = rest.pop() if rest else None
    searches = [_Search(part) for part in rest if part]

    def matches(text: str) -> bool:
        meter.spend(1 + len(tree.pattern) // COMPARED_CHARACTERS)
        if not _stands(head, text, 0) or (tail is None and len(text) != len(head)):
            return False
        if tail is None:
            return True
        place, end = len(head), len(text) - len(tail)
        for search in searches:
            place = search.end_of(text, place, end, meter)
            if place < 0:
                return False
        return place <= end and _stands(tail, text, end)

    def evaluate(lookup: Lookup) -> object:
        text = value(lookup)
        if text is None:
            return None
        return isinstance(text, str) and matches(text)

    return evaluate


Part = tuple[str | None, ...]
"""Characters of a LIKE pattern between two `%`; None for `_`, which is any."""


def _parts(pattern: str, escape: str | None) -> list[Part]:
    """Take a LIKE pattern apart at each `%`."""
    parts: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts[-1].append(next(characters))
        elif character == "%":
            parts.append([])
        else:
            parts[-1].append(None if character == "_" else character)
    return [tuple(part) for part in parts]


def _stands(part: Part, text: str, at: int) -> bool:
    """Return whether a part of a pattern fits a text at a place."""
    if not 0 <= at <= len(text) - len(part):
        return False
    there = text[at : at + len(part)]
    return all(wanted in (None, found) for wanted, found in zip(part, there, strict=True))


class _Search:
    """Finds the first place of a part between two `%`, which is never tried again.

    The last part of a pattern alone is bound to a place, so the first place of each other one is
    the best, and a match costs text times pattern and no more.
    """

    def __init__(self, part: Part) -> None:
        self._size = len(part)
        self._literal = None if None in part else "".join(map(str, part))
        if self._literal is None:
            expression = "".join("." if each is None else re.escape(each) for each in part)
            self._expression = re.compile(expression, re.DOTALL)

    def end_of(self, text: str, start: int, end: int, meter: Meter) -> int:
        """Return where the first place ends in a piece of a text; -1 where there is none.

        Raises:
            SelectorCostError: That takes too many steps. A search for a literal is counted when it
                is over, for it never takes long.
        """
        end = max(start, end)
        if self._literal is None:
            meter.spend(1 + (end - start) * self._size // WILDCARD_CHARACTERS)
            found = self._expression.search(text, start, end)
            return found.end() if found else -1
        place = text.find(self._literal, start, end)
        searched = end - start if place < 0 else place - start
        meter.spend(1 + searched * min(self._size, LITERAL_SIZE_MAX) // LITERAL_CHARACTERS)
        return -1 if place < 0 else place + self._size


def _is_null(tree: IsNull, meter: Meter) -> Evaluate:
    value = evaluator(tree.value, meter)
    return lambda lookup: value(lookup) is None


_MAKERS: dict[type, Callable[..., Evaluate]] = {
    Literal: _literal,
    Identifier: _identifier,
    Arithmetic: _arithmetic,
    Negative: _negative,
    Not: _not,
    All: _all,
    AnyOf: _any_of,
    Comparison: _comparison,
    In: _in,
    Like: _like,
    IsNull: _is_null,
}
