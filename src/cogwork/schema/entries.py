"""What addresses and patterns have as schemas or had, and which of it is for a message."""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from typing import TYPE_CHECKING

from cogwork.router.patterns import address_words, takes
from cogwork.schema.errors import InvalidBody
from cogwork.schema.events import Unregistered
from cogwork.schema.numbers import Numbers
from cogwork.schema.pattern_index import PatternIndex
from cogwork.schema.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.schema.events import Event, Registered

__all__ = ("Entries",)

VERSIONS_MAX = 100
"""Of an address; the oldest one goes."""

CACHE_MAX = 10_000


class Entries:
    """Versions by address or pattern; for a message the exact one counts, or the plainest pattern.

    Attributes:
        versions: Of each, the oldest version first.
        patterns: Those of them that are patterns.
        gone: The last versions of what was unregistered, as far as events say them: everybody
            knows these.
        older: Those of events of former releases, which not everybody has read.
        size_bytes: Of all definitions.
    """

    def __init__(self) -> None:
        """Start with none."""
        self.versions: dict[str, list[Version]] = {}
        self.patterns = PatternIndex()
        self.gone = Numbers()
        self.older = Numbers()
        self.size_bytes = 0
        self._found: dict[str, list[Version] | None] = {}
        self._alone: dict[str, bool] = {}

    # -- changes

    def add(self, event: Registered) -> None:
        """Take a version."""
        versions = self.versions.get(event.address)
        if versions is None:
            versions = self.versions[event.address] = []
            self.patterns.add(event.address)
        else:
            versions[-1].forget()
        versions.append(Version(event))
        self.size_bytes += len(event.definition)
        if len(versions) > VERSIONS_MAX:
            self.size_bytes -= len(versions.pop(0).event.definition)
        self._forget()

    def remove(self, event: Unregistered) -> None:
        """Let all versions of an address go."""
        for each in self.versions.pop(event.address):
            self.size_bytes -= len(each.event.definition)
        self.patterns.remove(event.address)
        self.remember(event)

    def remember(self, event: Unregistered) -> None:
        """Keep the number of a version that is gone, so that no other one ever has it."""
        if event.last:
            self.gone.add(event.address, max(event.version, event.last))
        else:
            self.older.add(event.address, event.version)
        self._forget()

    def _forget(self) -> None:
        self._found.clear()
        self._alone.clear()

    def events(self) -> Iterator[Event]:
        """Yield what makes the same again, those that took back a schema first."""
        older = (Unregistered(address, version) for address, version in self.older)
        gone = (Unregistered(address, version, last=version) for address, version in self.gone)
        versions = (each.event for several in self.versions.values() for each in several)
        return chain(older, gone, versions)

    # -- numbers

    def newest(self, address: str) -> int:
        """Return the number of the newest version that an address has; 0 if none."""
        versions = self.versions.get(address)
        return versions[-1].event.version if versions else 0

    def last(self, address: str) -> int:
        """Return the highest number of a version that an address has or had; 0 if none."""
        return max(self.newest(address), self.gone.of(address), self.older.of(address))

    # -- messages

    def matching(self, address: str) -> Sequence[Version]:
        """Return all versions of what counts for an address; empty where nothing does."""
        try:
            versions = self._found[address]
        except KeyError:
            if len(self._found) >= CACHE_MAX:
                self._found.clear()
            versions = self._found[address] = self._look_up(address)
        return versions or ()

    def _look_up(self, address: str) -> list[Version] | None:
        exact = self.versions.get(address)
        if exact is not None:
            return exact
        pattern = self.patterns.find(address)
        return None if pattern is None else self.versions[pattern]

    def find(self, address: str, version: int | None) -> Version | None:
        """Return a version of what counts for an address; None where there is none.

        Args:
            address: Where messages are sent to.
            version: Which version; None is the newest one.
        """
        versions = self.matching(address)
        if version is not None:
            return _numbered(versions, version)
        return versions[-1] if versions else None

    def made_by(self, address: str, version: int | None, name: str | None) -> Version | None:
        """Return the version by which a message is read; None where its address has no schema.

        Args:
            address: Where it was sent to.
            version: By which it was made; None where nobody says.
            name: The address or pattern under which that is registered; None where nobody says.

        Raises:
            InvalidBody: What it was made by is not there.
        """
        versions = self.matching(address)
        if not versions:
            return None
        entry = _entry_of(address, versions, name)
        if version is None or entry is None:
            return versions[-1]
        found = _numbered(self.versions.get(entry, ()), version)
        if found is not None:
            return found
        if name is None and not self._is_alone(address):
            return versions[-1]  # it may be the number of another one's version
        raise InvalidBody(
            f"version {version} of the schema of {entry:.80}, by which it was made, is not there: "
            f"{self._state_of(entry)}"
        )

    def has_heard_of(self, address: str, version: int, name: str | None) -> bool:
        """Return whether there is nothing to wait for, to read a message.

        Args:
            address: Where it was sent to.
            version: By which it was made; it may be there, or not any more.
            name: The address or pattern under which that is registered; None where nobody says.
        """
        versions = self.matching(address)
        entry = _entry_of(address, versions, name) if versions else None
        return entry is None or version <= self.last(entry)

    def _is_alone(self, address: str) -> bool:
        """Return whether only one address or pattern that takes an address has or had a schema."""
        try:
            return self._alone[address]
        except KeyError:
            if len(self._alone) >= CACHE_MAX:
                self._alone.clear()
            found = self.patterns.taking(address)
            found |= self.gone.taking(address) | self.older.taking(address)
            if address in self.versions:
                found.add(address)
            is_alone = self._alone[address] = len(found) == 1
            return is_alone

    def _state_of(self, entry: str) -> str:
        newest = self.newest(entry)
        if newest:
            return f"the newest one is {newest}"
        return f"it has no schema{' any more' if self.last(entry) else ''}"


def _entry_of(address: str, versions: Sequence[Version], name: str | None) -> str | None:
    """Return the address or pattern under which a message's version is looked up.

    Args:
        address: Where it was sent to.
        versions: Those of what counts for the address now.
        name: What the message says; None where it says nothing.

    Returns:
        None where the message was made for another address, and the number says nothing here.
    """
    counts = versions[0].event.address
    name = counts if name is None else name.lstrip("/")
    if name in (counts, address) or takes(address_words(name), address_words(address)):
        return name
    return None


def _numbered(versions: Sequence[Version], version: int) -> Version | None:
    """Find a version by its number; there may be gaps."""
    at = bisect_left(versions, version, key=lambda each: each.event.version)
    found = versions[at] if at < len(versions) else None
    return found if found is not None and found.event.version == version else None
