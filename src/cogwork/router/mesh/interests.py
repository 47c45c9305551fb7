"""Who wants what: each container's entries, as its own deltas and snapshots say.

A table has a sequence and a digest of all its entries. A delta applies to the table one before it,
and only where the digest comes out right; everything else asks for a snapshot. Of two tables with
one sequence the one with the greater digest holds, so that everybody ends with the same, and the
container itself sees what is said in its name.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import (
    HISTORY_DELTAS_MAX,
    INTEREST_BYTES_MAX,
    INTERESTS_MAX,
    MESH_INTEREST_BYTES_MAX,
    MESH_INTERESTS_MAX,
    PART_INTERESTS_MAX,
)
from cogwork.router.mesh.messages import Interest, InterestDelta, InterestSnapshot
from cogwork.router.mesh.serial import is_newer, next_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cogwork.router.mesh.messages import InterestKey

__all__ = ("Change", "InterestTable", "Interests", "Outcome")


class Outcome(Enum):
    """What became of a delta or a snapshot."""

    APPLIED = auto()
    KNOWN = auto()
    OLD = auto()
    """The sender lacks something."""
    GAP = auto()
    """Deltas before this one are missing."""
    CONFLICT = auto()
    """It does not belong to this table: only a snapshot helps."""
    REFUSED = auto()
    """It is beyond the bounds."""


class Change:
    """A change that was worked out and not yet made.

    Attributes:
        removed: Entries that go, by label.
        added: Entries that come or change, by label.
        digest: That of the table afterwards.
        size_bytes: That of the table afterwards.
        count: Entries of the table afterwards.
    """

    __slots__ = ("added", "count", "digest", "removed", "size_bytes")

    def __init__(
        self, table: Interests, removed: Mapping[int, Interest], added: Mapping[int, Interest]
    ) -> None:
        self.removed = removed
        self.added = added
        self.digest = table.digest
        self.size_bytes = table.size_bytes
        self.count = len(table.entries) - len(removed)
        for label, entry in removed.items():
            self._take_out(label, entry)
        for label, entry in added.items():
            before = table.entries.get(label) if label not in removed else None
            if before is not None:
                self._take_out(label, before)
            self.digest ^= entry.digest(label)
            self.size_bytes += entry.size_bytes
            self.count += before is None

    @property
    def is_within_bounds(self) -> bool:
        """Whether the table may become that large."""
        return self.count <= INTERESTS_MAX and self.size_bytes <= INTEREST_BYTES_MAX

    def _take_out(self, label: int, entry: Interest) -> None:
        self.digest ^= entry.digest(label)
        self.size_bytes -= entry.size_bytes


class Interests:
    """The entries of one container.

    Attributes:
        incarnation: Of which life.
        sequence: Of the last change.
        digest: Of all entries.
        entries: By label.
        labels: Of each entry, by what it is in.
        size_bytes: Characters of all entries.
    """

    __slots__ = (
        "_history",
        "digest",
        "entries",
        "incarnation",
        "labels",
        "sequence",
        "size_bytes",
    )

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.sequence = 0
        self.digest = 0
        self.entries: dict[int, Interest] = {}
        self.labels: dict[InterestKey, int] = {}
        self.size_bytes = 0
        self._history: deque[InterestDelta] = deque(maxlen=HISTORY_DELTAS_MAX)

    def deltas_after(self, sequence: int) -> list[InterestDelta] | None:
        """Return what came after a sequence; None where too much has been forgotten."""
        found: list[InterestDelta] = []
        if sequence == self.sequence:
            return found
        for delta in reversed(self._history):
            found.append(delta)
            if delta.sequence == next_number(sequence):
                return found[::-1]
        return None

    def parts(self, origin: str) -> Iterator[InterestSnapshot]:
        """Yield the whole table, in the parts of a snapshot."""
        entries = tuple(self.entries.items())
        count = max(1, -(-len(entries) // PART_INTERESTS_MAX))
        for part in range(count):
            start = part * PART_INTERESTS_MAX
            yield InterestSnapshot(
                origin=origin,
                incarnation=self.incarnation,
                sequence=self.sequence,
                digest=self.digest,
                part=part,
                parts=count,
                entries=entries[start : start + PART_INTERESTS_MAX],
            )

    def weigh(self, sequence: int, digest: int) -> Outcome:
        """Return what a table of this sequence and digest is to this one; APPLIED where newer."""
        if sequence == self.sequence:
            if digest == self.digest:
                return Outcome.KNOWN
            return Outcome.APPLIED if digest > self.digest else Outcome.OLD
        return Outcome.APPLIED if is_newer(sequence, self.sequence) else Outcome.OLD

    def change_of(self, delta: InterestDelta) -> Change | Outcome:
        """Work out what a delta changes, or why it does not apply."""
        weight = self.weigh(delta.sequence, delta.digest)
        if weight is not Outcome.APPLIED:
            return weight
        if delta.sequence != next_number(self.sequence):
            return Outcome.CONFLICT if delta.sequence == self.sequence else Outcome.GAP
        if any(label not in self.entries for label in delta.removed):
            return Outcome.CONFLICT
        removed = {label: self.entries[label] for label in delta.removed}
        change = Change(self, removed, dict(delta.added))
        if not change.is_within_bounds:
            return Outcome.REFUSED
        return change if change.digest == delta.digest else Outcome.CONFLICT

    def remember(self, delta: InterestDelta) -> None:
        """Keep a delta that was applied for neighbours that have missed it."""
        self.sequence = delta.sequence
        self._history.append(delta)

    def replaced(self, sequence: int) -> None:
        """Take the sequence of a snapshot that was applied: what came before is forgotten."""
        self.sequence = sequence
        self._history.clear()


class InterestTable:
    """The entries of all containers.

    Attributes:
        origins: By container.
        count: Entries of all containers.
        size_bytes: Of all entries.
    """

    def __init__(self) -> None:
        self.origins: dict[str, Interests] = {}
        self.count = 0
        self.size_bytes = 0

    def open(self, origin: str, incarnation: int) -> Interests:
        """Return the entries of a container, empty ones where its incarnation is new."""
        table = self.origins.get(origin)
        if table is None or table.incarnation != incarnation:
            self.drop(origin)
            table = self.origins[origin] = Interests(incarnation)
        return table

    def drop(self, origin: str) -> dict[int, Interest]:
        """Forget a container; return its entries."""
        table = self.origins.pop(origin, None)
        if table is None:
            return {}
        self.count -= len(table.entries)
        self.size_bytes -= table.size_bytes
        return table.entries

    def has_room(self, table: Interests, change: Change) -> bool:
        """Return whether there is room for a change: for one that makes a table smaller always."""
        count, size_bytes = change.count - len(table.entries), change.size_bytes - table.size_bytes
        return (count <= 0 or self.count + count <= MESH_INTERESTS_MAX) and (
            size_bytes <= 0 or self.size_bytes + size_bytes <= MESH_INTEREST_BYTES_MAX
        )

    def commit(self, table: Interests, change: Change) -> None:
        """Make a change."""
        self.count += change.count - len(table.entries)
        self.size_bytes += change.size_bytes - table.size_bytes
        for label, entry in change.removed.items():
            _take_out(table, label, entry)
        for label, entry in change.added.items():
            before = table.entries.get(label)
            if before is not None and before.key != entry.key:
                _take_out(table, label, before)
            table.entries[label] = entry
            table.labels[entry.key] = label
        table.digest = change.digest
        table.size_bytes = change.size_bytes


def _take_out(table: Interests, label: int, entry: Interest) -> None:
    del table.entries[label]
    if table.labels.get(entry.key) == label:
        del table.labels[entry.key]
