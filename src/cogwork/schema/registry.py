"""Which schema the messages at an address have.

Theory of operation. The registry is a state machine: `register` and `unregister` return an event,
in octets, and change nothing; `apply` does what an event says. Whoever keeps the events in a stream
and applies what comes out of it, in order, has the registry of everybody else. An event names the
version that it makes, and the one that was the newest before: of two that were made at once, the
second is refused, by everybody.

No number of a version is given twice. But of streams of former releases not everybody knows which
were given: they wrote snapshots without what was unregistered before. So what is remembered of
their events has a say in the number that comes next, and none in whether an event is refused.

What a schema says is looked at when it is registered, and compiled where it is used first: so what
the state is does not depend on what is installed.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from cogwork.router.patterns import is_pattern, misplaced_wildcard
from cogwork.schema.entries import Entries
from cogwork.schema.errors import (
    Conflict,
    Incompatible,
    InvalidAddress,
    InvalidBody,
    InvalidSchema,
    NotRegistered,
)
from cogwork.schema.events import (
    ADDRESS_LENGTH_MAX,
    Event,
    Registered,
    Unregistered,
    decode_event,
)
from cogwork.schema.schema import KINDS, SCHEMA_BYTES_MAX, Schema, make_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.schema.version import Version

__all__ = ("SCHEMAS", "Registry", "decode", "demand_pattern")

SCHEMAS = "stream/$schemas"
"""Where a registry is kept: the address of its stream, in each virtual host."""

ADDRESSES_MAX = 10_000
PATTERNS_MAX = 1_000
"""Of them have wildcards: each may be looked at for an address that is new."""

REGISTRY_BYTES_MAX = 8 << 20
"""All definitions together: a snapshot of them is one message, and no large one."""

MESSAGE_LENGTH_MAX = 1024

SEAM = re.compile(r"(?<=[*#])(?=[^./])|(?<=[^./])(?=[*#])")
"""Where a wildcard touches another character of its word."""


class Registry:
    """Schemas by address. Where several patterns take one, the one with most plain words counts."""

    def __init__(self) -> None:
        self._entries = Entries()

    def __len__(self) -> int:
        return len(self._entries.versions)

    def __iter__(self) -> Iterator[Registered]:
        """Yield what is registered: the newest version of each address."""
        return (versions[-1].event for versions in self._entries.versions.values())

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
        """Make the event that gives an address a schema, or a new version of the one it has.

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
        entries = self._entries
        versions, after = entries.versions.get(address), entries.newest(address)
        number = entries.last(address) + 1
        event = Registered(address, number, kind, definition, message, id, after=after)
        self._check(event)
        if versions and must_fit:
            reason = schema.why_not_after(versions[-1].schema())
            if reason is not None:
                raise Incompatible(f"not every message of version {after} is one by it: {reason}")
        return msgspec.json.encode(event)

    def unregister(self, address: str, *, id: str = "") -> bytes:  # noqa: A002  # the event's field
        """Make the event that takes an address its schema, and all versions.

        Args:
            address: Whose.
            id: Of the event, so that whoever made it knows it again.

        Raises:
            InvalidAddress: It never could have one; a kind of `InvalidSchema`.
            NotRegistered: The address has none.
        """
        address = address.lstrip("/")
        newest = self._entries.newest(address)
        if not newest:
            demand_pattern(address)
            raise NotRegistered(f"{address:.200} has no schema")
        event = Unregistered(address, newest, id, last=self._entries.last(address))
        return msgspec.json.encode(event)

    def apply(self, event: bytes) -> Event:
        """Do what an event says; return it.

        Raises:
            InvalidSchema: It is none, or says what cannot be; nothing has changed.
            Conflict: It was made for another version than there is; nothing has changed.
        """
        found = decode_event(event)
        newest = self._entries.newest(found.address)
        if isinstance(found, Registered):
            fits = self._is_next(found, newest)
        else:
            fits = found.version == newest
        if not fits:
            has = f"version {newest} of its schema" if newest else "no schema"
            raise Conflict(f"{found.address:.200} has {has} by now: look at it, and do it again")
        if isinstance(found, Registered):
            self._check(found)
            self._entries.add(found)
        else:
            self._entries.remove(found)
        return found

    def _is_next(self, event: Registered, newest: int) -> bool:
        """Return whether an event was made for what there is, by what everybody knows.

        Args:
            event: It.
            newest: The newest version that its address has; 0 if none.
        """
        version, gone = event.version, self._entries.gone.of(event.address)
        if event.after is not None:
            return event.after == newest and version > max(newest, gone)
        if newest:
            return version == newest + 1
        # In streams of former releases, who comes again begins with 1, or goes on.
        return version == 1 or version > gone

    def _check(self, event: Registered) -> None:
        """Refuse what cannot be, whatever is installed.

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
        entries = self._entries
        if event.address not in entries.versions:
            if len(entries.versions) >= ADDRESSES_MAX:
                raise InvalidSchema(f"{ADDRESSES_MAX} addresses have schemas already")
            if len(entries.patterns) >= PATTERNS_MAX and is_pattern(event.address):
                raise InvalidSchema(f"{PATTERNS_MAX} patterns have schemas already")
        if entries.size_bytes + len(event.definition) > REGISTRY_BYTES_MAX:
            raise InvalidSchema(f"all schemas have more than {REGISTRY_BYTES_MAX} octets")

    # -- snapshots

    def to_bytes(self) -> bytes:
        """Write the state down: an event a line, those that took back a schema first."""
        return b"\n".join(map(msgspec.json.encode, self._entries.events()))

    @classmethod
    def from_bytes(cls, data: bytes) -> Registry:
        """Read the state back.

        Raises:
            InvalidSchema: It is none.
        """
        made = cls()
        entries = made._entries
        for line in data.split(b"\n") if data else ():
            event = decode_event(line)
            if isinstance(event, Registered):
                made._check(event)
                entries.add(event)
            elif entries.versions:
                raise InvalidSchema("no state of a registry: it takes back a schema")
            else:
                _demand_length(event.address)
                entries.remember(event)
        for versions in entries.versions.values():
            numbers = [each.event.version for each in versions]
            if any(b <= a for a, b in pairwise(numbers)):
                raise InvalidSchema("no state of a registry: versions are not in their order")
        return made

    # -- use

    def versions(self, address: str) -> Sequence[Registered]:
        """List what is registered under an address or pattern, the oldest version first."""
        return [each.event for each in self._entries.versions.get(address.lstrip("/"), ())]

    def find(self, address: str, version: int | None = None) -> Registered | None:
        """Return what is registered for the messages at an address; None where nothing is.

        Args:
            address: Where they are sent to.
            version: Which version of it; None is the newest one.
        """
        found = self.version_of(address, version)
        return found.event if found is not None else None

    def schema_of(self, address: str, version: int | None = None) -> Schema | None:
        """Return the schema of an address; None where it has none.

        Args:
            address: Where messages are sent to.
            version: Which version; None is the newest one.

        Raises:
            InvalidSchema: It cannot be used here.
        """
        found = self.version_of(address, version)
        return found.schema() if found is not None else None

    def version_of(self, address: str, version: int | None = None) -> Version | None:
        """Return what `find` finds, with its schema.

        Args:
            address: Where messages are sent to.
            version: Which version; None is the newest one.
        """
        return self._entries.find(address.lstrip("/"), version)

    def check(self, address: str, content_type: str | None, body: bytes) -> str | None:
        """Return what is wrong with a message; None where nothing is.

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
        """Make a message's content-type and body.

        Args:
            address: Where it will be sent to.
            value: What is to be in it.

        Raises:
            InvalidBody: The schema does not allow it, or there is none.
        """
        schema = _usable(address, self.version_of(address))
        if schema is None:
            raise InvalidBody(f"{address:.200} has no schema")
        return schema.content_type, schema.encode(value)

    def decode(
        self,
        address: str,
        content_type: str | None,
        body: bytes,
        version: int | None = None,
        name: str | None = None,
    ) -> object:
        """Read a message's body; octets where the address has no schema.

        Args:
            address: Where it was sent to.
            content_type: Its content-type; None is that of the schema.
            body: Its body.
            version: By which version; None is the newest one.
            name: The address or pattern under which that is registered; None where nobody says.

        Raises:
            InvalidBody: It is none by the schema, or there is no such version of it.
        """
        schema = _usable(address, self._entries.made_by(address.lstrip("/"), version, name))
        return body if schema is None else decode(schema, content_type, body)

    def has_heard_of(self, address: str, version: int, name: str | None = None) -> bool:
        """Return whether there is nothing to wait for, to read a message as `decode` does.

        Args:
            address: Where it was sent to.
            version: By which it was made; it may be there, or not any more.
            name: The address or pattern under which that is registered; None where nobody says.
        """
        return self._entries.has_heard_of(address.lstrip("/"), version, name)


def _usable(address: str, version: Version | None) -> Schema | None:
    """Return the schema of a version.

    Raises:
        InvalidBody: It cannot be used here.
    """
    try:
        return None if version is None else version.schema()
    except InvalidSchema as error:
        raise InvalidBody(f"the schema of {address:.80} cannot be used here: {error}") from error


def decode(
    schema: Schema, content_type: str | None, body: bytes, steps_max: int | None = None
) -> object:
    """Read a message's body by a schema.

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
    """See that a schema can be for an address, or a pattern of addresses.

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
