"""What everybody says of their neighbours: the newest advertisement of each container.

Advertisements are in a total order: by incarnation, then sequence (RFC 1982), then content. So any
order of arrival ends in the same state, also where somebody lies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING
from zlib import crc32

from cogwork.router.mesh.bounds import CONTAINERS_MAX, INCARNATION_LEAP_MAX, ROOM_S
from cogwork.router.mesh.serial import is_newer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.router.mesh.messages import Advertisement

__all__ = ("Database", "Record", "Verdict", "supersedes")


class Verdict(Enum):
    """What became of an advertisement."""

    NEW = auto()
    """It is in, and it says something new."""
    REPEATED = auto()
    """It is in; its neighbours are those of the one before."""
    KNOWN = auto()
    OLD = auto()
    REFUSED = auto()
    """It is beyond the bounds."""


@dataclass(slots=True)
class Record:
    """What is known of one container.

    Attributes:
        advertisement: The newest.
        born_s: When its origin sent it, by the clock of this container.
        known_s: Since when the container is known here.
        content: A checksum of the neighbours.
    """

    advertisement: Advertisement
    born_s: float
    known_s: float
    content: int = 0

    def __post_init__(self) -> None:
        self.replace(self.advertisement, self.born_s)

    def replace(self, advertisement: Advertisement, born_s: float) -> None:
        """Take a newer advertisement."""
        self.advertisement = advertisement
        self.born_s = born_s
        self.content = _content(advertisement.neighbours)

    def aged(self, now_s: float) -> Advertisement:
        """Return the advertisement as old as it is now; within a second the same object."""
        age_s = max(0, int(now_s - self.born_s))
        if self.advertisement.age_s != age_s:
            self.advertisement = replace(self.advertisement, age_s=age_s)
        return self.advertisement


def _content(neighbours: tuple[tuple[str, int], ...]) -> int:
    return crc32(" ".join(f"{container} {cost}" for container, cost in neighbours).encode())


def supersedes(one: Advertisement, other: Advertisement) -> bool:
    """Return whether `one` replaces `other`."""
    if one.incarnation != other.incarnation:
        return one.incarnation > other.incarnation
    if one.sequence != other.sequence:
        return is_newer(one.sequence, other.sequence)
    return one.neighbours > other.neighbours


class Database:
    """The newest advertisement of each container.

    Attributes:
        records: By container.
        removed: Containers that were forgotten; whoever takes note empties it.
    """

    def __init__(self, max_age_s: float) -> None:
        self.records: dict[str, Record] = {}
        self.removed: list[str] = []
        self._max_age_s = max_age_s

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records.values())

    def incarnation(self, container: str) -> int:
        """Return the known incarnation of a container; 0 for none."""
        record = self.records.get(container)
        return 0 if record is None else record.advertisement.incarnation

    def offer(
        self,
        advertisement: Advertisement,
        now_s: float,
        is_needed: Callable[[str], bool],
        *,
        is_own: bool = False,
    ) -> Verdict:
        """Take an advertisement in, where it is newer.

        Args:
            advertisement: What came.
            now_s: The time.
            is_needed: Tells whether a container can be reached: others make room where it is full.
            is_own: Whether it is this container's own, which is free to leap.
        """
        origin, age_s = advertisement.origin, advertisement.age_s
        known = self.records.get(origin)
        if age_s >= self._max_age_s:
            return Verdict.OLD
        if known is None:
            if len(self.records) >= CONTAINERS_MAX and not self._make_room(is_needed, now_s):
                return Verdict.REFUSED
            self.records[origin] = Record(advertisement, now_s - age_s, now_s)
            return Verdict.NEW
        before = known.advertisement
        leap = advertisement.incarnation - before.incarnation
        if leap > INCARNATION_LEAP_MAX and not is_own:
            return Verdict.REFUSED
        if not supersedes(advertisement, before):
            return Verdict.OLD if supersedes(before, advertisement) else Verdict.KNOWN
        known.replace(advertisement, now_s - age_s)
        is_new = advertisement.neighbours != before.neighbours
        is_new |= advertisement.incarnation != before.incarnation
        return Verdict.NEW if is_new else Verdict.REPEATED

    def remove(self, container: str) -> None:
        """Forget a container."""
        del self.records[container]
        self.removed.append(container)

    def expired(self, now_s: float) -> list[str]:
        """List the containers whose advertisement is too old."""
        return [
            origin
            for origin, record in self.records.items()
            if now_s - record.born_s >= self._max_age_s
        ]

    def _make_room(self, is_needed: Callable[[str], bool], now_s: float) -> bool:
        """Forget one container that nobody can reach, the one not heard of for longest."""
        idle = [
            each
            for each in self.records.values()
            if now_s - each.known_s >= ROOM_S and not is_needed(each.advertisement.origin)
        ]
        if not idle:
            return False
        self.remove(min(idle, key=lambda each: each.born_s).advertisement.origin)
        return True
