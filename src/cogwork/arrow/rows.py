"""Turns records that came one by one into a record batch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cogwork.amqp.types import Timestamp
from cogwork.arrow.schema import schema_of
from cogwork.client import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.client import Record

__all__ = ("batch_of",)


def _text_of(value: object) -> str | None:  # one for each kind
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Timestamp):
        value = datetime.fromtimestamp(int(value) / 1000, UTC)
    if isinstance(value, datetime):
        at = value.astimezone(UTC)
        return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
    return str(value)


def _body_of(record: Record) -> bytes | None:
    body = record.body
    if record.body_type == "data":
        return b"".join(bytes(part) for part in record.body_sections)  # type: ignore[call-overload]
    if body is None:
        return None
    if record.body_type == "value" and isinstance(body, bytes):
        return body
    if record.body_type == "value" and isinstance(body, str):
        return body.encode()
    if record.body_type == "value":
        return Message.value(body).encode()
    return Message.sequence(*record.body_sections).encode()  # type: ignore[arg-type]


def _producer_of(record: Record) -> object:
    return record.producer


_READERS: dict[str, Callable[[Record], object]] = {
    "offset": lambda record: record.offset,
    "time": lambda record: record.time_ms * 1000,
    "producer": _producer_of,
    "sequence": lambda record: record.producer_sequence,
    "address": lambda record: record.to,
    "subject": lambda record: record.subject,
    "message_id": lambda record: _text_of(record.message_id),
    "correlation_id": lambda record: _text_of(record.correlation_id),
    "reply_to": lambda record: record.reply_to,
    "content_type": lambda record: record.content_type,
    "properties": lambda record: [
        (str(key), _text_of(value)) for key, value in record.properties.items()
    ],
    "body": _body_of,
}


def batch_of(stream: str, records: Sequence[Record], columns: tuple[str, ...]) -> pa.RecordBatch:
    """Makes a batch.

    Args:
        stream: The stream's name.
        records: What it holds, in order.
        columns: Those that are wanted.
    """
    schema = schema_of(columns)
    arrays: list[Any] = []
    for field in schema:
        if field.name == "stream":
            values: list[object] = [stream] * len(records)
        else:
            values = [_READERS[field.name](record) for record in records]
        arrays.append(pa.array(values, type=field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
