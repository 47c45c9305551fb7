"""The octets of batches and chunks, byte by byte, and hostile ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.consensus.batch import PRODUCER_BYTES_MAX, SEQUENCE_MAX, Batch, Chunk
from cogwork.consensus.chunks import decode_batch, decode_chunk, encode_batch, encode_chunk
from cogwork.consensus.errors import Malformed

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
