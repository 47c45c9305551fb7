"""Record batches as encoded messages; the work itself is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cogwork.dataplane.tables.rows import RowEncoder
from cogwork.pipeline.arrow.places import place_of, plain

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
    """Encode each row of a batch as one message.

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
            array = plain(column, pa.string() if is_text else pa.binary())
            encoder.set_body(is_text, *place_of(array))
            held.append(array)
        elif name in FIELDS:
            array = plain(column, pa.string())
            encoder.set_field(FIELDS[name], *place_of(array))
            held.append(array)
    messages = encoder.encode(batch.num_rows)
    del held
    return messages


def _set_properties(encoder: RowEncoder, column: pa.Array) -> Sequence[pa.Array]:
    maps = plain(column, PROPERTIES)
    keys, values = maps.keys, maps.items
    validity, offsets, _, first = place_of(maps)
    encoder.set_properties(validity, offsets, first)
    _, *where = place_of(keys)
    encoder.set_keys(*where)
    encoder.set_values(*place_of(values))
    return maps, keys, values
