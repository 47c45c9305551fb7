"""Snapshots that arrive in parts, put together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import INTEREST_BYTES_MAX, SNAPSHOTS_MAX

if TYPE_CHECKING:
    from cogwork.router.mesh.messages import Interest, InterestSnapshot

__all__ = ("Assembly", "assemble")


class Assembly:
    """The parts of one snapshot, as far as they have come."""

    __slots__ = ("_first", "_parts", "_size_bytes")

    def __init__(self, first: InterestSnapshot) -> None:
        self._first = first
        self._parts: dict[int, InterestSnapshot] = {}
        self._size_bytes = 0

    def takes(self, part: InterestSnapshot) -> bool:
        """Return whether a part is of the same snapshot."""
        first = self._first
        return (first.sequence, first.digest, first.parts) == (
            part.sequence,
            part.digest,
            part.parts,
        )

    def add(self, part: InterestSnapshot) -> None:
        """Take a part; one that has come before changes nothing."""
        if part.part not in self._parts:
            self._parts[part.part] = part
            self._size_bytes += sum(entry.size_bytes for _, entry in part.entries)

    @property
    def is_whole(self) -> bool:
        """Whether all parts have come."""
        return len(self._parts) == self._first.parts

    @property
    def is_within_bounds(self) -> bool:
        """Whether what has come may be a container's."""
        return self._size_bytes <= INTEREST_BYTES_MAX

    def entries(self) -> dict[int, Interest]:
        """Return all entries, by label."""
        return {label: entry for each in self._parts.values() for label, entry in each.entries}


def assemble(begun: dict[str, Assembly], part: InterestSnapshot) -> dict[int, Interest] | None:
    """Put a part to the others of its snapshot; return all entries with the last one.

    What grows beyond the bounds is dropped before it is whole.

    Args:
        begun: Snapshots that one neighbour has begun to send, by origin.
        part: What came.
    """
    if part.parts == 1:
        return dict(part.entries)
    found = begun.pop(part.origin, None)
    if found is None or not found.takes(part):
        found = Assembly(part)
    found.add(part)
    if found.is_whole:
        return found.entries()
    if not found.is_within_bounds:
        return None
    while len(begun) >= SNAPSHOTS_MAX:
        del begun[next(iter(begun))]
    begun[part.origin] = found
    return None
