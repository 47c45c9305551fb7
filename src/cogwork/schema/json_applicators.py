"""The keywords of JSON Schema that hold a value, or its parts, to other schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cogwork.schema.errors import InvalidSchema
from cogwork.schema.json_keywords import count_of, missing_of, names_of
from cogwork.schema.json_run import Check, Failure, Run, shown

if TYPE_CHECKING:
    from cogwork.schema.json_pattern import Pattern

__all__ = ("APPLICATORS", "DRAFT_7_APPLICATORS", "Making")

Table = Mapping[str, Any]


class Making:
    """What makers are given: how to make the checks of the schemas below.

    Attributes:
        check_of: Makes the check of a schema.
        reference: Makes the check of what a reference leads to.
        pattern: Compiles a regular expression.
    """

    def __init__(
        self,
        check_of: Callable[[object], Check],
        reference: Callable[[str], Check],
        pattern: Callable[[str], Pattern],
    ) -> None:
        self.check_of = check_of
        self.reference = reference
        self.pattern = pattern

    def several(self, rule: object) -> list[Check]:
        """Make the checks of a list of schemas.

        Raises:
            InvalidSchema: It is none, or empty.
        """
        if not isinstance(rule, list) or not rule:
            raise InvalidSchema("a list of schemas is expected, with one at least")
        return [self.check_of(each) for each in rule]

    def named(self, rule: object) -> dict[str, Check]:
        """Make the checks of schemas with names.

        Raises:
            InvalidSchema: They are no object.
        """
        if not isinstance(rule, dict):
            raise InvalidSchema("an object whose values are schemas is expected")
        return {name: self.check_of(each) for name, each in rule.items()}


def _reference(table: Table, making: Making) -> Check:
    rule = table["$ref"]
    if not isinstance(rule, str):
        raise InvalidSchema(f"a reference is expected, not {shown(rule)}")
    return making.reference(rule)


# -- several schemas at once


def _all_of(table: Table, making: Making) -> Check:
    checks = making.several(table["allOf"])

    def check(value: object, run: Run) -> Failure | None:
        for each in checks:
            failure = each(value, run)
            if failure is not None:
                return failure
        return None

    return check


def _any_of(table: Table, making: Making) -> Check:
    checks = making.several(table["anyOf"])

    def check(value: object, run: Run) -> Failure | None:
        for each in checks:
            if each(value, run) is None:
                return None
        return Failure(_say_none, value, None)

    return check


def _one_of(table: Table, making: Making) -> Check:
    checks = making.several(table["oneOf"])

    def check(value: object, run: Run) -> Failure | None:
        found = sum(each(value, run) is None for each in checks)
        if found == 1:
            return None
        return Failure(_say_several if found else _say_none, value, None)

    return check


def _say_none(value: str, _rule: object) -> str:
    return f"{value} is not valid under any of the given schemas"


def _say_several(value: str, _rule: object) -> str:
    return f"{value} is valid under more than one of the given schemas"


def _not(table: Table, making: Making) -> Check:
    refused = making.check_of(table["not"])

    def check(value: object, run: Run) -> Failure | None:
        if refused(value, run) is not None:
            return None
        return Failure(lambda value, _: f"{value} is valid under what is not allowed", value, None)

    return check


def _condition(table: Table, making: Making) -> Check:
    condition = making.check_of(table["if"])
    then, otherwise = (making.check_of(table.get(name, True)) for name in ("then", "else"))

    def check(value: object, run: Run) -> Failure | None:
        return then(value, run) if condition(value, run) is None else otherwise(value, run)

    return check


# -- the properties of objects


def _properties(table: Table, making: Making) -> Check:
    checks = list(making.named(table["properties"]).items())

    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not dict:
            return None
        run.steps -= len(checks) >> 2
        for name, each in checks:
            if name in value:
                failure = each(value[name], run)
                if failure is not None:
                    failure.path.append(name)
                    return failure
        return None

    return check


def _patterns(table: Table, making: Making) -> list[tuple[Pattern, Check]]:
    named = making.named(table.get("patternProperties", {}))
    return [(making.pattern(name), each) for name, each in named.items()]


def _pattern_properties(table: Table, making: Making) -> Check:
    checks = _patterns(table, making)

    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not dict:
            return None
        for pattern, each in checks:
            for name, part in value.items():
                if pattern.finds(name, run):
                    failure = each(part, run)
                    if failure is not None:
                        failure.path.append(name)
                        return failure
        return None

    return check


def _additional_properties(table: Table, making: Making) -> Check:
    rule = table["additionalProperties"]
    others = making.check_of(rule)
    properties = table.get("properties", {})
    known = frozenset(properties if isinstance(properties, dict) else ())
    patterns = [pattern for pattern, _ in _patterns(table, making)]

    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not dict:
            return None
        run.spend(len(value) >> 2)
        for name, part in value.items():
            if name in known or any(each.finds(name, run) for each in patterns):
                continue
            if rule is False:
                return Failure(lambda _, name: f"there is no property {shown(name)}", value, name)
            failure = others(part, run)
            if failure is not None:
                failure.path.append(name)
                return failure
        return None

    return check


def _property_names(table: Table, making: Making) -> Check:
    name_check = making.check_of(table["propertyNames"])

    def check(value: object, run: Run) -> Failure | None:
        if type(value) is dict:
            for name in value:
                failure = name_check(name, run)
                if failure is not None:
                    return failure
        return None

    return check


def _dependent_schemas(table: Table, making: Making) -> Check:
    return _dependent(making.named(table["dependentSchemas"]), {})


def _dependencies(table: Table, making: Making) -> Check:
    rule = table["dependencies"]
    if not isinstance(rule, dict):
        raise InvalidSchema("an object is expected")
    schemas = {name: each for name, each in rule.items() if not isinstance(each, list)}
    names = {name: names_of(each) for name, each in rule.items() if isinstance(each, list)}
    return _dependent(making.named(schemas), names)


def _dependent(schemas: Mapping[str, Check], names: Mapping[str, list[str]]) -> Check:
    count = len(schemas) + len(names) + sum(map(len, names.values()))

    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not dict:
            return None
        run.spend(count >> 2)
        for name, each in schemas.items():
            if name in value:
                failure = each(value, run)
                if failure is not None:
                    return failure
        return missing_of(value, names)

    return check


# -- the items of lists


def _prefix_items(table: Table, making: Making) -> Check:
    return _in_turn(making.several(table["prefixItems"]))


def _in_turn(checks: list[Check]) -> Check:
    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not list:
            return None
        for at, (each, part) in enumerate(zip(checks, value, strict=False)):
            failure = each(part, run)
            if failure is not None:
                failure.path.append(at)
                return failure
        return None

    return check


def _items(table: Table, making: Making) -> Check:
    prefix = table.get("prefixItems", [])
    return _from(len(prefix) if isinstance(prefix, list) else 0, making.check_of(table["items"]))


def _from(first: int, item: Check) -> Check:
    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not list:
            return None
        for at in range(first, len(value)):
            failure = item(value[at], run)
            if failure is not None:
                failure.path.append(at)
                return failure
        return None

    return check


def _items_7(table: Table, making: Making) -> Check:
    rule = table["items"]
    if not isinstance(rule, list):
        return _from(0, making.check_of(rule))
    return _in_turn([making.check_of(each) for each in rule])


def _additional_items_7(table: Table, making: Making) -> Check | None:
    item = making.check_of(table["additionalItems"])
    listed = table.get("items")
    return _from(len(listed), item) if isinstance(listed, list) else None


def _contains(table: Table, making: Making) -> Check:
    item = making.check_of(table["contains"])
    least = count_of(table.get("minContains", 1))
    most = count_of(table["maxContains"]) if "maxContains" in table else None
    return _counted(item, least, most)


def _contains_7(table: Table, making: Making) -> Check:
    return _counted(making.check_of(table["contains"]), 1, None)


def _counted(item: Check, least: int, most: int | None) -> Check:
    def check(value: object, run: Run) -> Failure | None:
        if type(value) is not list:
            return None
        found = 0
        for part in value:
            found += item(part, run) is None
            if most is None and found >= least:
                return None
        if found < least:
            return Failure(_say_too_few, value, least)
        if most is not None and found > most:
            return Failure(_say_too_many, value, most)
        return None

    return check


def _say_too_few(value: str, rule: object) -> str:
    return f"{value} has fewer items than {rule} of those that it is to contain"


def _say_too_many(value: str, rule: object) -> str:
    return f"{value} has more items than {rule} of those that it may contain"


Maker = Callable[[Table, Making], Check | None]

_BOTH: dict[str, Maker] = {
    "$ref": _reference,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _condition,
}

APPLICATORS: dict[str, Maker] = {
    **_BOTH,
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "dependentSchemas": _dependent_schemas,
}
"""Those of 2020-12."""

DRAFT_7_APPLICATORS: dict[str, Maker] = {
    **_BOTH,
    "items": _items_7,
    "additionalItems": _additional_items_7,
    "contains": _contains_7,
    "dependencies": _dependencies,
}
