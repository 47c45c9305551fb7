"""What all groups of a container have on its way to the disk, one write a turn."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.raft.entries import ENTRY_OVERHEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.raft.group import Group
    from cogwork.raft.ready import Write

__all__ = ("GroupWrite", "Unpersisted", "size_bytes_of")

UNPERSISTED_BYTES_MAX = 256 * 1024 * 1024
"""Of all groups together: with more on its way, no entries are taken."""

GroupWrite = tuple[int, "Group", int]
"""A group's number, the group, and the number of a write of it."""


class Unpersisted:
    """The writes of the turns whose end is not known.

    Attributes:
        size_bytes: How much they are.
    """

    __slots__ = ("_last_number", "_turns", "size_bytes")

    def __init__(self) -> None:
        self.size_bytes = 0
        self._last_number = 0
        self._turns: deque[tuple[int, int, Sequence[GroupWrite]]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether the disk is behind."""
        return self.size_bytes > UNPERSISTED_BYTES_MAX

    def add(self, writes: Sequence[GroupWrite], size_bytes: int) -> int:
        """Take in what the groups write in a turn; return the turn's number."""
        self._last_number += 1
        self.size_bytes += size_bytes
        self._turns.append((self._last_number, size_bytes, writes))
        return self._last_number

    def take(self, number: int) -> Iterator[GroupWrite]:
        """Yield the writes of all turns up to one: they are durable."""
        assert number <= self._last_number, "there was no such write"
        while self._turns and self._turns[0][0] <= number:
            _, size_bytes, writes = self._turns.popleft()
            self.size_bytes -= size_bytes
            yield from writes


def size_bytes_of(write: Write) -> int:
    """Return how much a write of a group puts on the disk."""
    size_bytes = ENTRY_OVERHEAD_BYTES * (len(write.entries) + 1)
    for entry in write.entries:
        size_bytes += len(entry.payload)
    return size_bytes
