"""The shape of options and of the configuration, as Structs declare it: which keys, of which type.

Error messages and the reference both say what a key takes; here it is put into words, once.
"""

from __future__ import annotations

from functools import cache

from msgspec import inspect

__all__ = ("Path", "describe", "is_tables", "keys_at", "type_at")

Path = tuple[str | int, ...]
"""Leads to a value: `("listen", 0, "port")`."""


def type_at(root: type, path: Path) -> inspect.Type:
    """Find the declared type of what a path leads to.

    Args:
        root: The Struct of the whole document.
        path: Keys and positions that the Structs know; what follows free-form keys is free-form.
    """
    found = _type_of(root)
    for part in path:
        found = _child(found, part)
    return found


def keys_at(root: type, path: Path) -> list[str]:
    """List the keys of the table that a path leads to; empty where any key will do."""
    table = _without_none(type_at(root, path))
    if not isinstance(table, inspect.StructType):
        return []
    return [each.encode_name for each in table.fields]


def is_tables(declared: inspect.Type) -> bool:
    """Return whether a key takes an array of tables."""
    declared = _without_none(declared)
    return isinstance(declared, inspect.ListType) and isinstance(
        declared.item_type, inspect.StructType
    )


def describe(declared: inspect.Type) -> str:
    """Return what a key takes, in words that follow "expected"."""
    declared = _without_none(declared)
    match declared:
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(f'"{value}"' for value in values)
        case inspect.ListType() if is_tables(declared):
            return "an array of tables"
        case inspect.ListType(item_type=item):
            return f"an array{_describe_length(declared)}, each item {describe(item)}"
        case inspect.IntType() | inspect.FloatType():
            return _describe_number(declared)
        case _:
            return _WORDS.get(type(declared), "a value")


_WORDS: dict[type[inspect.Type], str] = {
    inspect.StrType: "a string",
    inspect.BoolType: "true or false",
    inspect.StructType: "a table",
    inspect.DictType: "a table",
}


def _describe_number(declared: inspect.IntType | inspect.FloatType) -> str:
    noun = "an integer" if isinstance(declared, inspect.IntType) else "a number"
    below = "" if declared.lt is None else f" and below {declared.lt:.0f}"
    if declared.gt is not None:
        return f"{noun} above {declared.gt:g}{below}"
    if declared.ge is not None and declared.le is not None:
        return f"{noun} from {declared.ge} to {declared.le}"
    return f"{noun} from {declared.ge:g}{below}" if declared.ge is not None else noun


def _describe_length(declared: inspect.ListType) -> str:
    if declared.max_length is not None:
        return f" of {declared.min_length or 0} to {declared.max_length} items"
    return f" of at least {declared.min_length} item" if declared.min_length else ""


@cache
def _type_of(root: type) -> inspect.Type:
    return inspect.type_info(root)


def _child(table: inspect.Type, part: str | int) -> inspect.Type:
    table = _without_none(table)
    if isinstance(table, inspect.ListType):
        return table.item_type
    if isinstance(table, inspect.StructType):
        for each in table.fields:
            if each.encode_name == part:
                return each.type
    return inspect.AnyType()


def _without_none(declared: inspect.Type) -> inspect.Type:
    """Return an optional key is left out of the file, never set to nothing."""
    if isinstance(declared, inspect.UnionType):
        (declared,) = (each for each in declared.types if not isinstance(each, inspect.NoneType))
    return declared
