"""The sections of a message: the readable reference (AMQP 1.0 §3.2).

A message is header, delivery-annotations, message-annotations, properties,
application-properties, body and footer, each a described value, in this order, each at most once;
only data and sequence bodies may come in several sections. `dataplane.messages` has the compiled
class that applications use.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cogwork.amqp import codec
from cogwork.amqp.composite import Composite, composite, field
from cogwork.amqp.errors import DecodeError, EncodeError
from cogwork.amqp.kinds import (
    BINARY,
    BOOLEAN,
    MESSAGE_ID,
    STRING,
    SYMBOL,
    TIMESTAMP,
    UBYTE,
    UINT,
)
from cogwork.amqp.types import Described, Symbol, Timestamp, ULong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

__all__ = (
    "Body",
    "Data",
    "Header",
    "MessageId",
    "Properties",
    "Sections",
    "Sequence",
    "Value",
    "decode_sections",
    "encode_sections",
)

MessageId = int | uuid.UUID | bytes | str


@composite(0x70, "header")
class Header(Composite):
    """How to deliver the message; `ttl` in milliseconds."""

    durable: bool = field(BOOLEAN, default=False)
    priority: int = field(UBYTE, default=4)
    ttl: int | None = field(UINT, default=None)
    first_acquirer: bool = field(BOOLEAN, default=False)
    delivery_count: int = field(UINT, default=0)


@composite(0x73, "properties")
class Properties(Composite):
    """The immutable properties of the bare message."""

    message_id: MessageId | None = field(MESSAGE_ID, default=None)
    user_id: bytes | None = field(BINARY, default=None)
    to: str | None = field(STRING, default=None)
    subject: str | None = field(STRING, default=None)
    reply_to: str | None = field(STRING, default=None)
    correlation_id: MessageId | None = field(MESSAGE_ID, default=None)
    content_type: Symbol | None = field(SYMBOL, default=None)
    content_encoding: Symbol | None = field(SYMBOL, default=None)
    absolute_expiry_time: datetime | Timestamp | None = field(TIMESTAMP, default=None)
    creation_time: datetime | Timestamp | None = field(TIMESTAMP, default=None)
    group_id: str | None = field(STRING, default=None)
    group_sequence: int | None = field(UINT, default=None)
    reply_to_group_id: str | None = field(STRING, default=None)


@dataclass(slots=True)
class Data:
    """A body of bytes, in one or more sections."""

    parts: list[bytes]


@dataclass(slots=True)
class Sequence:
    """A body of lists, in one or more sections."""

    parts: list[list[object]]


@dataclass(slots=True)
class Value:
    """A body of one value."""

    value: object


Body = Data | Sequence | Value
Annotations = dict[Symbol | ULong, object]


@dataclass(slots=True, kw_only=True)
class Sections:
    """A message, section by section; None where one is absent."""

    header: Header | None = None
    delivery_annotations: Annotations | None = None
    message_annotations: Annotations | None = None
    properties: Properties | None = None
    application_properties: dict[str, object] | None = None
    body: Body | None = None
    footer: Annotations | None = None


_DATA, _SEQUENCE, _VALUE = 0x75, 0x76, 0x77

_ORDER = {
    0x70: "header",
    0x71: "delivery_annotations",
    0x72: "message_annotations",
    0x73: "properties",
    0x74: "application_properties",
    _DATA: "body",
    _SEQUENCE: "body",
    _VALUE: "body",
    0x78: "footer",
}
SECTION_CODES = {
    Symbol(f"amqp:{name}"): code
    for code, name in (
        (0x70, "header:list"),
        (0x71, "delivery-annotations:map"),
        (0x72, "message-annotations:map"),
        (0x73, "properties:list"),
        (0x74, "application-properties:map"),
        (_DATA, "data:binary"),
        (_SEQUENCE, "amqp-sequence:list"),
        (_VALUE, "amqp-value:*"),
        (0x78, "footer:map"),
    )
}
_RANK = {attribute: rank for rank, attribute in enumerate(dict.fromkeys(_ORDER.values()))}


def encode_sections(sections: Sections) -> bytes:
    """Encode a message; absent sections are left out.

    Raises:
        EncodeError: A value has no encoding, or a map a key that its section forbids.
    """
    return b"".join(codec.encode(described) for described in _described(sections))


def _described(sections: Sections) -> Iterator[Described]:
    if sections.header is not None:
        yield sections.header.to_described()
    if sections.delivery_annotations is not None:
        yield _map(0x71, sections.delivery_annotations, _annotation_key)
    if sections.message_annotations is not None:
        yield _map(0x72, sections.message_annotations, _annotation_key)
    if sections.properties is not None:
        yield sections.properties.to_described()
    if sections.application_properties is not None:
        yield _map(0x74, sections.application_properties, _property_key)
    yield from _body_sections(sections.body)
    if sections.footer is not None:
        yield _map(0x78, sections.footer, _annotation_key)


def _map(code: int, entries: Mapping[Any, object], key: Callable[[object], object]) -> Described:
    return Described(ULong(code), {key(name): value for name, value in entries.items()})


def _annotation_key(key: object) -> object:
    """Take symbols, and the numbers that the specification reserves (§3.2.10)."""
    if isinstance(key, str):
        return Symbol(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return ULong(key)
    raise EncodeError(f"an annotation's key is a symbol, not {key!r:.80}")


def _property_key(key: object) -> object:
    if isinstance(key, str):
        return str(key)
    raise EncodeError(f"an application-property's key is a str, not {key!r:.80}")


def _body_sections(body: Body | None) -> Iterator[Described]:
    if isinstance(body, Value):
        yield Described(ULong(_VALUE), body.value)
    elif body is not None:
        code = ULong(_DATA if isinstance(body, Data) else _SEQUENCE)
        for part in body.parts:
            yield Described(code, part)


def decode_sections(data: bytes | bytearray | memoryview) -> Sections:
    """Decode a whole message.

    Raises:
        DecodeError: The bytes are no message.
        ProtocolError: A field of header or properties is wrong; it is named.
    """
    sections = Sections()
    at, rank, end = 0, -1, len(data)
    while at < end:
        value, following = codec.decode(data, at)
        code = _section_code(value, at)
        attribute = _ORDER[code]
        repeats = _RANK[attribute] == rank and _continues(code, sections.body)
        if _RANK[attribute] <= rank and not repeats:
            raise DecodeError(f"section {attribute} is out of order", at)
        rank = _RANK[attribute]
        assert isinstance(value, Described)
        _store(sections, code, value.value, at)
        at = following
    return sections


def _section_code(value: object, at: int) -> int:
    descriptor = value.descriptor if isinstance(value, Described) else None
    code: int | None = None
    if isinstance(descriptor, Symbol):
        code = SECTION_CODES.get(descriptor)
    elif isinstance(descriptor, ULong) and descriptor in _ORDER:
        code = descriptor
    if code is None:
        raise DecodeError(f"a message section is expected, not {value!r:.80}", at)
    return code


def _continues(code: int, body: Body | None) -> bool:
    """Whether a further section of this code belongs to `body`."""
    if code == _DATA:
        return isinstance(body, Data)
    return code == _SEQUENCE and isinstance(body, Sequence)


def _store(sections: Sections, code: int, value: object, at: int) -> None:
    match code:
        case 0x70:
            sections.header = Header.from_fields(value)
        case 0x73:
            sections.properties = Properties.from_fields(value)
        case 0x74:
            setattr(sections, _ORDER[code], _checked_map(code, value, str, at))
        case 0x71 | 0x72 | 0x78:
            setattr(sections, _ORDER[code], _checked_map(code, value, (str, ULong), at))
        case _:
            sections.body = _extended(sections.body, code, value, at)


def _checked_map(
    code: int, value: object, key_types: type | tuple[type, ...], at: int
) -> dict[object, object]:
    if not isinstance(value, dict):
        raise DecodeError(f"{_ORDER[code]} is a map, not {type(value).__name__}", at)
    for key in value:
        if not isinstance(key, key_types):
            raise DecodeError(f"{_ORDER[code]} cannot have the key {key!r:.80}", at)
    return value


def _extended(body: Body | None, code: int, value: object, at: int) -> Body:
    """Return `body` with one more section."""
    if code == _VALUE:
        return Value(value)
    if code == _DATA and isinstance(value, bytes):
        data = body if isinstance(body, Data) else Data([])
        data.parts.append(value)
        return data
    if code == _SEQUENCE and isinstance(value, list):
        sequence = body if isinstance(body, Sequence) else Sequence([])
        sequence.parts.append(value)
        return sequence
    raise DecodeError(f"a body section cannot hold {type(value).__name__}", at)
