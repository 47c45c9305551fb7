"""Batches and chunks as octets, for logs, for other containers, and for foreign engines.

All numbers are big-endian. A batch: count (4), sequence (8), length of the producer id (1), the
producer id, the payload up to the end. A chunk: offset (8), epoch (8), time in milliseconds (8,
signed), then its batch. Who stores or sends them says where they end.
"""

from __future__ import annotations

import struct

from cogwork.consensus.batch import Batch, Chunk
from cogwork.consensus.errors import Malformed

__all__ = ("decode_batch", "decode_chunk", "encode_batch", "encode_chunk")

_BATCH = struct.Struct(">IQB")
_PLACE = struct.Struct(">QQq")
_CHUNK = struct.Struct(">QQqIQB")


def encode_batch(batch: Batch, before: bytes = b"") -> bytes:
    """Writes a batch, behind what is to stand before it: payloads are large, and copied once."""
    producer = batch.producer
    head = _BATCH.pack(batch.count, batch.sequence, len(producer))
    return b"".join((before, head, producer, batch.payload))


def decode_batch(data: bytes, position: int = 0, end: int | None = None) -> Batch:
    """Reads a batch that goes from `position` to `end`, or to the end of all.

    Raises:
        Malformed: It is none.
    """
    end = len(data) if end is None else end
    start = position + _BATCH.size
    if start > end:
        raise Malformed("a batch", "it is cut short")
    count, sequence, length = _BATCH.unpack_from(data, position)
    payload_at = start + length
    if payload_at > end:
        raise Malformed("a batch", "it is cut short")
    return Batch(data[payload_at:end], count, data[start:payload_at], sequence)


def chunk_parts(chunk: Chunk) -> tuple[bytes, bytes, bytes]:
    """Writes a chunk, in pieces to be joined; the last one is its payload."""
    batch = chunk.batch
    producer = batch.producer
    head = _CHUNK.pack(
        chunk.offset, chunk.epoch, chunk.time_ms, batch.count, batch.sequence, len(producer)
    )
    return head, producer, batch.payload


def encode_chunk(chunk: Chunk) -> bytes:
    """Writes a chunk."""
    return b"".join(chunk_parts(chunk))


def decode_chunk(data: bytes) -> Chunk:
    """Reads a chunk.

    Raises:
        Malformed: It is none.
    """
    try:
        offset, epoch, time_ms = _PLACE.unpack_from(data)
    except struct.error as error:
        raise Malformed("a chunk", "it is cut short") from error
    return Chunk(offset, epoch, time_ms, decode_batch(data, _PLACE.size))
