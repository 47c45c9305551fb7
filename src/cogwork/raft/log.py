"""The log: the newest entries in memory, older ones in the storage, what was before in a snapshot.

Three marks, in order: up to `compacted_index` there is only the snapshot; up to `base_index`
entries are in the storage alone; up to `last_index` they are in memory. Of those that have left it
the terms stay: they say where logs agree, and to read an entry for its term takes a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.entries import ENTRY_OVERHEAD_BYTES, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.storage import Storage

__all__ = ("Log",)


class Log:
    """A member's entries.

    Attributes:
        compacted_index: Of the last entry that only the snapshot has.
        base_index: Of the last entry that is not in memory.
        last_index: Of the last entry; of the snapshot where there is none.
        size_bytes: What the entries in memory count.
    """

    __slots__ = (
        "_base_term",
        "_compacted_term",
        "_entries",
        "_left",
        "_storage",
        "base_index",
        "compacted_index",
        "last_index",
        "size_bytes",
    )

    def __init__(self, index: int, term: int, entries: Sequence[Entry], storage: Storage) -> None:
        """Begin after a snapshot.

        Args:
            index: Of the last entry that the snapshot replaces.
            term: Of that entry.
            entries: All that follow, or the newest, where the storage has those before.
            storage: Has older ones.
        """
        self._storage = storage
        self._entries: list[Entry] = []
        self._left: list[tuple[int, int]] = []  # index and term where the latter is another one
        self.compacted_index = self.base_index = index
        self._base_term = self._compacted_term = term
        self.size_bytes = 0
        if entries and entries[0].index > index + 1:
            self.base_index = entries[0].index - 1
            base_term = storage.term(self.base_index)
            assert base_term is not None, "the storage has what is between snapshot and entries"
            self._base_term = base_term
        self.last_index = self.base_index
        self.extend(entries)

    @property
    def last_term(self) -> int:
        """The term of the last entry; of the snapshot where there is none."""
        return self._entries[-1].term if self._entries else self._base_term

    def term(self, index: int) -> int | None:
        """Return the term of an entry; None where it is compacted, or beyond the last."""
        place = index - self.base_index
        if place > 0:
            return self._entries[place - 1].term if place <= len(self._entries) else None
        if place == 0:
            return self._base_term
        if index > self.compacted_index:
            return self._term_of_left(index)
        return self._compacted_term if index == self.compacted_index else None

    def extend(self, entries: Sequence[Entry]) -> None:
        """Put entries behind the last one."""
        assert not entries or entries[0].index == self.last_index + 1, "no gap, and no overlap"
        self._entries.extend(entries)
        self.last_index += len(entries)
        self.size_bytes += _size_bytes(entries)

    def append(self, entry: Entry) -> None:
        """Put one entry behind the last one."""
        self._entries.append(entry)
        self.last_index += 1
        self.size_bytes += len(entry.payload) + ENTRY_OVERHEAD_BYTES

    def truncate(self, index: int) -> None:
        """Drop the entries from an index on."""
        assert index > self.base_index, "what has left the memory is committed"
        place = index - self.base_index - 1
        self.size_bytes -= _size_bytes(self._entries[place:])
        del self._entries[place:]
        self.last_index = index - 1

    def tail(self, first: int) -> list[Entry]:
        """Return all entries from an index on, which are in memory."""
        assert first > self.base_index
        return self._entries[first - self.base_index - 1 :]

    def between(self, first: int, last: int, size_bytes: int, count: int) -> Sequence[Entry]:
        """Return entries of the range: at most so many and about so many octets, but one at least.

        None come where the first of them is in neither the memory nor the storage.
        """
        if first > last:
            return ()
        place = first - self.base_index - 1
        if place < 0:
            read = self._storage.entries(first, size_bytes) if first > self.compacted_index else ()
            assert not read or read[0].index == first
            return [entry for entry in read[:count] if entry.index <= last]
        entries = self._entries[place : place + min(count, last - first + 1)]
        taken = 0
        for position, entry in enumerate(entries):
            taken += len(entry.payload) + ENTRY_OVERHEAD_BYTES
            if taken > size_bytes:
                return entries[: max(1, position)]
        return entries

    def agree(self, index: int, term: int) -> tuple[int, int]:
        """Return index and term of the last entry, up to `index`, whose term is at most `term`.

        Where logs differ at `index`, they cannot agree between there and it (Raft §5.3). An index
        below the compacted one says that what agrees is given up.
        """
        index = min(index, self.last_index)
        while index >= self.compacted_index:
            own = self.term(index)
            if own is None or own <= term:
                return index, own or 0
            index -= 1
        return index, 0

    def release(self, index: int, size_bytes: int) -> None:
        """Drop old entries, up to an index, from memory where the storage has them.

        Args:
            index: Of the last one that may go.
            size_bytes: So much stays.
        """
        excess_bytes = self.size_bytes - size_bytes
        first = self.base_index + 1
        if excess_bytes <= 0 or index < first or not self._storage.holds(first):
            return
        last = self.base_index
        for entry in self._entries[: index - self.base_index]:
            if excess_bytes <= 0:
                break
            if not self._left or entry.term != self._left[-1][1]:
                self._left.append((entry.index, entry.term))
            excess_bytes -= len(entry.payload) + ENTRY_OVERHEAD_BYTES
            last = entry.index
        self._drop(last)

    def compact(self, index: int) -> None:
        """Give up the entries up to an index, which a snapshot replaces."""
        term = self.term(index)
        assert term is not None, "what is given up was there"
        if index > self.base_index:
            self._drop(index)
        while len(self._left) > 1 and self._left[1][0] <= index + 1:
            del self._left[0]
        self.compacted_index, self._compacted_term = index, term

    def reset(self, index: int, term: int) -> None:
        """Give up all entries, and begins after a snapshot."""
        self._entries.clear()
        self._left.clear()
        self.compacted_index = self.base_index = self.last_index = index
        self._base_term = self._compacted_term = term
        self.size_bytes = 0

    def _term_of_left(self, index: int) -> int | None:
        for first, term in reversed(self._left):
            if index >= first:
                return term
        return self._storage.term(index)

    def _drop(self, index: int) -> None:
        place = index - self.base_index
        self._base_term = self._entries[place - 1].term
        self.size_bytes -= _size_bytes(self._entries[:place])
        del self._entries[:place]
        self.base_index = index


def _size_bytes(entries: Sequence[Entry]) -> int:
    size_bytes = len(entries) * ENTRY_OVERHEAD_BYTES
    for entry in entries:
        size_bytes += len(entry.payload)
    return size_bytes
