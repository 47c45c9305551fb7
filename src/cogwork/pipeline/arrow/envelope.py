"""What readers' processes and their clients say to each other.

A receiver attaches to `_arrow/NAME` with the filters of a range. Each message it gets is one batch,
as Arrow's encapsulated IPC message without the schema, which follows from the columns. Before it
stand 64 octets: two annotations (the offset of the last row, and how many rows there are) and the
head of the data section. So the batch begins at a multiple of eight, as Arrow wants it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cogwork.amqp.extensions import STREAM_START
from cogwork.amqp.types import Described, Symbol, ULong

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "ADDRESS_PREFIX",
    "BEYOND_END",
    "Range",
    "decode_batch",
    "encode_batch",
    "range_filters",
    "range_of",
)

ADDRESS_PREFIX = "_arrow/"

END = Symbol("cogwork:arrow-end")
COLUMNS = Symbol("cogwork:arrow-columns")
BEYOND_END = Symbol("cogwork:beyond-end")

_HEAD = Struct(">21sQ19sQ4sI")
_OFFSET = b"\x00\x53\x72\xc1\x33\x04\xa3\x0cx-opt-offset\x80"
_ROWS = b"\xa3\x10x-opt-batch-rows\x80"
_DATA = b"\x00\x53\x75\xb0"
HEAD_BYTES = 64


@dataclass(frozen=True, slots=True)
class Range:
    """What a receiver asks for.

    Attributes:
        start: The first offset.
        end: After the last one.
        columns: Their names.
    """

    start: int
    end: int
    columns: tuple[str, ...]


def range_filters(wanted: Range) -> dict[Symbol, object]:
    """Make the filters of a source, but for where it starts."""
    return {
        Symbol("end"): Described(END, ULong(wanted.end)),
        Symbol("columns"): Described(COLUMNS, ",".join(wanted.columns)),
    }


def range_of(filter_set: Mapping[Symbol, object] | None) -> Range:
    """Read a source's filters.

    Raises:
        ValueError: One is missing, or wrong.
    """
    found: dict[object, Any] = {
        each.descriptor: each.value
        for each in (filter_set or {}).values()
        if isinstance(each, Described)
    }
    start, end, columns = found.get(STREAM_START), found.get(END), found.get(COLUMNS)
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end:
        raise ValueError("a range has a start and an end: offsets")
    if not isinstance(columns, str):
        raise ValueError("a range has columns: their names, with commas between")
    return Range(int(start), int(end), tuple(filter(None, columns.split(","))))


def encode_batch(last: int, batch: pa.RecordBatch) -> memoryview:
    """Make the message of a batch.

    Args:
        last: The offset of its last row.
        batch: It has a row at least.
    """
    # What Arrow writes to is what is sent: its schema comes first, and is overwritten by the head.
    size_bytes = pa.ipc.get_record_batch_size(batch)
    begin = _schema_bytes(batch.schema)
    room = pa.allocate_buffer(begin + size_bytes)
    pa.ipc.new_stream(pa.FixedSizeBufferWriter(room), batch.schema).write_batch(batch)
    message = memoryview(room).cast("B")[begin - HEAD_BYTES :]
    _HEAD.pack_into(message, 0, _OFFSET, last, _ROWS, batch.num_rows, _DATA, size_bytes)
    return message


@lru_cache(maxsize=64)
def _schema_bytes(schema: pa.Schema) -> int:
    size: int = schema.serialize().size
    assert size >= HEAD_BYTES
    return size


def decode_batch(message: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Read the message of a batch; its columns lie in the message's octets.

    Raises:
        ValueError: It is none.
    """
    if len(message) < HEAD_BYTES or not message.startswith(_OFFSET):
        raise ValueError("a message of a reader is no batch")
    body = pa.py_buffer(message).slice(HEAD_BYTES)
    return pa.ipc.read_record_batch(body, schema)
