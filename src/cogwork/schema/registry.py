"""Which schema the messages at an address have.

Theory of operation. The registry is a state machine: `register` and `unregister` return an event,
in octets, and change nothing; `apply` does what an event says. Whoever keeps the events in a stream
and applies what comes out of it, in order, has the registry of everybody else. An event names the
version that it makes: of two that were made at once, the second is refused, by everybody.

What a schema says is looked at when it is registered, and compiled where it is used first: so what
the state is does not depend on what is installed.
"""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import msgspec

from cogwork.router.patterns import is_pattern, misplaced_wildcard
from cogwork.schema.errors import (
    Conflict,
    Incompatible,
    InvalidAddress,
    InvalidBody,
    InvalidSchema,
    NotRegistered,
)
from cogwork.schema.events import Event, Registered, Unregistered, decode_event
from cogwork.schema.pattern_index import PatternIndex
from cogwork.schema.schema import KINDS, SCHEMA_BYTES_MAX, Schema, make_schema
from cogwork.schema.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("SCHEMAS", "Registry", "decode", "demand_pattern")

SCHEMAS = "stream/$schemas"
"""Where a registry is kept: the address of its stream, in each virtual host."""

ADDRESSES_MAX = 10_000
PATTERNS_MAX = 1_000
"""Of them have wildcards: each may be looked at for an address that is new."""

VERSIONS_MAX = 100
"""Of an address; the oldest one goes."""

GONE_MAX = 4_000
"""Of so many addresses that were unregistered, the latest ones, the last version is remembered."""

REGISTRY_BYTES_MAX = 8 << 20
"""All definitions together: a snapshot of them is one message, and no large one."""

ADDRESS_LENGTH_MAX = 1024
MESSAGE_LENGTH_MAX = 1024
CACHE_MAX = 10_000

SEAM = re.compile(r"(?<=[*#])(?=[^./])|(?<=[^./])(?=[*#])")
"""Where a wildcard touches another character of its word."""


class Registry:
    """Schemas by address. Where several patterns take one, the one with most plain words counts."""

    def __init__(self) -> None:
        self._versions: dict[str, list[Version]] = {}
        self._last: dict[str, int] = {}  # of those that were unregistered; the latest one last
        self._patterns = PatternIndex()
        self._found: dict[str, list[Version] | None] = {}
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._versions)

    def __iter__(self) -> Iterator[Registered]:
        """Yields what is registered: the newest version of each address."""
        return (versions[-1].event for versions in self._versions.values())

    # -- changes

    def register(
        self,
        address: str,
        kind: str,
        definition: bytes,
        message: str = "",
        *,
        id: str = "",  # noqa: A002  # the event's field
        must_fit: bool = True,
    ) -> bytes:
        """Makes the event that gives an address a schema, or a new version of the one it has.

        Args:
            address: An address, or a pattern of addresses.
            kind: `json` or `protobuf`.
            definition: A JSON document, or a serialised `FileDescriptorSet` with its imports.
            message: The full name of the message, for Protocol Buffers.
            id: Names the event.
            must_fit: Whether each message that the version before takes must be one by this.

        Raises:
            InvalidAddress: What is to have it can have none; a kind of `InvalidSchema`.
            InvalidSchema: It is none; the text says why.
            Incompatible: It may refuse messages that the version before takes.
        """
        demand_pattern(address)
        address = address.lstrip("/")
        schema = make_schema(kind, definition, message)
        versions = self._versions.get(address)
        before = self._last_version(address)
        event = Registered(address, before + 1, kind, definition, message, id)
        self._check(event)
        if versions and must_fit:
            reason = schema.why_not_after(versions[-1].schema())
            if reason is not None:
                raise Incompatible(f"not every message of version {before} is one by it: {reason}")
        return msgspec.json.encode(event)

    def unregister(self, address: str, *, id: str = "") -> bytes:  # noqa: A002  # the event's field
        """Makes the event that takes an address its schema, and all versions.

        Args:
            address: Whose.
            id: Of the event, so that whoever made it knows it again.

        Raises:
            InvalidAddress: It never could have one; a kind of `InvalidSchema`.
            NotRegistered: The address has none.
        """
        address = address.lstrip("/")
        versions = self._versions.get(address)
        if not versions:
            demand_pattern(address)
            raise NotRegistered(f"{address:.200} has no schema")
        return msgspec.json.encode(Unregistered(address, versions[-1].event.version, id))

    def apply(self, event: bytes) -> Event:
        """Does what an event says; returns it.

        Raises:
            InvalidSchema: It is none, or says what cannot be; nothing has changed.
            Conflict: It was made for another version than there is; nothing has changed.
        """
        found = decode_event(event)
        has_schema = found.address in self._versions
        before = self._last_version(found.address)
        if isinstance(found, Registered):
            # In streams that are older than `_last`, who comes again begins with 1.
            fits = found.version == before + 1 or (found.version == 1 and not has_schema)
        else:
            fits = found.version == before and has_schema
        if not fits:
            raise Conflict(
                f"{found.address:.200} has version {before} of its schema by now: look at it, "
                "and do it again"
            )
        if isinstance(found, Registered):
            self._check(found)
            self._add(found)
        else:
            self._remove(found.address)
        self._found.clear()
        return found

    def _last_version(self, address: str) -> int:
        """Returns the number of the last version that an address has or had; 0 if none."""
        versions = self._versions.get(address)
        return versions[-1].event.version if versions else self._last.get(address, 0)

    def _check(self, event: Registered) -> None:
        """Refuses what cannot be, whatever is installed.

        Raises:
            InvalidSchema: It is that.
        """
        _demand_length(event.address)
        if event.kind not in KINDS:
            raise InvalidSchema(
                f"schemas are of the kinds json and protobuf, not {event.kind!r:.40}"
            )
        if len(event.definition) > SCHEMA_BYTES_MAX or len(event.message) > MESSAGE_LENGTH_MAX:
            raise InvalidSchema(f"a schema has at most {SCHEMA_BYTES_MAX} octets")
        if event.address not in self._versions:
            if len(self._versions) >= ADDRESSES_MAX:
                raise InvalidSchema(f"{ADDRESSES_MAX} addresses have schemas already")
            if len(self._patterns) >= PATTERNS_MAX and is_pattern(event.address):
                raise InvalidSchema(f"{PATTERNS_MAX} patterns have schemas already")
        if self._size_bytes + len(event.definition) > REGISTRY_BYTES_MAX:
            raise InvalidSchema(f"all schemas have more than {REGISTRY_BYTES_MAX} octets")

    def _add(self, event: Registered) -> None:
        versions = self._versions.get(event.address)
        if versions is None:
            versions = self._versions[event.address] = []
            self._patterns.add(event.address)
        else:
            versions[-1].forget()
        versions.append(Version(event))
        self._size_bytes += len(event.definition)
        if len(versions) > VERSIONS_MAX:
            self._size_bytes -= len(versions.pop(0).event.definition)

    def _remove(self, address: str) -> None:
        versions = self._versions.pop(address)
        for each in versions:
            self._size_bytes -= len(each.event.definition)
        self._patterns.remove(address)
        self._remember(address, versions[-1].event.version)

    def _remember(self, address: str, version: int) -> None:
        """Keeps the number of a version that is gone, so that no other one ever has it."""
        self._last[address] = max(self._last.pop(address, 0), version)
        if len(self._last) > GONE_MAX:
            del self._last[next(iter(self._last))]

    # -- snapshots

    def to_bytes(self) -> bytes:
        """Writes the state down: an event a line, those that took back a schema first."""
        gone = (Unregistered(address, version) for address, version in self._last.items())
        versions = (each.event for several in self._versions.values() for each in several)
        return b"\n".join(map(msgspec.json.encode, chain(gone, versions)))

    @classmethod
    def from_bytes(cls, data: bytes) -> Registry:
        """Reads the state back.

        Raises:
            InvalidSchema: It is none.
        """
        made = cls()
        for line in data.split(b"\n") if data else ():
            event = decode_event(line)
            if isinstance(event, Registered):
                made._check(event)
                made._add(event)
            elif made._versions:
                raise InvalidSchema("no state of a registry: it takes back a schema")
            else:
                _demand_length(event.address)
                made._remember(event.address, event.version)
        for versions in made._versions.values():
            numbers = [each.event.version for each in versions]
            if numbers[0] < 1 or any(b != a + 1 for a, b in pairwise(numbers)):
                raise InvalidSchema("no state of a registry: versions are missing")
        return made

    # -- use

    def versions(self, address: str) -> Sequence[Registered]:
        """Lists what is registered under an address or pattern, the oldest version first."""
        return [each.event for each in self._versions.get(address.lstrip("/"), ())]

    def find(self, address: str, version: int | None = None) -> Registered | None:
        """Returns what is registered for the messages at an address; None where nothing is.

        Args:
            address: Where they are sent to.
            version: Which version of it; None is the newest one.
        """
        found = self.version_of(address, version)
        return found.event if found is not None else None

    def schema_of(self, address: str, version: int | None = None) -> Schema | None:
        """Returns the schema of an address; None where it has none.

        Args:
            address: Where messages are sent to.
            version: Which version; None is the newest one.

        Raises:
            InvalidSchema: It cannot be used here.
        """
        found = self.version_of(address, version)
        return found.schema() if found is not None else None

    def version_of(self, address: str, version: int | None = None) -> Version | None:
        """Returns what `find` finds, with its schema.

        Args:
            address: Where messages are sent to.
            version: Which version; None is the newest one.
        """
        address = address.lstrip("/")
        try:
            versions = self._found[address]
        except KeyError:
            if len(self._found) >= CACHE_MAX:
                self._found.clear()
            versions = self._found[address] = self._look_up(address)
        if not versions:
            return None
        if version is None:
            return versions[-1]
        at = version - versions[0].event.version
        return versions[at] if 0 <= at < len(versions) else None

    def _look_up(self, address: str) -> list[Version] | None:
        exact = self._versions.get(address)
        if exact is not None:
            return exact
        pattern = self._patterns.find(address)
        return None if pattern is None else self._versions[pattern]

    def check(self, address: str, content_type: str | None, body: bytes) -> str | None:
        """Says what is wrong with a message; None where nothing is.

        Args:
            address: Where it is sent to.
            content_type: Its content-type; None is that of the schema.
            body: Its body.
        """
        try:
            self.decode(address, content_type, body)
        except InvalidBody as invalid:
            return str(invalid)
        return None

    def encode(self, address: str, value: object) -> tuple[str, bytes]:
        """Makes a message's content-type and body.

        Args:
            address: Where it will be sent to.
            value: What is to be in it.

        Raises:
            InvalidBody: The schema does not allow it, or there is none.
        """
        schema = self._usable(address, None)
        if schema is None:
            raise InvalidBody(f"{address:.200} has no schema")
        return schema.content_type, schema.encode(value)

    def decode(
        self, address: str, content_type: str | None, body: bytes, version: int | None = None
    ) -> object:
        """Reads a message's body; octets where the address has no schema.

        Args:
            address: Where it was sent to.
            content_type: Its content-type; None is that of the schema.
            body: Its body.
            version: By which version; None is the newest one.

        Raises:
            InvalidBody: It is none by the schema, or there is no such version of it.
        """
        schema = self._usable(address, version)
        return body if schema is None else decode(schema, content_type, body)

    def _usable(self, address: str, version: int | None) -> Schema | None:
        try:
            schema = self.schema_of(address, version)
        except InvalidSchema as error:
            raise InvalidBody(
                f"the schema of {address:.80} cannot be used here: {error}"
            ) from error
        newest = self.version_of(address) if schema is None else None
        if newest is not None:
            raise InvalidBody(
                f"version {version} of the schema of {address:.80}, by which it was made, is not "
                f"there: the newest one is {newest.event.version}"
            )
        return schema


def decode(
    schema: Schema, content_type: str | None, body: bytes, steps_max: int | None = None
) -> object:
    """Reads a message's body by a schema.

    Args:
        schema: What it is to be.
        content_type: What it says that it is; None is that of the schema.
        body: Its octets.
        steps_max: As for `Schema.decode`.

    Raises:
        InvalidBody: It is none.
        TooCostly: It needs more than `steps_max`.
    """
    if content_type is not None and not schema.takes(content_type):
        raise InvalidBody(
            f"the content-type is to be {schema.content_type}, not {content_type!r:.80}"
        )
    return schema.decode(body, steps_max)


def demand_pattern(address: str) -> None:
    """Sees that a schema can be for an address, or a pattern of addresses.

    Raises:
        InvalidAddress: It cannot; the text says what would be right.
    """
    _demand_length(address.lstrip("/"))
    word = misplaced_wildcard(address)
    if word is not None:
        raise InvalidAddress(
            f"{address:.200} has the word {word:.80}: * and # are wildcards as whole words only, "
            f"as in {SEAM.sub('.', address):.200}"
        )


def _demand_length(address: str) -> None:
    if not 0 < len(address) <= ADDRESS_LENGTH_MAX:
        raise InvalidAddress(f"an address has from 1 to {ADDRESS_LENGTH_MAX} characters")
