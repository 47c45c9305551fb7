"""Bodies that are JSON, as a column of a type that the user names.

A body that is no JSON, or does not fit the type, is null in there, as with Spark's `from_json`; the
column `body` has its octets. So `where("body_json is null and body is not null")` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("COLUMN", "parsed")

COLUMN = "body_json"

UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError)
"""What Arrow raises where a value does not fit a type."""


def parsed(bodies: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns what bodies say, in a type; null for those that do not fit it.

    Args:
        bodies: Octets.
        kind: A struct, a list or a map, as Arrow has it. Fields that a body has besides are left
            out, those that it lacks are null.
    """
    is_formed = _former(kind)
    values = [_decoded(body) for body in bodies.to_pylist()]
    values = [value if is_formed(value) else None for value in values]
    try:
        return pa.array(values, kind)
    except UNFIT:
        return _one_by_one(values, kind)


def _decoded(body: bytes | None) -> object:
    if body is None:
        return None
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or nested too deeply
        return None


def _former(kind: pa.DataType) -> Callable[[object], bool]:
    """Returns what tells whether a value is formed as a type is; null is, everywhere.

    Arrow takes an empty list for a struct, and an empty text for a list: of what is in there, one
    item is a name and a value, or a character.
    """
    if pa.types.is_struct(kind):
        return _struct_former({field.name: _former(field.type) for field in kind if _nests(field)})
    if pa.types.is_map(kind):
        of_item = _former(kind.item_type)
        return lambda value: (
            value is None or (isinstance(value, dict) and all(map(of_item, value.values())))
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_each = _former(kind.value_type)
        return lambda value: value is None or (isinstance(value, list) and all(map(of_each, value)))
    return lambda _: True


def _struct_former(fields: dict[str, Callable[[object], bool]]) -> Callable[[object], bool]:
    """As `_former`, of the fields that nest; of the others, Arrow itself sees whether they fit."""
    return lambda value: (
        value is None
        or (
            isinstance(value, dict)
            and all(is_formed(value.get(name)) for name, is_formed in fields.items())
        )
    )


def _nests(field: pa.Field) -> bool:
    return bool(pa.types.is_nested(field.type))


def _one_by_one(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    found = []
    for value in values:
        try:
            found.append(pa.array([value], kind))
        except UNFIT:
            found.append(pa.nulls(1, kind))
    return pa.concat_arrays(found) if found else pa.array([], kind)
