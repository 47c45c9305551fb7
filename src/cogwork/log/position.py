"""Where a record is in the write-ahead log: one number, the larger the later.

A log sequence number (LSN) is the number of the file in its upper 32 bits, and the position of the
record's first octet in the lower 32.
"""

from __future__ import annotations

__all__ = ("NUMBER_MAX", "POSITION_BITS", "POSITION_MAX", "lsn_of", "number_of", "position_of")

POSITION_BITS = 32
POSITION_MAX = (1 << POSITION_BITS) - 1
NUMBER_MAX = (1 << 32) - 1


def lsn_of(number: int, position: int) -> int:
    """Return the LSN of a position in a file."""
    return number << POSITION_BITS | position


def number_of(lsn: int) -> int:
    """Return the number of the file that an LSN is in."""
    return lsn >> POSITION_BITS


def position_of(lsn: int) -> int:
    """Return the position of an LSN in its file."""
    return lsn & POSITION_MAX
