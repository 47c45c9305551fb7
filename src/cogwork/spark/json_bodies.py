"""Bodies that are JSON, as a column of a type that the user names.

A body that is no JSON, or does not fit the type, is null in there, as with Spark's `from_json`; the
column `body` has its octets. So `where("body_json is null and body is not null")` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("COLUMN", "parsed")

COLUMN = "body_json"


def parsed(bodies: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns what bodies say, in a type; null for those that do not fit it.

    Args:
        bodies: Octets.
        kind: A struct, a list or a map, as Arrow has it. Fields that a body has besides are left
            out, those that it lacks are null.
    """
    values = [_decoded(body) for body in bodies.to_pylist()]
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _one_by_one(values, kind)


def _decoded(body: bytes | None) -> object:
    if body is None:
        return None
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None


def _one_by_one(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    found = []
    for value in values:
        try:
            found.append(pa.array([value], kind))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            found.append(pa.nulls(1, kind))
    return pa.concat_arrays(found) if found else pa.array([], kind)
