"""Filled columns as Arrow arrays: nothing is copied."""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cogwork.dataplane.tables.columns import Columns
from cogwork.pipeline.arrow.cut import ROWS_MAX, SIZE_MAX_BYTES, limit_of
from cogwork.pipeline.arrow.schema import schema_of
from cogwork.replication.outbox import OWN_MARK

if TYPE_CHECKING:
    from cogwork.dataplane.tables.column import Column, Presence, Room

__all__ = ("batch_of", "columns_from")

_ENTRIES = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())])


def columns_from(names: tuple[str, ...], start: int, end: int) -> Columns:
    """Begin the batch of a range that starts at an offset.

    Args:
        names: The columns that are wanted.
        start: The first offset.
        end: Where the range ends.
    """
    return Columns(names, start, limit_of(start, end), SIZE_MAX_BYTES, OWN_MARK)


def batch_of(stream: str, names: tuple[str, ...], columns: Columns) -> pa.RecordBatch:
    """Make the batch; the columns take nothing more.

    Args:
        stream: The stream's name.
        names: The columns that are wanted.
        columns: Filled.
    """
    schema = schema_of(names)
    rows = columns.next - columns.start
    arrays = [_array_of(field, stream, rows, columns) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array_of(field: pa.Field, stream: str, rows: int, columns: Columns) -> pa.Array:
    if field.name == "stream":
        return _names(stream, ROWS_MAX).slice(0, rows)
    if field.name == "properties":
        return _properties(field.type, rows, columns)
    column: Any = getattr(columns, field.name)
    if pa.types.is_primitive(field.type):
        return _numbers(field.type, rows, column)
    return _strings(field.type, rows, column)


@lru_cache(maxsize=64)
def _names(stream: str, rows: int) -> pa.Array:
    # Not `pa.array`, which looks for pandas, and takes a second to import it where it is there.
    name = stream.encode()
    ends = array("i", range(0, len(name) * rows + 1, len(name)))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(name * rows)]
    return pa.Array.from_buffers(pa.string(), rows, buffers, null_count=0)


def _bits(presence: Presence) -> pa.Buffer | None:
    return pa.py_buffer(presence.bits) if presence.nulls else None


def _buffer(room: Room) -> pa.Buffer:
    return pa.py_buffer(room)


def _numbers(kind: pa.DataType, rows: int, column: Column) -> pa.Array:
    presence = column.presence  # of columns that have no nulls it knows nothing
    buffers = [_bits(presence), _buffer(column.data)]
    return pa.Array.from_buffers(kind, rows, buffers, null_count=presence.nulls)


def _strings(kind: pa.DataType, rows: int, column: Column) -> pa.Array:
    presence = column.presence
    buffers = [_bits(presence), _buffer(column.ends), _buffer(column.data)]
    return pa.Array.from_buffers(kind, rows, buffers, null_count=presence.nulls)


def _properties(kind: pa.DataType, rows: int, columns: Columns) -> pa.Array:
    keys, values = columns.keys, columns.values
    properties = columns.properties
    assert keys is not None
    assert values is not None
    assert properties is not None
    presence = properties.presence
    count = keys.presence.count
    pairs = [_strings(pa.string(), count, keys), _strings(pa.string(), count, values)]
    entries = pa.Array.from_buffers(_ENTRIES, count, [None], null_count=0, children=pairs)
    buffers = [_bits(presence), _buffer(properties.ends)]
    return pa.Array.from_buffers(kind, rows, buffers, null_count=presence.nulls, children=[entries])
