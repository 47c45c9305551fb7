"""The octets of batches and chunks, byte by byte, and hostile ones."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.plugin.engine.batch import PRODUCER_BYTES_MAX, SEQUENCE_MAX, Batch, Chunk
from cogwork.plugin.engine.chunks import (
    decode_batch,
    decode_chunk,
    decode_command,
    encode_batch,
    encode_chunk,
    encode_command,
)
from cogwork.plugin.engine.commands import Append, Fence, KeepSnapshot, Trim
from cogwork.plugin.engine.contract import Snapshot
from cogwork.plugin.engine.errors import Malformed
from cogwork.replication.entry import decode_entry

U64 = st.integers(0, (1 << 64) - 1)

batches = st.builds(
    Batch.of,
    st.lists(st.binary(max_size=50), min_size=1, max_size=10),
    st.binary(max_size=PRODUCER_BYTES_MAX),
    st.integers(0, SEQUENCE_MAX),
)
chunks = st.builds(Chunk, U64, U64, st.integers(-(1 << 63), (1 << 63) - 1), batches)


def test_the_octets_are_those_of_the_format() -> None:
    chunk = Chunk(1, 2, 3, Batch.of([b"xy"], b"me", 4))
    expected = "0000000000000001 0000000000000002 0000000000000003 00000001 0000000000000004 02"
    assert encode_chunk(chunk) == bytes.fromhex(expected) + b"me" + b"\0\0\0\2xy"
    assert encode_chunk(chunk)[24:] == encode_batch(chunk.batch)


@settings(deadline=None)
@given(chunks)
def test_a_chunk_comes_back(chunk: Chunk) -> None:
    assert decode_chunk(encode_chunk(chunk)) == chunk
    assert decode_batch(b"..." + encode_batch(chunk.batch), 3) == chunk.batch


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_octets_are_a_chunk_or_malformed(data: bytes) -> None:
    try:
        chunk = decode_chunk(data)
    except Malformed:
        return
    assert encode_chunk(chunk) == data


@pytest.mark.parametrize("length", [0, 23, 24, 36, 38])
def test_a_chunk_that_is_cut_in_its_head_is_told(length: int) -> None:
    with pytest.raises(Malformed, match="cut short"):
        decode_chunk(encode_chunk(Chunk(1, 2, 3, Batch.of([b"xy"], b"me", 4)))[:length])


@pytest.mark.parametrize("wrong", [-1, 1 << 64])
def test_numbers_that_have_no_place_are_not_written(wrong: int) -> None:
    batch = Batch.of([b"x"])
    for bad in (Batch(b"x", 1, b"", wrong), Batch(b"x", wrong), Batch(b"x", 1, bytes(256))):
        for command in (Append(bad, None, 0), Append(bad, 1, 0)):
            with pytest.raises(OverflowError):
                encode_command(command)
        with pytest.raises(OverflowError):
            encode_batch(bad)
        with pytest.raises(OverflowError):
            encode_chunk(Chunk(0, 0, 0, bad))
    for chunk in (
        Chunk(wrong, 0, 0, batch),
        Chunk(0, wrong, 0, batch),
        Chunk(0, 0, 1 << 63, batch),
    ):
        with pytest.raises(OverflowError):
            encode_chunk(chunk)
    commands: tuple[Append | Trim, ...] = (
        Append(batch, 1 << 63, 0),
        Append(batch, 0, -(1 << 64)),
        Trim(wrong),
    )
    for each in commands:
        with pytest.raises(OverflowError):
            encode_command(each)


@pytest.mark.parametrize("data", [None, bytearray(50), memoryview(bytes(50)), "x" * 50])
def test_what_is_no_bytes_is_not_read(data: Any) -> None:
    for read in (decode_batch, decode_chunk, decode_command):
        with pytest.raises(TypeError):
            read(data)


@pytest.mark.parametrize("places", [(-1, 30), (0, 31), (31, 31), (30, 29), (1 << 62, 30)])
def test_places_outside_of_the_octets_are_not_read(places: tuple[int, int]) -> None:
    data = encode_command(Append(Batch.of([b""], b"me"), 1, 2))[:30].ljust(30, b"\0")
    for read in (decode_batch, decode_command):
        with pytest.raises(Malformed, match="cut short"):
            read(data, *places)


@settings(deadline=None)
@given(
    batches,
    st.none() | st.integers(0, (1 << 63) - 1),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.binary(max_size=9),
)
def test_a_command_comes_back_from_where_it_lies(
    batch: Batch, epoch: int | None, time_ms: int, around: bytes
) -> None:
    for command in (
        Append(batch, epoch, time_ms),
        Fence(),
        Trim(batch.sequence),
        KeepSnapshot(Snapshot(batch.sequence, batch.payload)),
    ):
        data = encode_command(command)
        whole = around + data + around
        assert decode_command(whole, len(around), len(around) + len(data)) == command
        for length in range(min(len(data), 18 if isinstance(command, Append) else 10)):
            with pytest.raises(Malformed, match="cut short"):
                decode_command(data[:length])


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_octets_are_a_command_or_malformed(data: bytes) -> None:
    for start in (b"", b"\1\1", b"\1\3", b"\1\4"):
        with suppress(Malformed):
            decode_command(start + data)
        with suppress(ValueError):
            list(decode_entry(bytes(8) + len(start + data).to_bytes(4, "big") + start + data))
        with suppress(ValueError):
            list(decode_entry(start + data))
