"""Messages of AMQP 0-9-1 as messages of AMQP 1.0, and the other way round.

Theory of operation. Either way one stored form is made of the other, as RabbitMQ does it, when a
reader of the other protocol takes a message:

| AMQP 0-9-1 | AMQP 1.0 |
|---|---|
| delivery-mode 2 | header.durable |
| priority | header.priority |
| expiration | header.ttl |
| message-id, correlation-id, reply-to, content-type and -encoding, user-id | properties |
| timestamp (s) | creation-time (ms) |
| headers | application-properties; message-annotations where the key begins with `x-` |
| all properties of a dead letter, as octets | annotation x-basic-properties |
| type, app-id, cluster-id | annotations x-basic-type, x-basic-app-id, x-basic-cluster-id |
| exchange | annotation x-exchange |
| routing key | annotation x-routing-key, and properties.subject |
| header x-stream-offset, of what comes from a stream | annotation x-opt-offset |
| body | data; the sections themselves where type is `amqp-1.0` |

Towards AMQP 0-9-1 a text amqp-value becomes UTF-8, any other body its AMQP 1.0 encoding with the
type `amqp-1.0`. An application property cannot be a table or an array: such headers, and those
whose keys are no symbols, travel in the annotation x-basic-headers, so that they come back.

Octets of 0-9-1 that are not UTF-8 become characters of a private plane, one for each octet, and so
do the octets of these characters themselves: the escape can be undone.
"""

from __future__ import annotations

import dataclasses
import re
import uuid
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from cogwork.amqp.errors import DecodeError, EncodeError
from cogwork.amqp.types import (
    Array,
    Byte,
    Described,
    Float32,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from cogwork.amqp091 import types as basic_types
from cogwork.amqp091.content import BasicProperties, decode_properties, encode_properties
from cogwork.amqp091.errors import EncodeError as BasicEncodeError
from cogwork.amqp091.errors import ProtocolError
from cogwork.amqp091.strings import octets_of, text_of
from cogwork.dataplane.message.basic import BASIC_MESSAGE_FORMAT, pack_basic, unpack_basic
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("AMQP_TYPE", "amqp_from_basic", "basic_from_amqp", "escaped", "unescaped")

AMQP_TYPE: Final = "amqp-1.0"
"""The type of a body that is sections of AMQP 1.0."""

EXCHANGE: Final = "x-exchange"
ROUTING_KEY: Final = "x-routing-key"
HEADERS: Final = "x-basic-headers"
OFFSET: Final = "x-opt-offset"
STREAM_OFFSET: Final = "x-stream-offset"
PROPERTIES: Final = "x-basic-properties"
"""The octets of all properties, in a message that is to become again what it was: a dead letter."""

_MARKS: Final = {
    "type": "x-basic-type",
    "app_id": "x-basic-app-id",
    "cluster_id": "x-basic-cluster-id",
}
_OWN: Final = frozenset({EXCHANGE, ROUTING_KEY, HEADERS, PROPERTIES, *_MARKS.values()})

_DEATHS: Final = frozenset(
    {f"x-opt-dead-letter-{name}" for name in ("reason", "source", "error", "failures", "count")}
    | {f"x-opt-first-dead-letter-{name}" for name in ("reason", "source", "time")}
)
"""What AMQP 1.0 reads of a death; a message of AMQP 0-9-1 says it in x-death and its like."""

PERSISTENT, TRANSIENT = 2, 1
TTL_MAX_MS: Final = 0xFFFFFFFF
SHORT_MAX: Final = 255
_DEFAULT_PRIORITY: Final = 4
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 10
"""More digits never fit into 32 bits."""

_ESCAPE_BASE: Final = 0x10FE00
"""The octets 0x80 to 0xFF stand at U+10FE80 to U+10FEFF, in a plane for private use."""

_UNPLAIN = re.compile("[\udc80-\udcff\U0010fe80-\U0010feff]")
_ESCAPED = re.compile("[\U0010fe80-\U0010feff]+")

_SAME: Final = ("content_type", "content_encoding", "correlation_id", "reply_to", "message_id")
"""Properties that both have as text."""

_BODY_SECTION = re.compile(rb"\x00\x53[\x75-\x77]")
_EMPTY_DATA: Final = b"\x00\x53\x75\xa0\x00"

_ANNOTATION_KEY = re.compile(r"x-[\x20-\x7e]*\Z")


# -- text


def escaped(text: str) -> str:
    """Return text of 0-9-1 as UTF-8 can hold it; `unescaped` is the inverse."""
    return _UNPLAIN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return "".join(chr(_ESCAPE_BASE + octet) for octet in octets_of(found[0]))


def unescaped(text: str) -> str:
    """Return the text of 0-9-1 that `escaped` was given."""
    return _ESCAPED.sub(_unescape, text)


def _unescape(found: re.Match[str]) -> str:
    return text_of(bytes(ord(each) - _ESCAPE_BASE for each in found[0]))


# -- towards AMQP 1.0


def amqp_from_basic(message: bytes, *, is_whole: bool = False) -> bytes:
    """Return a stored message of AMQP 0-9-1 as a message of AMQP 1.0.

    Args:
        message: As it is stored.
        is_whole: Whether it is to become again what it was: it has its properties with it.

    Raises:
        ValueError: It is damaged.
    """
    exchange, key, octets, body = unpack_basic(message)
    try:
        properties = decode_properties(octets)
    except ProtocolError as error:
        raise ValueError(str(error)) from error
    fields = _fields_of(properties, _amqp_text(exchange), _amqp_text(key))
    if is_whole:
        fields["annotations"][PROPERTIES] = octets
    if properties.type == AMQP_TYPE and _is_body(body):
        return Message.data(b"", **fields).encode().removesuffix(_EMPTY_DATA) + body
    return Message.data(body, **fields).encode()


def _is_body(octets: bytes) -> bool:
    """Return whether octets are the sections of a body (AMQP 1.0 §3.2.6 to §3.2.8)."""
    if not _BODY_SECTION.match(octets):
        return False
    try:
        return Message.decode(octets).body_type is not None
    except (DecodeError, ValueError):
        return False


def _amqp_text(octets: bytes) -> str:
    return escaped(text_of(octets))


def _fields_of(properties: BasicProperties, exchange: str, key: str) -> dict[str, Any]:
    """Return the fields of the message of AMQP 1.0, but for its body."""
    plain, annotations = _split_headers(properties.headers or {})
    annotations |= {EXCHANGE: exchange, ROUTING_KEY: key}
    for name, mark in _MARKS.items():
        text = getattr(properties, name)
        if text is not None and not (name == "type" and text == AMQP_TYPE):
            annotations[mark] = escaped(text)
    fields: dict[str, Any] = {
        name: escaped(value)
        for name in _SAME
        if (value := getattr(properties, name)) is not None and _is_fit(name, value)
    }
    if properties.user_id is not None:
        fields["user_id"] = octets_of(properties.user_id)
    if properties.timestamp is not None:
        fields["creation_time"] = _time_of(properties.timestamp)
    if properties.priority is not None:
        fields["priority"] = properties.priority
    if properties.expiration is not None and properties.expiration.isdecimal():
        fields["ttl_s"] = min(int(properties.expiration), TTL_MAX_MS) / 1000
    return {
        **fields,
        "durable": properties.delivery_mode == PERSISTENT,
        "subject": key,
        "properties": plain,
        "annotations": annotations,
    }


def _is_fit(name: str, value: str) -> bool:
    """Return whether a text can be what AMQP 1.0 has in its place: a symbol is of ASCII."""
    return value.isascii() or not name.startswith("content_")


def _split_headers(headers: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return headers as application properties, and as annotations."""
    plain: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in headers.items():
        made = _amqp_value(value)
        if _ANNOTATION_KEY.match(key) and key not in _OWN:
            annotations[key] = made
        elif key.startswith("x-") or isinstance(value, dict | list):
            rest[escaped(key)] = made
        else:
            plain[escaped(key)] = made
    if rest:
        annotations[HEADERS] = rest
    return plain, annotations


def _fits(value: int, greatest: int) -> bool:
    """Return whether a number is of a width, signed.

    A comparison: looking for an `int` of a subclass in a `range` walks through all of it.
    """
    return -greatest - 1 <= value <= greatest


def _time_of(seconds: int) -> Timestamp:
    """Return seconds since 1970 as AMQP 1.0 has them: times beyond it are its last one."""
    return Timestamp(min(seconds * 1000, _INT64_MAX))


def _amqp_value(value: object) -> object:
    """Return a field's value as AMQP 1.0 has it."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {escaped(key): _amqp_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_amqp_value(each) for each in value]
    make = _TO_AMQP.get(type(value))
    if make is not None:
        return make(value)
    if type(value) is int and _fits(value, _INT32_MAX):
        return Int(value)
    return value


_TO_AMQP: Final[dict[type, Callable[[Any], object]]] = {
    basic_types.Int8: Byte,
    basic_types.UInt8: UByte,
    basic_types.Int16: Short,
    basic_types.UInt16: UShort,
    basic_types.UInt32: UInt,
    basic_types.Int64: int,
    basic_types.Float32: Float32,
    basic_types.Timestamp: _time_of,
}
"""Types of numbers, by width; a plain `int` is one of 32 bits, or of 64 where it needs them."""


# -- towards AMQP 0-9-1


def basic_from_amqp(message: bytes, message_format: int = 0) -> bytes:
    """Return a message of AMQP 1.0 as a stored message of AMQP 0-9-1.

    What is in a format that is not known, or damaged, becomes a body as it is.
    """
    if message_format not in {0, BASIC_MESSAGE_FORMAT}:
        return _opaque(message)
    try:
        found = Message.decode(message)
        exchange, key = _route_of(found)
        properties, body = _properties_of(found), _body_of(found)
        return pack_basic(exchange, key, encode_properties(properties), body)
    except (DecodeError, EncodeError, BasicEncodeError, ValueError):
        return _opaque(message)


def _opaque(message: bytes) -> bytes:
    return pack_basic(b"", b"", encode_properties(BasicProperties()), message)


def _short(text: object) -> str | None:
    """Return text as a short string; None where there is none, or it is too long."""
    if not isinstance(text, str):
        return None
    plain = unescaped(text)
    return plain if len(octets_of(plain)) <= SHORT_MAX else None


def _route_of(message: Message) -> tuple[bytes, bytes]:
    """Return exchange and routing key: those it had, or the default exchange and its subject."""
    annotations = message.annotations
    exchange = _short(annotations.get(EXCHANGE)) or ""
    key = _short(annotations.get(ROUTING_KEY))
    if key is None:
        key = _short(message.subject)
    if key is None:
        key = _short((message.to or "").rpartition("/")[2]) or ""
    return octets_of(exchange), octets_of(key)


def _body_of(message: Message) -> bytes:
    """Return what 0-9-1 has as the body."""
    kind, body = message.body_type, message.body
    if kind == "value":
        if isinstance(body, str):
            return octets_of(unescaped(body))
        return Message.value(body).encode()
    if kind == "sequence":
        return Message.sequence(*cast("list[list[object]]", message.body_sections)).encode()
    return b"".join(cast("list[bytes]", message.body_sections))


def _is_plain(message: Message) -> bool:
    """Return whether the body says all by its octets."""
    kind = message.body_type
    return kind in {None, "data"} or (kind == "value" and isinstance(message.body, str))


def _properties_of(message: Message) -> BasicProperties:
    """Return what a message has as properties, by those that it had where it says them."""
    made = _made_properties(message)
    octets = message.annotations.get(PROPERTIES)
    if not isinstance(octets, bytes):
        return made
    try:
        had = decode_properties(octets)
    except ProtocolError:
        return made
    headers = _kept_headers(had.headers or {}, made.headers or {})
    return dataclasses.replace(
        had,
        headers=headers or (None if had.headers is None else {}),
        expiration=made.expiration and had.expiration,
        user_id=made.user_id,  # which has been checked
    )


def _kept_headers(had: Mapping[str, object], made: Mapping[str, object]) -> dict[str, object]:
    """Return a message's headers: what is as it was keeps its type and its place."""
    before = _headers_from(*_split_headers(had))
    kept = {
        name: value if made[name] == before.get(name) else made[name]
        for name, value in had.items()
        if name in made
    }
    return {**kept, **{name: value for name, value in made.items() if name not in kept}}


def _made_properties(message: Message) -> BasicProperties:
    annotations = message.annotations
    headers = _headers_of(message)
    ids = {
        name: _id_of(getattr(message, name), f"x-{name.replace('_', '-')}", headers)
        for name in ("message_id", "correlation_id")
    }
    user_id = message.user_id
    marks = {name: _short(annotations.get(mark)) for name, mark in _MARKS.items()}
    if not _is_plain(message):
        marks["type"] = AMQP_TYPE
    return BasicProperties(
        content_type=_short(message.content_type),
        content_encoding=_short(message.content_encoding),
        headers=headers or None,
        delivery_mode=PERSISTENT if message.durable else TRANSIENT,
        priority=None if message.priority == _DEFAULT_PRIORITY else message.priority,
        reply_to=_short(message.reply_to),
        expiration=None if message.ttl_s is None else str(round(message.ttl_s * 1000)),
        timestamp=_seconds_of(message.creation_time),
        user_id=text_of(user_id) if user_id is not None and len(user_id) <= SHORT_MAX else None,
        **ids,
        **marks,
    )


def _headers_of(message: Message) -> dict[str, object]:
    """Return application properties, and annotations whose keys begin with `x-`, as headers."""
    return _headers_from(message.properties, message.annotations)


def _headers_from(
    plain: Mapping[str, object], annotations: Mapping[str, object]
) -> dict[str, object]:
    found: dict[str, object] = {}
    rest = annotations.get(HEADERS)
    hidden = _OWN | _DEATHS if EXCHANGE in annotations else _OWN
    named = [
        *plain.items(),
        *(each for each in annotations.items() if _is_header(each[0]) and each[0] not in hidden),
        *(rest.items() if isinstance(rest, dict) else ()),
    ]
    for key, value in named:
        name = _short(key)
        if name is not None:
            # Some clients know no unsigned numbers, and give up at them: none is ours.
            found[name] = _basic_value(ULong(value) if _is_count(name, value) else value)
    if OFFSET in found:  # whatever its publisher had there, perhaps from another stream
        found[STREAM_OFFSET] = found.pop(OFFSET)
    return found


def _is_header(key: object) -> bool:
    return isinstance(key, str) and key.startswith("x-")


def _is_count(name: str, value: object) -> TypeGuard[UInt]:
    return name in _DEATHS and isinstance(value, UInt)


def _id_of(value: object, header: str, headers: dict[str, object]) -> str | None:
    """Return an id as a short string; what cannot be one becomes a header."""
    if isinstance(value, bytes):
        headers[header] = value
        return None
    if value is None:
        return None
    text = str(value)
    short = _short(text)
    if short is None:
        headers[header] = unescaped(text)
    return short


def _seconds_of(time: datetime | Timestamp | None) -> int | None:
    if time is None:
        return None
    seconds = time // 1000 if isinstance(time, int) else int(time.timestamp())
    return max(seconds, 0)


def _basic_value(value: object) -> object:
    """Return a value of AMQP 1.0 as a field's."""
    make = _TO_BASIC.get(type(value))
    if make is not None:
        return make(value)
    if isinstance(value, dict):
        return {_key_of(key): _basic_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_basic_value(each) for each in value]
    if isinstance(value, Decimal):
        return _decimal(value)
    return value if value is None or isinstance(value, bool | bytes | float) else str(value)


def _decimal(value: Decimal) -> object:
    """Return a decimal number; one that a field has no room for as text."""
    sign, digits, exponent = value.as_tuple()
    if (
        not isinstance(exponent, int)
        or not -SHORT_MAX <= exponent <= 0
        or len(digits) > _DIGITS_MAX
    ):
        return str(value)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    return Decimal(value) if _fits(unscaled, _INT32_MAX) else str(value)


def _key_of(key: object) -> str:
    """Return the key of an entry of a table; a longer one is cut."""
    text = unescaped(key) if isinstance(key, str) else str(key)
    return text_of(octets_of(text)[:SHORT_MAX])


def _long(value: int) -> object:
    """Return a number as one of 64 bits; one that does not fit as text."""
    if _fits(value, _INT32_MAX):
        return basic_types.Int64(value)
    return int(value) if _fits(value, _INT64_MAX) else str(int(value))


_TO_BASIC: Final[dict[type, Callable[[Any], object]]] = {
    int: _long,
    ULong: _long,
    Int: int,
    Byte: basic_types.Int8,
    UByte: basic_types.UInt8,
    Short: basic_types.Int16,
    UShort: basic_types.UInt16,
    UInt: basic_types.UInt32,
    Float32: basic_types.Float32,
    str: unescaped,
    Symbol: unescaped,
    Described: lambda described: _basic_value(described.value),
    Array: lambda array: [_basic_value(each) for each in array.items],
    uuid.UUID: str,
    datetime: lambda time: basic_types.Timestamp(max(int(time.timestamp()), 0)),
    Timestamp: lambda time: basic_types.Timestamp(max(time // 1000, 0)),
}
"""Types whose values 0-9-1 has by another name, or in another unit."""
