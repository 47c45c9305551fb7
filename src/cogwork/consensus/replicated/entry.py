"""What an entry of a stream's group holds: commands of the sequencer, and the time.

The time (8 octets, milliseconds since 1970, signed) is the leader's and the same for all of them;
then come the commands, packed like the records of a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.consensus.batch import pack, spans
from cogwork.consensus.sequencer import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.consensus.sequencer import Command

__all__ = ("decode_entry", "encode_entry")

TIME_BYTES = 8


def encode_entry(commands: Sequence[bytes], time_ms: int) -> bytes:
    """Writes an entry."""
    return pack(commands, time_ms.to_bytes(TIME_BYTES, "big", signed=True))


def decode_entry(payload: bytes) -> Iterator[Command]:
    """Yields an entry's commands, with its time.

    Raises:
        ValueError: It is none.
    """
    time_ms = int.from_bytes(payload[:TIME_BYTES], "big", signed=True)
    for start, end in spans(payload, TIME_BYTES):
        yield decode(payload, start, end, time_ms=time_ms)
