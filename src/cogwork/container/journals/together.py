"""Records of several queues that are all there after a crash, or none of them (a transaction's).

Theory of operation. The log is read back as a prefix of what was written. So records that belong
together name their last one: each says how many of them follow, in the field `index`, and which
ones belong together, in `term`. Whoever reads the log back keeps them aside until the last one has
come; where another record comes first they were torn in an earlier life, and mean nothing.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.log.record import Record

__all__ = ("ALONE", "Place", "Together", "places_for")

NAME_BITS = 63


class Place(NamedTuple):
    """Where a record stands among those that it belongs to.

    Attributes:
        following: How many follow it.
        name: Names all of them; 0 where it stands alone.
    """

    following: int
    name: int


ALONE = Place(0, 0)


def places_for(count: int) -> Iterator[Place]:
    """Yield the places of so many records that belong together; one is whole by itself."""
    name = 0 if count < 2 else secrets.randbits(NAME_BITS) + 1
    return (Place(following, name) for following in reversed(range(count)))


class Together:
    """Keeps records aside that belong together, as a log is read back."""

    def __init__(self) -> None:
        """Keep none yet."""
        self._kept: list[Record] = []

    def take(self, record: Record) -> list[Record]:
        """Take the next record of a queue; return those that count now, in order."""
        if self._kept and self._kept[0].term != record.term:
            self._kept = []
        if not record.term:
            return [record]
        self._kept.append(record)
        if record.index:
            return []
        found, self._kept = self._kept, []
        return found
