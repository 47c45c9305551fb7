"""From a tree to a function of the message.

Three-valued logic (SQL-92 §8.12): True, False and None, which is NULL and unknown at once. What the
message lacks is None, and what is made of None is None, except where AND meets False or OR meets
True.

Only values of one kind compare: numbers, exact with approximate; strings; truth values, for
equality alone. Any other comparison is False (JMS 1.1 §3.8.1.2). Beyond JMS, strings have an order,
by code points. Arithmetic follows Java: dividing exact numbers truncates; dividing by zero, or a
result beyond the range of numbers, gives None. So does LIKE of a text that is so long that to look
at it would hold up everybody else.
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

__all__ = ("Evaluate", "Lookup", "evaluator")

Lookup = Callable[[str], object]
Evaluate = Callable[[Lookup], object]

LIKE_STEPS_MAX = 10_000_000
"""Characters of a text times those of its pattern: some ten milliseconds at worst."""

NUMBER_BITS_MAX = 4096
"""Of an exact result: each further factor of a product without an end would take longer."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_KINDS: dict[type, type] = {str: str, int: float, float: float, bool: bool}
"""The kind of a plain value, by its type; values of no kind compare with nothing."""
_PLAIN = frozenset((*_KINDS, type(None)))


def evaluator(tree: Tree) -> Evaluate:
    """Makes the function that works out the value of `tree` for the message behind a lookup."""
    return _MAKERS[type(tree)](tree)


# --- values ---


def _literal(tree: Literal) -> Evaluate:
    value = tree.value
    return lambda _lookup: value


def _identifier(tree: Identifier) -> Evaluate:
    name = tree.name

    def evaluate(lookup: Lookup) -> object:
        value = lookup(name)
        return value if type(value) in _PLAIN else _plain(value)

    return evaluate


def _plain(value: object) -> object:
    """Brings a message's value to a plain type, if it has one: AMQP's integers, symbols, times."""
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


def _arithmetic(tree: Arithmetic) -> Evaluate:
    first = evaluator(tree.first)
    steps = [(_OPERATIONS[sign], evaluator(step)) for sign, step in tree.steps]

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


def _negative(tree: Negative) -> Evaluate:
    value = evaluator(tree.value)

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


def _not(tree: Not) -> Evaluate:
    condition = evaluator(tree.condition)

    def evaluate(lookup: Lookup) -> object:
        value = condition(lookup)
        return not value if isinstance(value, bool) else None

    return evaluate


def _all(tree: All) -> Evaluate:
    return _until(False, tree.conditions)


def _any_of(tree: AnyOf) -> Evaluate:
    return _until(True, tree.conditions)


def _until(decisive: bool, trees: tuple[Tree, ...]) -> Evaluate:
    """AND until one is False, or OR until one is True; what is no truth value is unknown."""
    conditions = [evaluator(tree) for tree in trees]
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


def _comparison(tree: Comparison) -> Evaluate:
    left, right = evaluator(tree.left), evaluator(tree.right)
    compare = _COMPARE[tree.operator]
    kinds = (str, float, bool) if tree.operator in ("=", "<>") else (str, float)
    if isinstance(tree.right, Literal):
        return _comparison_with(tree.right.value, left, compare, kinds)

    def evaluate(lookup: Lookup) -> object:
        a, b = left(lookup), right(lookup)
        if a is None or b is None:
            return None
        kind = _KINDS.get(type(a))
        return kind in kinds and kind is _KINDS.get(type(b)) and compare(a, b)

    return evaluate


def _comparison_with(
    constant: object, left: Evaluate, compare: Callable[..., bool], kinds: tuple[type, ...]
) -> Evaluate:
    """The same where the right side is a literal, as in most selectors."""
    kind = _KINDS[type(constant)]
    comparable = kind in kinds

    def evaluate(lookup: Lookup) -> object:
        a = left(lookup)
        if a is None:
            return None
        return comparable and _KINDS.get(type(a)) is kind and compare(a, constant)

    return evaluate


def _in(tree: In) -> Evaluate:
    value = evaluator(tree.value)
    # With their kinds: Python takes True for 1.
    choices = frozenset((_KINDS[type(choice)], choice) for choice in tree.choices)

    def evaluate(lookup: Lookup) -> object:
        found = value(lookup)
        if found is None:
            return None
        kind = _KINDS.get(type(found))
        return kind is not None and (kind, found) in choices

    return evaluate


def _like(tree: Like) -> Evaluate:
    value = evaluator(tree.value)
    size_max = LIKE_STEPS_MAX // max(len(tree.pattern), 1)
    fits = re.compile(_expression(tree.pattern, tree.escape), re.DOTALL).fullmatch

    def evaluate(lookup: Lookup) -> object:
        text = value(lookup)
        if text is None or (isinstance(text, str) and len(text) > size_max):
            return None
        return isinstance(text, str) and fits(text) is not None

    return evaluate


def _expression(pattern: str, escape: str | None) -> str:
    """Writes a LIKE pattern as a regular expression.

    What stands between two `%` takes its first place and is never tried again (an atomic group):
    the last part alone is bound to a place, so a match costs text times pattern and no more.
    """
    parts = [""]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts[-1] += re.escape(next(characters))
        elif character == "%":
            parts.append("")
        else:
            parts[-1] += "." if character == "_" else re.escape(character)
    head, *middle = parts
    if not middle:
        return head
    tail = middle.pop()
    return head + "".join(f"(?>.*?{part})" for part in middle if part) + ".*" + tail


def _is_null(tree: IsNull) -> Evaluate:
    value = evaluator(tree.value)
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
