"""What a registry of schemas is made of: events, as they stand in its stream."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cogwork.schema.errors import InvalidSchema
from cogwork.schema.schema import SCHEMA_BYTES_MAX

__all__ = (
    "ADDRESS_LENGTH_MAX",
    "EVENT_BYTES_MAX",
    "VERSION_MAX",
    "Event",
    "Registered",
    "Unregistered",
    "decode_event",
)

FORMAT = 1

ADDRESS_LENGTH_MAX = 1024

VERSION_MAX = (1 << 31) - 1
"""What an annotation can say of a message, in each language."""

Number = Annotated[int, msgspec.Meta(ge=1, le=VERSION_MAX)]
NumberOrNone = Annotated[int, msgspec.Meta(ge=0, le=VERSION_MAX)]
"""0 is no version."""


class Registered(msgspec.Struct, frozen=True, tag="registered", tag_field="event"):
    """An address has a schema from now on.

    Attributes:
        address: An address, or a pattern of addresses with the wildcards `*` and `#`.
        version: One more than any that the address had, as far as its maker knew; 1 for the first
            one.
        kind: `json` or `protobuf`.
        definition: The schema.
        message: The message's full name, for Protocol Buffers.
        id: Names the event, for whoever made it.
        format: Of the event.
        after: The newest version that the address had when the event was made; 0 where it had no
            schema. None in older streams, where nobody says it.
    """

    address: str
    version: Number
    kind: str
    definition: bytes
    message: str = ""
    id: str = ""
    format: int = FORMAT
    after: NumberOrNone | None = None

    def is_like(self, kind: str, definition: bytes, message: str) -> bool:
        """Return whether a schema is this one.

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
        last: The highest version that it ever had, as far as its maker knew. 0 in older streams,
            where nobody says it.
    """

    address: str
    version: Number
    id: str = ""
    format: int = FORMAT
    last: NumberOrNone = 0


Event = Registered | Unregistered

_EVENT = msgspec.json.Decoder(Event)
EVENT_BYTES_MAX = SCHEMA_BYTES_MAX * 2


def decode_event(data: bytes) -> Event:
    """Read an event.

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
