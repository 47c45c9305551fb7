"""A storage that has what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.entries import Entry
    from cogwork.raft.snapshot import Snapshot

__all__ = ("Shelf",)


class Shelf:
    """Entries by their index.

    Attributes:
        kept: All of them.
        looked: How often one was looked at.
    """

    def __init__(self, kept: Sequence[Entry] = ()) -> None:
        self.kept = {entry.index: entry for entry in kept}
        self.looked = 0

    def entries(self, first: int, size_bytes: int) -> Sequence[Entry]:
        found = []
        while first in self.kept and size_bytes > 0:
            found.append(self.kept[first])
            size_bytes -= self.kept[first].size_bytes
            first += 1
        self.looked += len(found)
        return found

    def holds(self, index: int) -> bool:
        return index in self.kept

    def term(self, index: int) -> int | None:
        self.looked += 1
        return self.kept[index].term if index in self.kept else None

    def snapshot(self) -> Snapshot | None:
        return None

    def chunk(self, snapshot: Snapshot, offset: int, size_bytes: int) -> bytes | None:
        return None
