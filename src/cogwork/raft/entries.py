"""Entries of the log."""

from __future__ import annotations

from enum import IntEnum

import msgspec

__all__ = ("ENTRY_OVERHEAD_BYTES", "Entry", "Kind")

ENTRY_OVERHEAD_BYTES = 128
"""What an entry counts in all bounds beside its payload: about what its objects take."""


class Kind(IntEnum):
    """What an entry is for."""

    COMMAND = 0
    """The application's own."""

    NOOP = 1
    """The first entry of a leader: by it all earlier ones get committed (Raft §5.4.2, §8)."""

    MEMBERS = 2
    """A membership, in effect from the moment it is in the log (Raft §6)."""


class Entry(msgspec.Struct, gc=False):
    """One entry, never changed; index and term name it: no other one ever has both.

    Attributes:
        index: Its place; the first is 1.
        term: Of the leader that made it.
        kind: What it is for.
        payload: Opaque, where it is a command.
    """

    index: int
    term: int
    kind: int
    payload: bytes

    @property
    def size_bytes(self) -> int:
        """What it counts in bounds."""
        return len(self.payload) + ENTRY_OVERHEAD_BYTES
