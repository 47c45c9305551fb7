"""What an entry of a stream's group holds: commands of the sequencer, and the time.

The time (8 octets, milliseconds since 1970, signed) is the leader's and the same for all of them;
then come the commands, packed like the records of a batch.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u32,
    load_u64,
    octets_of,
)
from cython.cimports.cogwork.plugin.engine.chunks import read_command

__all__ = ("SOURCE_HASH", "decode_entry", "encode_entry")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

LENGTH_MAX = cython.declare(int64_t, 2**32 - 1)


def encode_entry(commands: object, time_ms: int) -> bytes:
    """Write an entry."""
    head = cython.declare(uint8_t[TIME_BYTES])
    made_ms: int64_t = time_ms
    length: int64_t
    store_u64(head, cython.cast(uint64_t, made_ms))
    parts: list = [bytes_from(head, TIME_BYTES)]
    for command in commands:
        length = len(command)
        if length > LENGTH_MAX:
            raise OverflowError(f"a command of {length} octets")
        store_u32(head, cython.cast(uint32_t, length))
        parts.append(bytes_from(head, LENGTH_BYTES))
        parts.append(command)
    return b"".join(parts)


def decode_entry(payload: bytes):
    """Yield an entry's commands, with its time.

    Raises:
        ValueError: It is none.
    """
    position: int64_t = TIME_BYTES
    length: int64_t
    end: int64_t = len(payload)
    if end <= TIME_BYTES:
        return
    time_ms = cython.cast(int64_t, load_u64(octets_of(payload)))
    while position < end:
        length = load_u32(octets_of(payload) + position) if end - position >= LENGTH_BYTES else end
        position += LENGTH_BYTES
        if length > end - position:
            raise ValueError("the payload ends in the middle of a record")
        yield read_command(payload, position, position + length, time_ms)
        position += length
