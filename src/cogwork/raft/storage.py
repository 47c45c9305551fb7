"""What a group asks of whoever keeps its log and its snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.entries import Entry
    from cogwork.raft.snapshot import Snapshot

__all__ = ("NoStorage", "Storage")


class Storage(Protocol):
    """Older entries and snapshots; answers at once, from memory or by a read that does not last."""

    def entries(self, first: int, size_bytes: int) -> Sequence[Entry]:
        """Return durable entries from an index on, about so many octets; none: given up."""

    def holds(self, index: int) -> bool:
        """Tell, without a look at it, whether a durable entry can be read again."""

    def term(self, index: int) -> int | None:
        """Return the term of a durable entry; None where it is given up."""

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot that can be sent; None where there is none yet.

        Its content stays readable while it is asked for again and again.
        """

    def chunk(self, snapshot: Snapshot, offset: int, size_bytes: int) -> bytes | None:
        """Return octets of a snapshot's content, none at its end; None where it is gone."""


class NoStorage:
    """Nothing but what the group has in memory."""

    def entries(self, _first: int, _size_bytes: int) -> Sequence[Entry]:
        """Return nothing."""
        return ()

    def holds(self, _index: int) -> bool:
        """Tell that it cannot."""
        return False

    def term(self, _index: int) -> int | None:
        """Return nothing."""
        return None

    def snapshot(self) -> Snapshot | None:
        """Return nothing."""
        return None

    def chunk(self, _snapshot: Snapshot, _offset: int, _size_bytes: int) -> bytes | None:
        """Return nothing."""
        return None
