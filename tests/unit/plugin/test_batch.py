"""Batches and chunks: packing, cutting, and what is none."""

import pytest

from cogwork.plugin.engine.batch import (
    BATCH_BYTES_MAX,
    PRODUCER_BYTES_MAX,
    SEQUENCE_MAX,
    Batch,
    Chunk,
    check,
    pack,
    unpack,
)
from cogwork.plugin.engine.errors import InvalidAppend

RECORDS = [b"one", b"", b"three", bytes(300)]


def test_records_come_out_as_they_went_in() -> None:
    assert list(unpack(pack(RECORDS))) == RECORDS
    assert list(Batch.of(RECORDS).records()) == RECORDS


@pytest.mark.parametrize("cut", [1, 3, 5, 6])
def test_a_payload_that_is_cut_short_is_told(cut: int) -> None:
    with pytest.raises(ValueError, match="middle"):
        list(unpack(pack([b"abc"])[:cut]))


def test_the_rest_of_a_batch_keeps_producer_and_sequence() -> None:
    rest = Batch.of(RECORDS, b"p", 10).after(2)
    assert rest == Batch.of(RECORDS[2:], b"p", 12)


@pytest.mark.parametrize(("start", "count"), [(0, 4), (0, 2), (1, 2), (3, 1)])
def test_a_part_of_a_batch(start: int, count: int) -> None:
    assert Batch.of(RECORDS).part(start, count) == pack(RECORDS[start : start + count])


def test_a_chunk_is_cut_at_an_offset() -> None:
    chunk = Chunk(100, 1, 5, Batch.of(RECORDS, b"p", 10))
    assert chunk.since(99) is chunk.since(100) is chunk
    assert chunk.since(103) == Chunk(103, 1, 5, Batch.of(RECORDS[3:], b"p", 13))
    assert chunk.since(103).next_offset == chunk.next_offset == 104


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (Batch(b"", 0), "at least one"),
        (Batch(bytes(4), -1), "at least one"),
        (Batch(bytes(7), 2), "cannot be 2 records"),
        (Batch(bytes(BATCH_BYTES_MAX + 1), 1), "in parts"),
        (Batch.of([b""], bytes(PRODUCER_BYTES_MAX + 1)), "at most 64"),
        (Batch.of([b""], b"p", -1), "from 0 to"),
        (Batch.of([b""], b"p", SEQUENCE_MAX), "from 0 to"),
    ],
)
def test_what_is_no_batch_is_told(batch: Batch, reason: str) -> None:
    with pytest.raises(InvalidAppend, match=reason):
        check(batch)


def test_what_is_a_batch_passes() -> None:
    check(Batch.of([b""], bytes(PRODUCER_BYTES_MAX), SEQUENCE_MAX - 1))
