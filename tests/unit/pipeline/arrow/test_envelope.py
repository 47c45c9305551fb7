"""What readers and their clients say to each other."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cogwork.amqp.extensions import STREAM_START
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.dataplane.message.messages import Message
from cogwork.pipeline.arrow.envelope import (
    HEAD_BYTES,
    Range,
    decode_batch,
    encode_batch,
    range_filters,
    range_of,
)

WANTED = Range(3, 9, ("offset", "body"))


def filters() -> dict[Symbol, object]:
    return {Symbol("start"): Described(STREAM_START, ULong(3)), **range_filters(WANTED)}


def test_a_range_is_what_its_filters_say() -> None:
    assert range_of(filters()) == WANTED


@pytest.mark.parametrize("name", ["start", "end", "columns"])
@pytest.mark.parametrize("value", [None, -1, 1.5, []])
def test_filters_that_are_none_are_refused(name: str, value: object) -> None:
    found = filters()
    described = found[Symbol(name)]
    assert isinstance(described, Described)
    found[Symbol(name)] = Described(described.descriptor, value)
    with pytest.raises(ValueError, match="a range has"):
        range_of(found)
    del found[Symbol(name)]
    with pytest.raises(ValueError, match="a range has"):
        range_of(found)


def test_a_batch_is_a_message_whose_octets_are_the_batch() -> None:
    batch = pa.RecordBatch.from_pydict({"offset": [3, 4, 5]})
    encoded = bytes(encode_batch(5, batch))
    message = Message.decode(encoded)
    assert message.annotations == {"x-opt-offset": 5, "x-opt-batch-rows": 3}
    assert message.body == encoded[HEAD_BYTES:]
    found = decode_batch(encoded, batch.schema)
    assert found.equals(batch)
    assert found.column("offset").buffers()[1].address % 8 == 0


@pytest.mark.parametrize("octets", [b"", b"\0" * 100, b"x" * 64])
def test_a_message_that_is_no_batch_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError, match="no batch"):
        decode_batch(octets, pa.schema([]))
