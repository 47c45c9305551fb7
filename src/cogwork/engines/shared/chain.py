"""Which entries of a log count: those that follow the last one that counts."""

from __future__ import annotations

from cogwork.engines.shared.entry import Entry
from cogwork.plugin.engine.errors import Malformed

__all__ = ("Chain", "Forked", "Gap", "damaged", "is_stray")


class Gap(Exception):
    """An entry follows one that did not come: it was given up, is damaged, or got lost."""

    def __init__(self) -> None:
        super().__init__("an entry that another one follows is missing or damaged")


class Forked(Malformed):
    """The log does not have what was read from it: the server has lost its newest entries."""

    def __init__(self, position: int) -> None:
        super().__init__(
            "the log that was read before", f"the server has lost what was at position {position}"
        )


def damaged() -> Malformed:
    """Say so of a log in which there is a gap."""
    return Malformed("a whole log", "an entry of the server is missing or damaged")


def is_stray(position: int, entry: Entry) -> bool:
    """Return whether an entry cannot follow anything where it is."""
    return entry.previous >= position


class Chain:
    """Reads entries in the order of their positions, and keeps those that count.

    Theory of operation. A writer names the entry that it follows only when it knows that this one
    counts. So the one that names the last one that counts, counts; one that names an older one
    lost a race, or is a copy; and one that names a newer one shows that something is missing. Only
    where it names itself, or what comes after it, its writer knows another log: that of the same
    name before this one, or what this one has lost.

    Attributes:
        position: Of the last entry that counts; 0 before the first.
        id: Its id.
        seen: The last position that was looked at.
    """

    __slots__ = ("id", "position", "seen")

    def __init__(self, position: int = 0, entry_id: bytes = bytes(8)) -> None:
        self.position = position
        self.id = entry_id
        self.seen = position

    @classmethod
    def before(cls, position: int, entry: Entry) -> Chain:
        """Return the chain that takes this entry, which is known to count, next."""
        chain = cls(entry.previous, entry.previous_id)
        chain.seen = position - 1
        return chain

    def skip_to(self, position: int) -> None:
        """Is told by the server that there is nothing before a position that was not looked at."""
        self.seen = max(self.seen, position - 1)

    def take(self, position: int, data: bytes) -> Entry | None:
        """Return the entry if it counts.

        Raises:
            Forked: The log does not continue what was read from it before.
            Gap: Something is missing before it, or may be: `fetch` tells.
        """
        if position <= self.seen:
            return None
        if position > self.seen + 1:
            raise Gap
        try:
            entry = Entry.from_bytes(data)
        except Malformed:
            # Whoever wrote this is no writer of ours, or it is damaged; if it should have counted,
            # the next one names it, and that is a gap.
            self.seen = position
            return None
        if is_stray(position, entry):
            self.seen = position
            return None
        if entry.previous > self.position:
            raise Gap
        self.seen = position
        if entry.previous < self.position:
            return None
        if entry.previous_id != self.id:
            raise Forked(self.position)
        self.position = position
        self.id = entry.id
        return entry
