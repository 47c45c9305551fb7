"""What the invariant checker knows of a replica, from what it wrote and gave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.entries import Kind
from cogwork.raft.membership import Membership

if TYPE_CHECKING:
    from cogwork.raft.entries import Entry
    from cogwork.raft.snapshot import Snapshot
    from cogwork.sim.raft.store import Store

__all__ = ("Log", "Quorums", "Shadow", "quorums_of")

MEMBERS = int(Kind.MEMBERS)

Quorums = tuple[frozenset[str], ...]
"""A majority of each set is needed: one set, or two in a joint configuration."""


def quorums_of(membership: Membership) -> Quorums:
    """Return whose majorities a membership needs."""
    halves = (frozenset(membership.voters), frozenset(membership.old_voters))
    return tuple(half for half in halves if half)


class Log:
    """One view of a replica's log: in memory, or on disk.

    Attributes:
        base: The index of the snapshot it begins with.
        base_term: That entry's term.
        last: The last index.
        terms: By index.
        quorums: Configurations in it, by index, ascending.
    """

    __slots__ = ("base", "base_term", "last", "quorums", "terms")

    def __init__(self, quorums: Quorums) -> None:
        self.base = self.base_term = self.last = 0
        self.terms: dict[int, int] = {}
        self.quorums: list[tuple[int, Quorums]] = [(0, quorums)]

    def append(self, entry: Entry) -> None:
        """Put an entry at its place; what was there and behind it is gone."""
        index = entry.index
        self.cut(index)
        self.terms[index] = entry.term
        self.last = index
        if entry.kind == MEMBERS:
            self.quorums.append((index, quorums_of(Membership.from_bytes(entry.payload))))

    def cut(self, index: int) -> None:
        """Remove everything from an index on."""
        if index <= self.last:
            for gone in range(index, self.last + 1):
                self.terms.pop(gone, None)
            self.last = index - 1
            while self.quorums[-1][0] >= index and len(self.quorums) > 1:
                self.quorums.pop()

    def restore(self, snapshot: Snapshot) -> None:
        """Begin anew with a snapshot."""
        self.terms.clear()
        self.base = self.last = snapshot.index
        self.base_term = snapshot.term
        self.quorums = [(snapshot.index, quorums_of(snapshot.membership))]

    def term(self, index: int) -> int | None:
        """Return the term of an entry."""
        return self.base_term if index == self.base else self.terms.get(index)

    def holds(self, index: int, term: int) -> bool:
        """Return whether an entry is in it, or in its snapshot."""
        return index < self.base or self.term(index) == term


class Shadow:
    """What the invariant checker knows of a replica.

    Attributes:
        name: Its name.
        log: Its log.
        disk: What its disk holds.
        term: Its term.
        commit: Its commit index.
        applied: What it has applied.
        is_leader: Whether it leads.
        sent_term: The highest term that others have heard from it.
        asked: The members that it was asked for as the leader, and its commit index then.
        heir: To whom it hands over.
    """

    __slots__ = (
        "applied",
        "asked",
        "commit",
        "disk",
        "heir",
        "is_leader",
        "log",
        "name",
        "sent_term",
        "term",
    )

    def __init__(self, name: str, quorums: Quorums, disk: Store) -> None:
        self.name = name
        self.log = Log(quorums)
        self.disk = disk
        self.term = self.sent_term = self.commit = self.applied = 0
        self.is_leader = False
        self.asked: tuple[Membership, int] | None = None
        self.heir = ""
