"""The keywords of JSON Schema that look at a value by itself; each function makes a check.

What a keyword is given is checked here, too. See `json_applicators` for those that lead to other
schemas.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cogwork.schema.errors import InvalidSchema
from cogwork.schema.json_run import Failure, Run, key_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized

    from cogwork.schema.json_pattern import Pattern
    from cogwork.schema.json_run import Check

    Patterns = Callable[[str], Pattern]

__all__ = ("ANNOTATIONS", "KEYWORDS", "TYPES", "count_of", "make_keyword", "missing_of", "names_of")

STEPS_A_DIVISION = 16
"""Of what is written in decimals."""

DIVIDED_SHIFT = 5
"""So many bits of a whole number, as a power of two, are divided in a step, at worst."""

_WORDS = ("null", "boolean", "integer", "number", "string", "array", "object")


def _is_integer(value: object) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


TYPES: dict[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: type(value) is bool,
    "integer": _is_integer,
    "number": _is_number,
    "string": lambda value: type(value) is str,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}


def _of_type(rule: object, _patterns: Patterns) -> Check:
    kinds: list[Any] = rule if isinstance(rule, list) else [rule]
    if not kinds or not all(isinstance(each, str) and each in TYPES for each in kinds):
        raise InvalidSchema(f"{shown(rule)} is none of {', '.join(_WORDS)}")
    if len(set(kinds)) < len(kinds):
        raise InvalidSchema(f"{shown(rule)} names a type twice")
    tests = [TYPES[each] for each in kinds]
    if len(tests) == 1:
        test = tests[0]

        def check_one(value: object, _run: Run) -> Failure | None:
            return None if test(value) else Failure(_say_type, value, rule)

        return check_one

    def check(value: object, _run: Run) -> Failure | None:
        return None if any(test(value) for test in tests) else Failure(_say_type, value, rule)

    return check


def _say_type(value: str, rule: Any) -> str:  # noqa: ANN401  # what the keyword is given
    kinds = rule if isinstance(rule, list) else [rule]
    return f"{value} is not of type {', '.join(map(repr, kinds))}"


def _enum(rule: object, _patterns: Patterns) -> Check:
    if not isinstance(rule, list):
        raise InvalidSchema("a list is expected")
    return _among(rule, lambda value, _: f"{value} is not one of {shown(rule)}")


def _const(rule: object, _patterns: Patterns) -> Check:
    return _among([rule], lambda value, _: f"{shown(rule)} was expected, not {value}")


def _among(values: list[Any], say: Callable[[str, Any], str]) -> Check:
    free = Run(1 << 30)
    keys = {key_of(each, free) for each in values}
    has_parts = any(isinstance(each, list | dict) for each in values)

    def check(value: object, run: Run) -> Failure | None:
        if isinstance(value, list | dict) and not has_parts:
            return Failure(say, value, None)
        return None if key_of(value, run) in keys else Failure(say, value, None)

    return check


# -- numbers


def _limit(fits: Callable[[Any, Any], bool], words: str) -> Callable[[object, Patterns], Check]:
    def make(rule: object, _patterns: Patterns) -> Check:
        if not _is_number(rule):
            raise InvalidSchema(f"a number is expected, not {shown(rule)}")

        def check(value: object, _run: Run) -> Failure | None:
            if not _is_number(value) or fits(value, rule):
                return None
            return Failure(lambda value, rule: f"{value} {words} {rule}", value, rule)

        return check

    return make


def _multiple_of(rule: object, _patterns: Patterns) -> Check:
    if not isinstance(rule, int | float) or not _is_number(rule) or rule <= 0:
        raise InvalidSchema(f"a number above 0 is expected, not {shown(rule)}")
    # As it is written: 0.3 is a multiple of 0.1, which it is not in binary.
    step = Fraction(repr(rule))

    def check(value: object, run: Run) -> Failure | None:
        if not isinstance(value, int | float) or not _is_number(value):
            return None
        run.spend(STEPS_A_DIVISION)
        if isinstance(value, int):
            run.spend(value.bit_length() >> DIVIDED_SHIFT)
        if isinstance(value, int) and isinstance(rule, int):
            rest: object = value % rule
        else:
            rest = Fraction(value if isinstance(value, int) else repr(value)) % step
        return Failure(_say_multiple, value, rule) if rest else None

    return check


def _say_multiple(value: str, rule: object) -> str:
    return f"{value} is not a multiple of {rule}"


# -- sizes


def _size(
    kind: type[Sized], fits: Callable[[int, int], bool], words: str
) -> Callable[[object, Patterns], Check]:
    def make(rule: object, _patterns: Patterns) -> Check:
        count = count_of(rule)

        def check(value: object, _run: Run) -> Failure | None:
            if not isinstance(value, kind) or fits(len(value), count):
                return None
            return Failure(lambda value, rule: f"{value} {words} {rule}", value, count)

        return check

    return make


def count_of(rule: object) -> int:
    """Read a whole number that is not negative.

    Raises:
        InvalidSchema: It is none.
    """
    if not isinstance(rule, int | float) or not _is_integer(rule) or rule < 0:
        raise InvalidSchema(f"a whole number from 0 on is expected, not {shown(rule)}")
    return int(rule)


def _pattern(rule: object, patterns: Patterns) -> Check:
    if not isinstance(rule, str):
        raise InvalidSchema(f"a regular expression is expected, not {shown(rule)}")
    pattern = patterns(rule)

    def check(value: object, run: Run) -> Failure | None:
        if not isinstance(value, str) or pattern.finds(value, run):
            return None
        return Failure(_say_pattern, value, rule)

    return check


def _say_pattern(value: str, rule: object) -> str:
    return f"{value} does not match {shown(rule)}"


def _unique_items(rule: object, _patterns: Patterns) -> Check | None:
    if not isinstance(rule, bool):
        raise InvalidSchema(f"true or false is expected, not {shown(rule)}")
    if not rule:
        return None

    def check(value: object, run: Run) -> Failure | None:
        if not isinstance(value, list):
            return None
        run.spend(len(value))
        if len({key_of(each, run) for each in value}) == len(value):
            return None
        return Failure(lambda value, _: f"the items of {value} are not all different", value, None)

    return check


# -- objects


def names_of(rule: object) -> list[str]:
    """Read a list of names.

    Raises:
        InvalidSchema: It is none, or has a name twice.
    """
    if not isinstance(rule, list) or not all(isinstance(each, str) for each in rule):
        raise InvalidSchema(f"a list of names is expected, not {shown(rule)}")
    if len(set(rule)) < len(rule):
        raise InvalidSchema(f"{shown(rule)} has a name twice")
    return rule


def _required(rule: object, _patterns: Patterns) -> Check:
    names = names_of(rule)

    def check(value: Any, run: Run) -> Failure | None:  # noqa: ANN401  # any value of JSON
        if type(value) is not dict:
            return None
        run.steps -= len(names) >> 3
        for name in names:
            if name not in value:
                return Failure(_say_required, value, name)
        return None

    return check


def _say_required(_value: str, name: object) -> str:
    return f"{shown(name)} is a required property"


def _dependent_required(rule: object, _patterns: Patterns) -> Check:
    if not isinstance(rule, dict):
        raise InvalidSchema("an object is expected")
    needs = {name: names_of(names) for name, names in rule.items()}
    count = sum(map(len, needs.values())) + len(needs)

    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not dict:
            return None
        run.spend(count >> 3)
        return missing_of(value, needs)

    return check


def missing_of(value: Mapping[str, object], needs: Mapping[str, list[str]]) -> Failure | None:
    """Find a name that is not there, although one is that asks for it."""
    for name, names in needs.items():
        if name in value:
            for each in names:
                if each not in value:
                    return Failure(_say_dependent, value, (each, name))
    return None


def _say_dependent(_value: str, names: Any) -> str:  # noqa: ANN401  # two names
    return f"{shown(names[0])} is required where {shown(names[1])} is"


KEYWORDS: dict[str, Callable[[object, Patterns], Check | None]] = {
    "type": _of_type,
    "required": _required,
    "enum": _enum,
    "const": _const,
    "maximum": _limit(lambda a, b: a <= b, "is greater than the maximum of"),
    "minimum": _limit(lambda a, b: a >= b, "is less than the minimum of"),
    "exclusiveMaximum": _limit(lambda a, b: a < b, "is not less than"),
    "exclusiveMinimum": _limit(lambda a, b: a > b, "is not greater than"),
    "multipleOf": _multiple_of,
    "maxLength": _size(str, lambda a, b: a <= b, "is longer than"),
    "minLength": _size(str, lambda a, b: a >= b, "is shorter than"),
    "maxItems": _size(list, lambda a, b: a <= b, "has more items than"),
    "minItems": _size(list, lambda a, b: a >= b, "has fewer items than"),
    "maxProperties": _size(dict, lambda a, b: a <= b, "has more properties than"),
    "minProperties": _size(dict, lambda a, b: a >= b, "has fewer properties than"),
    "pattern": _pattern,
    "uniqueItems": _unique_items,
    "dependentRequired": _dependent_required,
}
"""In the order in which they are looked at: what is plainest first."""

ANNOTATIONS: dict[str, type | tuple[type, ...]] = {
    "$anchor": str,
    "$comment": str,
    "$id": str,
    "$schema": str,
    "contentEncoding": str,
    "contentMediaType": str,
    "deprecated": bool,
    "description": str,
    "examples": list,
    "format": str,
    "readOnly": bool,
    "title": str,
    "writeOnly": bool,
}
"""Keywords that refuse nothing, and what they are given."""


def make_keyword(name: str, rule: object, patterns: Patterns) -> Check | None:
    """Make the check of a keyword; None where it refuses nothing.

    Args:
        name: One of `KEYWORDS`.
        rule: What it is given.
        patterns: Compiles regular expressions.

    Raises:
        InvalidSchema: It is given what it does not take.
    """
    return KEYWORDS[name](rule, patterns)
