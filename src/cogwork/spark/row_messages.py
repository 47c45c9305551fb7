"""Record batches as encoded messages; the work itself is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cogwork.dataplane.rows import RowEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("FIELDS", "encoded")

FIELDS = {
    "message_id": 0,
    "address": 2,
    "subject": 3,
    "reply_to": 4,
    "correlation_id": 5,
    "content_type": 6,
    "group_id": 10,
}
"""Columns by their place in the properties section (AMQP 1.0 §3.2.4)."""

PROPERTIES = pa.map_(pa.string(), pa.string())


def encoded(batch: pa.RecordBatch) -> list[bytes]:
    """Encodes each row of a batch as one message.

    Args:
        batch: With a column `body`, and any of those of `FIELDS`, and `properties`.

    Raises:
        EncodeError: A content-type is not ASCII.
    """
    if batch.num_rows == 0:
        return []
    encoder = RowEncoder()
    held = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "properties":
            held.append(_set_properties(encoder, column))
        elif name == "body":
            is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            array = _plain(column, pa.string() if is_text else pa.binary())
            encoder.set_body(is_text, *_place(array))
            held.append(array)
        elif name in FIELDS:
            array = _plain(column, pa.string())
            encoder.set_field(FIELDS[name], *_place(array))
            held.append(array)
    messages = encoder.encode(batch.num_rows)
    del held
    return messages


def _set_properties(encoder: RowEncoder, column: pa.Array) -> Sequence[pa.Array]:
    maps = _plain(column, PROPERTIES)
    keys, values = maps.keys, maps.items
    validity, offsets, _, first = _place(maps)
    encoder.set_properties(validity, offsets, first)
    _, *where = _place(keys)
    encoder.set_keys(*where)
    encoder.set_values(*_place(values))
    return maps, keys, values


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns a column with offsets of 32 bits."""
    return column if column.type.equals(kind) else column.cast(kind)


def _place(array: Any) -> tuple[int, int, int, int]:  # noqa: ANN401 # pyarrow has no types
    """Returns where an array's validity, offsets and octets lie, and its first value in there."""
    array.validate()
    buffers = array.buffers()
    validity = buffers[0] if array.null_count else None
    data = buffers[2] if len(buffers) > 2 else None
    return _address(validity), _address(buffers[1]), _address(data), array.offset


def _address(buffer: Any) -> int:  # noqa: ANN401 # pyarrow has no types
    return 0 if buffer is None else int(buffer.address)
