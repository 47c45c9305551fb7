"""What a replica's group reads again of what is durable: entries, and the newest snapshot.

What cannot be read counts as given up: the members that need it are sent a snapshot. It is this
replica's trouble alone, and must not end the turn of all groups of the container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.log.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.raft.entries import Entry
    from cogwork.raft.snapshot import Snapshot
    from cogwork.replication.files import ReplicaFiles
    from cogwork.replication.journal import Journal

__all__ = ("MemberStorage",)

TOLD_MAX = 100
"""So many kinds of damage are told at most."""


class MemberStorage:
    """What a group asks of its storage."""

    def __init__(
        self, journal: Journal, files: ReplicaFiles, report: Callable[[str], None]
    ) -> None:
        """Read from a journal and from files.

        Args:
            journal: The replica's.
            files: The replica's.
            report: Takes what the operator should know.
        """
        self._journal = journal
        self._files = files
        self._report = report
        self._told: set[str] = set()

    def entries(self, first: int, size_bytes: int) -> Sequence[Entry]:
        """Return durable entries from an index on, about so many octets; none: given up."""
        try:
            return self._journal.entries(first, size_bytes)
        except (LogError, OSError) as error:
            self._tell(error)
            return ()

    def holds(self, index: int) -> bool:
        """Return whether the journal has an entry."""
        return self._journal.holds(index)

    def term(self, index: int) -> int | None:
        """Return the term of a durable entry; None where it is given up."""
        snapshot = self.snapshot()
        if snapshot is not None and snapshot.index == index:
            return snapshot.term
        try:
            return self._journal.term(index)
        except (LogError, OSError) as error:
            self._tell(error)
            return None

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot that can be sent; None where there is none yet."""
        return None if self._files.state is None else self._files.state.snapshot

    def chunk(self, snapshot: Snapshot, offset: int, size_bytes: int) -> bytes | None:
        """Return octets of a snapshot's content; None where it is gone, for a newer one."""
        state = self._files.state
        if state is None or state.snapshot != snapshot:
            return None
        return state.content[offset : offset + size_bytes]

    def _tell(self, error: Exception) -> None:
        text = str(error)
        if text not in self._told and len(self._told) < TOLD_MAX:
            self._told.add(text)
            self._report(f"cannot read an entry and treats it as deleted: {text}")
