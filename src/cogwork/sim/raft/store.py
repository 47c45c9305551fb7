"""What is durable on a replica's disk, read as a log: what a group asks its storage for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.ready import HardState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.entries import Entry
    from cogwork.raft.snapshot import Snapshot
    from cogwork.sim.raft.disk import Record

__all__ = ("Store",)


class Store:
    """Takes durable records in their order.

    Attributes:
        hard_state: The last.
        entries_by_index: Durable entries; where snapshots replace them, only the last few.
        newest: The newest snapshot, made here or received.
        content: Its content.
        last: The last index.
        kept: So many entries before a snapshot made here stay.
    """

    __slots__ = ("content", "entries_by_index", "hard_state", "kept", "last", "newest")

    def __init__(self, kept: int) -> None:
        self.hard_state = HardState()
        self.entries_by_index: dict[int, Entry] = {}
        self.newest: Snapshot | None = None
        self.content = b""
        self.last = 0
        self.kept = kept

    def take(self, record: Record) -> None:
        """Take the next durable record."""
        kind, value, *rest = record
        if kind == "entry":
            entries = self.entries_by_index
            for index in range(value.index, self.last + 1):
                entries.pop(index, None)
            entries[value.index] = value
            self.last = value.index
        elif kind == "hard":
            self.hard_state = value
        elif kind == "received":
            self.entries_by_index.clear()
            self.last = value.index
            self.newest, self.content = value, rest[0]
        elif self.newest is None or value.index > self.newest.index:
            self.newest, self.content = value, rest[0]
            for index in [i for i in self.entries_by_index if i <= value.index - self.kept]:
                del self.entries_by_index[index]

    def has(self, index: int, term: int) -> bool:
        """Return whether an entry is in the log, or in the snapshot."""
        if self.newest is not None and index <= self.newest.index:
            return True
        entry = self.entries_by_index.get(index)
        return entry is not None and entry.term == term

    # As a group's storage.

    def entries(self, first: int, size_bytes: int) -> Sequence[Entry]:
        """Return durable entries from an index on, about so many octets."""
        found: list[Entry] = []
        entry = self.entries_by_index.get(first)
        while entry is not None and size_bytes > 0:
            found.append(entry)
            size_bytes -= entry.size_bytes
            entry = self.entries_by_index.get(entry.index + 1)
        return found

    def holds(self, index: int) -> bool:
        """Return whether an entry is in the log."""
        return index in self.entries_by_index

    def term(self, index: int) -> int | None:
        """Return the term of a durable entry."""
        entry = self.entries_by_index.get(index)
        if entry is not None:
            return entry.term
        newest = self.newest
        return newest.term if newest is not None and newest.index == index else None

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return self.newest

    def chunk(self, snapshot: Snapshot, offset: int, size_bytes: int) -> bytes | None:
        """Return octets of a snapshot's content."""
        if snapshot != self.newest:
            return None
        return self.content[offset : offset + size_bytes]
