"""Which schema the messages at an address have.

Theory of operation. The registry is a state machine: `register` and `unregister` return an event,
in octets, and change nothing; `apply` does what an event says. Whoever keeps the events in a stream
and applies what comes out of it, in order, has the registry of everybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cogwork.router.patterns import address_words, is_pattern, takes
from cogwork.schema.errors import InvalidBody, InvalidSchema
from cogwork.schema.schema import SCHEMA_BYTES_MAX, Schema, make_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Registered", "Registry")

ADDRESSES_MAX = 10_000
REGISTRY_BYTES_MAX = 64 << 20
ADDRESS_LENGTH_MAX = 1024
CACHE_MAX = 10_000

VERSION = 1


class Registered(msgspec.Struct, frozen=True, tag="registered", tag_field="event"):
    """An address has a schema from now on.

    Attributes:
        address: An address, or a pattern of addresses with the wildcards `*` and `#`.
        kind: `json` or `protobuf`.
        definition: The schema.
        message: The message's full name, for Protocol Buffers.
        version: Of the format.
    """

    address: str
    kind: str
    definition: bytes
    message: str = ""
    version: int = VERSION


class Unregistered(msgspec.Struct, frozen=True, tag="unregistered", tag_field="event"):
    """An address has no schema any more.

    Attributes:
        address: The address or pattern.
        version: Of the format.
    """

    address: str
    version: int = VERSION


_EVENT = msgspec.json.Decoder(Registered | Unregistered)
EVENT_BYTES_MAX = SCHEMA_BYTES_MAX * 2


class Registry:
    """Schemas by address. Where several patterns take one, the one with most plain words counts."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Registered, Schema]] = {}
        self._found: dict[str, Schema | None] = {}
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Registered]:
        """Yields what is registered."""
        return (entry for entry, _ in self._entries.values())

    # -- changes

    def register(self, address: str, kind: str, definition: bytes, message: str = "") -> bytes:
        """Makes the event that gives an address a schema, instead of one that it had.

        Args:
            address: An address, or a pattern of addresses.
            kind: `json` or `protobuf`.
            definition: A JSON document, or a serialised `FileDescriptorSet` with its imports.
            message: The full name of the message, for Protocol Buffers.

        Raises:
            InvalidSchema: It is none; the text says why.
        """
        event = Registered(address.lstrip("/"), kind, definition, message)
        self._check(event)
        make_schema(kind, definition, message)
        return msgspec.json.encode(event)

    def unregister(self, address: str) -> bytes:
        """Makes the event that takes an address its schema."""
        return msgspec.json.encode(Unregistered(address.lstrip("/")))

    def apply(self, event: bytes) -> None:
        """Does what an event says.

        Raises:
            InvalidSchema: It is none, or says what cannot be; nothing has changed.
        """
        if len(event) > EVENT_BYTES_MAX:
            raise InvalidSchema(f"{len(event)} octets are no event of a registry")
        try:
            found = _EVENT.decode(event)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidSchema(f"no event of a registry: {error}") from error
        if found.version != VERSION:
            raise InvalidSchema(f"the event's version is {found.version}, not {VERSION}")
        if isinstance(found, Registered):
            self._check(found)
            schema = make_schema(found.kind, found.definition, found.message)
            self._remove(found.address)
            self._entries[found.address] = (found, schema)
            self._size_bytes += len(found.definition)
        else:
            self._remove(found.address)
        self._found.clear()

    def events(self) -> Iterator[bytes]:
        """Yields events that lead an empty registry to this one's state."""
        return (msgspec.json.encode(entry) for entry in self)

    def _check(self, event: Registered) -> None:
        if not 0 < len(event.address) <= ADDRESS_LENGTH_MAX:
            raise InvalidSchema(f"an address has from 1 to {ADDRESS_LENGTH_MAX} characters")
        old = self._entries.get(event.address)
        if old is None and len(self._entries) >= ADDRESSES_MAX:
            raise InvalidSchema(f"{ADDRESSES_MAX} addresses have schemas already")
        size_bytes = self._size_bytes + len(event.definition)
        if size_bytes - (len(old[0].definition) if old else 0) > REGISTRY_BYTES_MAX:
            raise InvalidSchema(f"all schemas have more than {REGISTRY_BYTES_MAX} octets")

    def _remove(self, address: str) -> None:
        old = self._entries.pop(address, None)
        if old is not None:
            self._size_bytes -= len(old[0].definition)

    # -- use

    def schema_of(self, address: str) -> Schema | None:
        """Returns the schema of an address; None where it has none."""
        address = address.lstrip("/")
        try:
            return self._found[address]
        except KeyError:
            pass
        if len(self._found) >= CACHE_MAX:
            self._found.clear()
        found = self._found[address] = self._find(address)
        return found

    def _find(self, address: str) -> Schema | None:
        exact = self._entries.get(address)
        if exact is not None:
            return exact[1]
        words = address_words(address)
        best: tuple[int, str] | None = None
        for name in self._entries:
            if is_pattern(name) and takes(pattern := address_words(name), words):
                plain = sum(word not in ("*", "#") for word in pattern)
                best = max(best or (plain, name), (plain, name))
        return self._entries[best[1]][1] if best is not None else None

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

        Raises:
            InvalidBody: The schema does not allow it, or there is none.
        """
        schema = self.schema_of(address)
        if schema is None:
            raise InvalidBody(f"{address} has no schema")
        return schema.content_type, schema.encode(value)

    def decode(self, address: str, content_type: str | None, body: bytes) -> object:
        """Reads a message's body; octets where the address has no schema.

        Raises:
            InvalidBody: It is none by the schema.
        """
        schema = self.schema_of(address)
        if schema is None:
            return body
        if content_type is not None and not schema.takes(content_type):
            raise InvalidBody(
                f"the content-type of {address:.80} is {schema.content_type}, "
                f"not {content_type!r:.80}"
            )
        return schema.decode(body)
