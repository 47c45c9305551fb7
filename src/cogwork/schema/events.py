"""What a registry of schemas is made of: events, as they stand in its stream."""

from __future__ import annotations

import msgspec

from cogwork.schema.errors import InvalidSchema
from cogwork.schema.schema import SCHEMA_BYTES_MAX

__all__ = ("EVENT_BYTES_MAX", "Event", "Registered", "Unregistered", "decode_event")

FORMAT = 1


class Registered(msgspec.Struct, frozen=True, tag="registered", tag_field="event"):
    """An address has a schema from now on.

    Attributes:
        address: An address, or a pattern of addresses with the wildcards `*` and `#`.
        version: One more than that of the schema which the address had last; 1 for the first one.
        kind: `json` or `protobuf`.
        definition: The schema.
        message: The message's full name, for Protocol Buffers.
        id: Names the event, for whoever made it.
        format: Of the event.
    """

    address: str
    version: int
    kind: str
    definition: bytes
    message: str = ""
    id: str = ""
    format: int = FORMAT

    def is_like(self, kind: str, definition: bytes, message: str) -> bool:
        """Tells whether a schema is this one.

        Args:
            kind: `json` or `protobuf`.
            definition: The schema as it was registered.
            message: The full name of the message, for Protocol Buffers.
        """
        return (self.kind, self.definition, self.message) == (kind, definition, message)


class Unregistered(msgspec.Struct, frozen=True, tag="unregistered", tag_field="event"):
    """An address has no schema any more, and no versions.

    Attributes:
        address: The address or pattern.
        version: The newest one that it had.
        id: Names the event, for whoever made it.
        format: Of the event.
    """

    address: str
    version: int
    id: str = ""
    format: int = FORMAT


Event = Registered | Unregistered

_EVENT = msgspec.json.Decoder(Event)
EVENT_BYTES_MAX = SCHEMA_BYTES_MAX * 2


def decode_event(data: bytes) -> Event:
    """Reads an event.

    Raises:
        InvalidSchema: It is none.
    """
    if len(data) > EVENT_BYTES_MAX:
        raise InvalidSchema(f"{len(data)} octets are no event of a registry")
    try:
        found: Event = _EVENT.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidSchema(f"no event of a registry: {error}") from error
    if found.format != FORMAT:
        raise InvalidSchema(f"the event's format is {found.format}, not {FORMAT}")
    return found
