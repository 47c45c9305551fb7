"""Columns that are made of records, against a readable account of what they should be.

The first ones need no Arrow: they run under AddressSanitizer, too, where reading one octet too many
ends the run.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from amqp_values import scalars, texts, values
from hypothesis import given
from hypothesis import strategies as st
from record_rows import row_of

from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.tables.columns import Columns
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.chunks import encode_chunk

NAMES = (
    "offset",
    "time",
    "producer",
    "sequence",
    "address",
    "subject",
    "message_id",
    "correlation_id",
    "reply_to",
    "content_type",
    "properties",
    "body",
)
TEXTS = ("address", "subject", "message_id", "correlation_id", "reply_to", "content_type")
MARK = b"\x00outbox\x00"


IDS = st.none() | st.integers(0, 2**64 - 1) | st.uuids() | st.binary(max_size=20) | texts
TEXT = st.none() | texts


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Make a message with a body of any kind."""
    fields: dict[str, Any] = {
        "subject": draw(TEXT),
        "to": draw(TEXT),
        "reply_to": draw(TEXT),
        "message_id": draw(IDS),
        "correlation_id": draw(IDS),
        "content_type": draw(st.none() | st.just("application/json")),
        "group_sequence": draw(st.none() | st.integers(0, 9)),
        "properties": draw(st.dictionaries(texts, scalars, max_size=4)),
        "annotations": draw(st.dictionaries(st.just("x-opt-kept"), st.integers(0, 9))),
        "durable": draw(st.booleans()),
    }
    kind = draw(st.integers(0, 3))
    if kind == 0:
        parts = draw(st.lists(st.binary(max_size=300), min_size=1, max_size=3))
        return Message.data(*parts, **fields)
    if kind == 1:
        return Message.sequence(draw(st.lists(st.integers(0, 300), max_size=2)), **fields)
    if kind == 2:
        return Message.value(draw(values), **fields)
    return Message(draw(st.binary(max_size=300) | texts | st.none()), **fields)


def strings(column: object) -> list[bytes | None]:
    """Read a column of strings as Arrow would."""
    data, ends = bytes(column.data), bytes(column.ends)  # type: ignore[attr-defined]  # of either kind
    bits, count = bytes(column.presence.bits), column.presence.count  # type: ignore[attr-defined]  # of either kind
    places = struct.unpack(f"={count + 1}i", ends)
    assert places[0] == 0
    assert places[-1] == len(data)
    return [
        data[places[at] : places[at + 1]] if bits[at >> 3] >> (at & 7) & 1 else None
        for at in range(count)
    ]


def rows(columns: Columns) -> list[dict[str, object]]:
    """Read what the columns hold."""
    count = columns.next - columns.start
    texts = {name: strings(getattr(columns, name)) for name in TEXTS}
    keys, values, bodies = strings(columns.keys), strings(columns.values), strings(columns.body)
    assert columns.properties is not None
    ends = struct.unpack(f"={count + 1}i", bytes(columns.properties.ends))
    bits = bytes(columns.properties.presence.bits)
    found = []
    for at in range(count):
        row: dict[str, object] = {
            name: None if (text := each[at]) is None else text.decode()
            for name, each in texts.items()
        }
        pairs = [
            (key.decode(), None if value is None else value.decode())
            for key, value in zip(
                keys[ends[at] : ends[at + 1]], values[ends[at] : ends[at + 1]], strict=True
            )
            if key is not None
        ]
        row["properties"] = pairs if bits[at >> 3] >> (at & 7) & 1 else None
        row["body"] = bodies[at]
        found.append(row)
    return found


def columns_for(start: int = 0, limit: int = 100, size_max: int = 1 << 30) -> Columns:
    return Columns(NAMES, start, limit, size_max, MARK)


def chunk_of(records: list[bytes], offset: int = 0, producer: bytes = b"") -> bytes:
    return encode_chunk(Chunk(offset, 1, 1_700_000_000_123, Batch.of(records, producer, 7)))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Make a message, then change an octet, or cut it short."""
    data = bytearray(draw(messages()).encode())
    for _ in range(draw(st.integers(0, 3))):
        if data:
            at = draw(st.integers(0, len(data) - 1))
            data[at] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@given(st.lists(messages(), min_size=1, max_size=5))
def test_rows_of_messages_are_what_they_should_be(given_messages: list[Message]) -> None:
    records = [message.encode() for message in given_messages]
    columns = columns_for()
    columns.add_chunk(chunk_of(records))
    assert rows(columns) == [row_of(record) for record in records]
    assert columns.malformed == 0


@given(st.lists(st.one_of(damaged(), st.binary(max_size=60)), min_size=1, max_size=5))
def test_rows_of_anything_are_what_they_should_be(records: list[bytes]) -> None:
    columns = columns_for()
    columns.add_chunk(chunk_of(records))
    assert rows(columns) == [row_of(record) for record in records]


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
def test_a_chunk_that_is_none_harms_nobody(payload: bytes, count: int) -> None:
    head = struct.pack(">QQqIQB", 0, 1, 5, count, 0, 0)
    columns = columns_for()
    try:
        columns.add_chunk(head + payload)
    except ValueError:
        assert count > 0x7FFFFFFF
    assert columns.next == (min(count, 100) if count <= 0x7FFFFFFF else 0)


@given(st.binary(max_size=120))
def test_octets_that_are_no_chunk_are_refused_or_taken(data: bytes) -> None:
    columns = columns_for()
    try:
        columns.add_chunk(data)
    except ValueError:
        assert columns.next == 0


@given(st.binary(max_size=120))
def test_octets_that_are_no_blocks_are_refused(data: bytes) -> None:
    columns = columns_for()
    with pytest.raises(ValueError, match=r"block|chunk"):
        columns.add_blocks(data, 0, len(data))


@pytest.mark.parametrize("seed", range(5))
def test_batches_go_on_where_the_one_before_has_stopped(seed: int) -> None:
    chance = random.Random(seed)
    records = [b"\x00\x53\x75\xa0\x04%04d" % number for number in range(1000)]
    chunk = chunk_of(records, producer=b"somebody")
    bodies: list[bytes | None] = []
    at, before = 0, None
    while at < 1000:
        columns = Columns(NAMES, at, at + chance.randrange(1, 90), chance.randrange(1, 900), MARK)
        if before is not None and chance.random() < 0.8:
            columns.go_on(before)
        columns.add_chunk(chunk)
        assert columns.next > at
        bodies += strings(columns.body)
        assert strings(columns.producer) == [b"somebody"] * (columns.next - at)
        assert columns.sequence is not None
        assert struct.unpack_from("=q", bytes(columns.sequence.data)) == (7 + at,)
        at, before = columns.next, columns
    assert bodies == [b"%04d" % number for number in range(1000)]


def test_a_producer_of_the_engine_is_none() -> None:
    columns = columns_for()
    columns.add_chunk(chunk_of([b"\x00\x53\x75\xa0\x00"], producer=MARK + b"12345678"))
    assert strings(columns.producer) == [None]
    assert columns.sequence is not None
    assert columns.sequence.presence.nulls == 1
