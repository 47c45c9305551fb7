"""Sequence numbers of 32 bits that wrap, and which of two is newer (RFC 1982 §3.2).

0 stands for nothing yet, and is left out.
"""

from __future__ import annotations

__all__ = ("is_newer", "next_number")

_SIZE = 2**32
_HALF = 2**31


def is_newer(one: int, other: int) -> bool:
    """Return whether `one` comes after `other`; numbers half a circle apart are in no order."""
    return 0 < (one - other) % _SIZE < _HALF


def next_number(number: int) -> int:
    """Return the number that follows."""
    return (number + 1) % _SIZE or 1
