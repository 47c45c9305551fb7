"""Batches, chunks and commands as octets, for logs, for other containers, and for foreign engines.

All numbers are big-endian. A batch: count (4), sequence (8), length of the producer id (1), the
producer id, the payload up to the end. A chunk: offset (8), epoch (8), time in milliseconds (8,
signed), then its batch. A command: version (1), kind (1), and what the kind needs: to append, epoch
(8, signed, -1 for any), time in milliseconds (8, signed), the batch; to trim, the offset (8); to keep
a snapshot, the offset (8), its data. Who stores or sends them says where they end.

Compiled: each append passes here on every replica.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u32,
    load_u64,
    octets_of,
)
from cython.cimports.libc.string import memcpy

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.commands import Append, Fence, KeepSnapshot, Trim
from cogwork.plugin.engine.contract import Snapshot
from cogwork.plugin.engine.errors import Malformed

__all__ = (
    "SOURCE_HASH",
    "chunk_parts",
    "decode_batch",
    "decode_chunk",
    "decode_command",
    "encode_batch",
    "encode_chunk",
    "encode_command",
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

PRODUCER_MAX = cython.declare(cython.int, 255)


# Batches.


def store_batch(p, batch, producer):
    """Write what stands before a batch's payload; return where that ends."""
    length: cython.Py_ssize_t = len(producer)
    if length > PRODUCER_MAX:
        raise OverflowError(f"a producer id of {length} octets")
    store_u32(p, batch.count)
    store_u64(p + 4, batch.sequence)
    p[12] = cython.cast(uint8_t, length)
    memcpy(p + BATCH_HEAD_BYTES, octets_of(producer), length)
    return p + BATCH_HEAD_BYTES + length


def encode_batch(batch: object) -> bytes:
    """Write a batch."""
    front = cython.declare(uint8_t[FRONT_BYTES_MAX])
    end: cython.pointer(uint8_t) = store_batch(front, batch, batch.producer)
    return b"".join((bytes_from(front, end - front), batch.payload))


def decode_batch(data: bytes, position: int = 0, end: object = None) -> object:
    """Read a batch that goes from `position` to `end`, or to the end of all.

    Raises:
        Malformed: It is none.
    """
    return read_batch(data, position, len(data) if end is None else end)


def read_batch(data, start, end):
    p: octets
    length: int64_t
    if data is None or start < 0 or end > len(data) or end - start < BATCH_HEAD_BYTES:
        raise Malformed("a batch", "it is cut short")
    p = octets_of(data) + start
    start += BATCH_HEAD_BYTES
    length = p[12]
    if length > end - start:
        raise Malformed("a batch", "it is cut short")
    return Batch(
        bytes_from(p + BATCH_HEAD_BYTES + length, end - start - length),
        load_u32(p),
        bytes_from(p + BATCH_HEAD_BYTES, length),
        load_u64(p + 4),
    )


# Chunks.


def chunk_parts(chunk):
    """Write a chunk, in pieces to be joined; the last one is its payload."""
    front = cython.declare(uint8_t[FRONT_BYTES_MAX])
    time_ms: int64_t = chunk.time_ms
    batch = chunk.batch
    end: cython.pointer(uint8_t) = store_batch(front + PLACE_BYTES, batch, batch.producer)
    store_u64(front, chunk.offset)
    store_u64(front + 8, chunk.epoch)
    store_u64(front + 16, cython.cast(uint64_t, time_ms))
    return bytes_from(front, end - front), batch.payload


def encode_chunk(chunk: object) -> bytes:
    """Write a chunk."""
    return b"".join(chunk_parts(chunk))


def decode_chunk(data: bytes) -> object:
    """Read a chunk.

    Raises:
        Malformed: It is none.
    """
    p: octets
    if len(data) < PLACE_BYTES:
        raise Malformed("a chunk", "it is cut short")
    p = octets_of(data)
    return Chunk(
        load_u64(p),
        load_u64(p + 8),
        cython.cast(int64_t, load_u64(p + 16)),
        read_batch(data, PLACE_BYTES, len(data)),
    )


# Commands.


def encode_command(command):
    """Write a command."""
    front = cython.declare(uint8_t[FRONT_BYTES_MAX])
    kind = type(command)
    epoch: int64_t = NO_EPOCH
    time_ms: int64_t
    end: cython.pointer(uint8_t)
    front[0] = VERSION
    if kind is Append:
        batch = command.batch
        if command.epoch is not None:
            epoch = command.epoch
        time_ms = command.time_ms
        front[1] = APPEND
        store_u64(front + 2, cython.cast(uint64_t, epoch))
        store_u64(front + 10, cython.cast(uint64_t, time_ms))
        end = store_batch(front + APPEND_HEAD_BYTES, batch, batch.producer)
        return b"".join((bytes_from(front, end - front), batch.payload))
    if kind is Fence:
        front[1] = FENCE
        return bytes_from(front, COMMAND_HEAD_BYTES)
    if kind is Trim:
        front[1] = TRIM
        store_u64(front + 2, command.before)
        return bytes_from(front, NUMBER_HEAD_BYTES)
    snapshot = command.snapshot
    front[1] = SNAPSHOT
    store_u64(front + 2, snapshot.offset)
    return b"".join((bytes_from(front, NUMBER_HEAD_BYTES), snapshot.data))


def decode_command(
    data: bytes, start: int = 0, end: object = None, *, time_ms: object = None
) -> object:
    """Read a command.

    Args:
        data: What holds it.
        start: Where it begins there.
        end: Where it ends; None for the end of all.
        time_ms: When it was proposed, where that is not for the command to say.

    Raises:
        Malformed: It is none, or of another version.
    """
    return read_command(data, start, len(data) if end is None else end, time_ms)


def read_command(data, start, end, time_ms):
    p: octets
    epoch: int64_t
    size: int64_t = end - start
    if data is None or start < 0 or end > len(data) or size < COMMAND_HEAD_BYTES:
        raise Malformed("a command", "it is cut short")
    p = octets_of(data) + start
    if p[0] != VERSION:
        raise Malformed("a command", f"its version is {p[0]}, not {VERSION}")
    if p[1] == FENCE:
        return Fence()
    if p[1] == APPEND:
        if size < APPEND_HEAD_BYTES:
            raise Malformed("a command", "it is cut short")
        epoch = cython.cast(int64_t, load_u64(p + 2))
        if time_ms is None:
            time_ms = cython.cast(int64_t, load_u64(p + 10))
        batch = read_batch(data, start + APPEND_HEAD_BYTES, end)
        return Append(batch, None if epoch == NO_EPOCH else epoch, time_ms)
    if p[1] != TRIM and p[1] != SNAPSHOT:
        raise Malformed("a command", f"its kind is {p[1]}")
    if size < NUMBER_HEAD_BYTES:
        raise Malformed("a command", "it is cut short")
    if p[1] == TRIM:
        return Trim(load_u64(p + 2))
    kept = bytes_from(p + NUMBER_HEAD_BYTES, size - NUMBER_HEAD_BYTES)
    return KeepSnapshot(Snapshot(load_u64(p + 2), kept))
