"""Content headers, basic properties and bodies (AMQP 0-9-1 §4.2.6).

The property list of a message is kept as the octets that came, and decoded when it is first asked
for: a message that is passed on goes out octet for octet, and costs no decoding.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp091.arguments import (
    LONG_LONG,
    OCTET,
    SHORT_STRING,
    TABLE,
    argument,
    rows_of,
    write_argument,
)
from cogwork.amqp091.cursor import Cursor
from cogwork.amqp091.errors import EncodeError, ProtocolError, ReplyCode
from cogwork.amqp091.frames import (
    FRAME_OVERHEAD_OCTETS,
    FrameType,
    write_body_frames,
    write_frame,
)

if TYPE_CHECKING:
    from cogwork.amqp091.method import Method
    from cogwork.amqp091.types import Table

__all__ = (
    "BASIC_CLASS_ID",
    "BasicProperties",
    "Content",
    "ContentHeader",
    "decode_content_header",
    "decode_properties",
    "encode_content_header",
    "encode_properties",
    "write_command",
)

BASIC_CLASS_ID: Final = 60
"""The only class whose methods carry contents."""

_HEADER = struct.Struct(">HHQ")
_FLAGS = struct.Struct(">H")
_FIRST_FLAG = 1 << 15


@dataclasses.dataclass(slots=True, kw_only=True, frozen=True)
class BasicProperties:
    """The properties of a message (§1.8.3.1); None stands for what is absent.

    `timestamp` is in seconds since 1970, `expiration` holds digits of milliseconds. `cluster_id` is
    reserved.
    """

    content_type: str | None = argument(SHORT_STRING, default=None)
    content_encoding: str | None = argument(SHORT_STRING, default=None)
    headers: Table | None = argument(TABLE, default=None)  # noqa: RUF009  # it makes a field, no value
    delivery_mode: int | None = argument(OCTET, default=None)
    priority: int | None = argument(OCTET, default=None)
    correlation_id: str | None = argument(SHORT_STRING, default=None)
    reply_to: str | None = argument(SHORT_STRING, default=None)
    expiration: str | None = argument(SHORT_STRING, default=None)
    message_id: str | None = argument(SHORT_STRING, default=None)
    timestamp: int | None = argument(LONG_LONG, default=None)
    type: str | None = argument(SHORT_STRING, default=None)
    user_id: str | None = argument(SHORT_STRING, default=None)
    app_id: str | None = argument(SHORT_STRING, default=None)
    cluster_id: str | None = argument(SHORT_STRING, default=None)


_PROPERTIES = tuple(
    (_FIRST_FLAG >> place, row) for place, row in enumerate(rows_of(BasicProperties))
)
_KNOWN_FLAGS = sum(flag for flag, _ in _PROPERTIES)
"""The last bit would say that more flags follow; no class has as many properties."""


def encode_properties(properties: BasicProperties) -> bytes:
    """Return property flags and property list.

    Raises:
        EncodeError: A property is of the wrong type or out of range; it is named.
    """
    out = bytearray(_FLAGS.size)
    flags = 0
    for flag, row in _PROPERTIES:
        value = getattr(properties, row.name)
        if value is not None:
            flags |= flag
            write_argument(out, row, value)
    _FLAGS.pack_into(out, 0, flags)
    return bytes(out)


def decode_properties(octets: bytes) -> BasicProperties:
    """Decode property flags and property list, which take all of `octets`.

    Raises:
        ProtocolError: They are damaged, or a flag has no property.
    """
    try:
        return _read_properties(Cursor(octets))
    except ProtocolError as error:
        explanation = f"cannot decode properties: {error.explanation}"
        raise ProtocolError(error.code, explanation, BASIC_CLASS_ID) from None


def _read_properties(cursor: Cursor) -> BasicProperties:
    flags = cursor.number(_FLAGS)
    if flags & ~_KNOWN_FLAGS:
        raise ProtocolError(ReplyCode.SYNTAX_ERROR, f"unknown property flags in 0x{flags:04x}")
    values = {row.name: row.kind.read(cursor) for flag, row in _PROPERTIES if flags & flag}
    cursor.finish()
    return BasicProperties(**values)


class ContentHeader(NamedTuple):
    """What a content header frame holds.

    Attributes:
        class_id: The class of the method before it.
        weight: Unused, 0.
        body_octets: The size of the body that follows.
        property_octets: Property flags and property list, not looked into.
    """

    class_id: int
    weight: int
    body_octets: int
    property_octets: bytes


def encode_content_header(class_id: int, body_octets: int, property_octets: bytes) -> bytes:
    """Return the payload of a content header frame."""
    return _HEADER.pack(class_id, 0, body_octets) + property_octets


def decode_content_header(payload: bytes) -> ContentHeader:
    """Decode the payload of a content header frame, but for its properties.

    Raises:
        ProtocolError: It is too short.
    """
    if len(payload) < _HEADER.size + _FLAGS.size:
        raise ProtocolError(
            ReplyCode.FRAME_ERROR,
            f"content header frame of {len(payload)} octets "
            f"(at least {_HEADER.size + _FLAGS.size})",
        )
    class_id, weight, body_octets = _HEADER.unpack_from(payload)
    return ContentHeader(class_id, weight, body_octets, payload[_HEADER.size :])


class Content:
    """Properties and body of a message.

    Attributes:
        property_octets: Property flags and property list as they came.
        body: What the application sent.
    """

    __slots__ = ("_properties", "body", "property_octets")

    def __init__(self, property_octets: bytes, body: bytes) -> None:
        self.property_octets = property_octets
        self.body = body
        self._properties: BasicProperties | None = None

    @classmethod
    def of(cls, properties: BasicProperties, body: bytes) -> Content:
        """Make a content of properties that have no octets yet.

        Raises:
            EncodeError: A property is of the wrong type or out of range; it is named.
        """
        return cls(encode_properties(properties), body)

    @property
    def properties(self) -> BasicProperties:
        """The properties, decoded at the first access.

        Raises:
            ProtocolError: They are damaged.
        """
        if self._properties is None:
            self._properties = decode_properties(self.property_octets)
        return self._properties

    def __eq__(self, other: object) -> bool:
        """Return whether the other goes out with the same octets."""
        if not isinstance(other, Content):
            return NotImplemented
        return (self.property_octets, self.body) == (other.property_octets, other.body)

    def __hash__(self) -> int:
        return hash((self.property_octets, self.body))

    def __repr__(self) -> str:
        return f"Content({self.property_octets!r:.80}, {self.body!r:.80})"


def write_command(
    out: bytearray, channel: int, method: Method, content: Content | None, frame_max: int
) -> None:
    """Append all frames of a method, and of its content if it has one.

    Args:
        out: What goes to the peer; it is not changed if an error is raised.
        channel: The channel that it goes out on.
        method: The method.
        content: Given if and only if the method carries one.
        frame_max: The largest frame that the peer takes, in octets.

    Raises:
        EncodeError: An argument has no encoding, a frame would be too large, or a content is
            missing or not expected.
    """
    if (content is not None) != method.HAS_CONTENT:
        expected = "needs a" if method.HAS_CONTENT else "takes no"
        raise EncodeError(f"{method.NAME} {expected} content")
    payload = method.encode()
    _check_size(method.NAME, payload, frame_max)
    if content is None:
        write_frame(out, FrameType.METHOD, channel, payload)
        return
    header = encode_content_header(method.CLASS_ID, len(content.body), content.property_octets)
    _check_size("content header", header, frame_max)
    write_frame(out, FrameType.METHOD, channel, payload)
    write_frame(out, FrameType.HEADER, channel, header)
    write_body_frames(out, channel, content.body, frame_max)


def _check_size(what: str, payload: bytes, frame_max: int) -> None:
    size = len(payload) + FRAME_OVERHEAD_OCTETS
    if size > frame_max:
        raise EncodeError(f"{what}: frame of {size} octets exceeds frame-max {frame_max}")
