"""What a record's row is: the columns of `cogwork.pipeline.arrow`, said once more, slowly and
readably."""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("Malformed", "row_of")

SECTIONS = {
    b"amqp:header:list": 0x70,
    b"amqp:delivery-annotations:map": 0x71,
    b"amqp:message-annotations:map": 0x72,
    b"amqp:properties:list": 0x73,
    b"amqp:application-properties:map": 0x74,
    b"amqp:data:binary": 0x75,
    b"amqp:amqp-sequence:list": 0x76,
    b"amqp:amqp-value:*": 0x77,
    b"amqp:footer:map": 0x78,
}
FIELDS = {
    "message_id": 0,
    "address": 2,
    "subject": 3,
    "reply_to": 4,
    "correlation_id": 5,
    "content_type": 6,
}
DATA, SEQUENCE, VALUE = 0x75, 0x76, 0x77
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Malformed(Exception):
    """Octets that are no message."""


def value_end(data: bytes, at: int, end: int) -> int:
    """Return where the value that begins at `at` ends."""
    if at >= end:
        raise Malformed
    if data[at] == 0:
        return value_end(data, value_end(data, at + 1, end), end)
    kind = data[at] >> 4
    at += 1
    if kind == 4:
        size = 0
    elif 5 <= kind <= 9:
        size = 1 << (kind - 5)
    elif kind in (0xA, 0xC, 0xE):
        if at >= end:
            raise Malformed
        size = 1 + data[at]
    elif kind in (0xB, 0xD, 0xF):
        if at + 4 > end:
            raise Malformed
        size = 4 + int.from_bytes(data[at : at + 4], "big")
    else:
        raise Malformed
    if at + size > end:
        raise Malformed
    return at + size


def descriptor_of(data: bytes, at: int) -> tuple[int, int]:
    """Return a section's code, and where its value begins."""
    end = len(data)
    if data[at] != 0:
        raise Malformed
    if end - at >= 3 and data[at + 1] == 0x53:
        code, value = data[at + 2], at + 3
    elif end - at >= 10 and data[at + 1] == 0x80:
        code, value = int.from_bytes(data[at + 2 : at + 10], "big"), at + 10
    else:
        if end - at < 3 or data[at + 1] not in (0xA3, 0xB3):
            raise Malformed
        value = value_end(data, at + 1, end)
        code = SECTIONS.get(data[at + (3 if data[at + 1] == 0xA3 else 6) : value], 0)
    if not 0x70 <= code <= 0x78:
        raise Malformed
    return code, value


def sections_of(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield code, start, value and end of each section, in the order that is allowed."""
    at, last, last_code = 0, -1, 0
    while at < len(data):
        code, value = descriptor_of(data, at)
        end = value_end(data, value, len(data))
        rank = 6 if code == 0x78 else min(code - 0x70, 5)
        repeats = rank == last == 5 and code == last_code and code != VALUE
        if rank <= last and not repeats:
            raise Malformed
        yield code, at, value, end
        at, last, last_code = end, rank, code


def compound(data: bytes, at: int, end: int, codes: tuple[int, int]) -> tuple[int, int, int]:
    """Return count, start and end of what a list or a map holds."""
    narrow, wide = codes
    if data[at] == narrow and at + 3 <= end and data[at + 1] >= 1:
        return data[at + 2], at + 3, at + 2 + data[at + 1]
    size = int.from_bytes(data[at + 1 : at + 5], "big")
    if data[at] == wide and at + 9 <= end and size >= 4:
        return int.from_bytes(data[at + 5 : at + 9], "big"), at + 9, at + 5 + size
    raise Malformed


def unsigned(rest: bytes) -> str:
    return str(int.from_bytes(rest, "big"))


def signed(rest: bytes) -> str:
    return str(int.from_bytes(rest, "big", signed=True))


def flag(rest: bytes) -> str:
    return ["false", "true"][rest[0]]


FORMS: dict[int, Callable[[bytes], str | None]] = {
    0x40: lambda rest: None,
    0x41: lambda rest: "true",
    0x42: lambda rest: "false",
    0x56: flag,
    **dict.fromkeys((0x43, 0x44, 0x50, 0x52, 0x53, 0x60, 0x70, 0x80), unsigned),
    **dict.fromkeys((0x51, 0x54, 0x55, 0x61, 0x71, 0x81), signed),
    0x72: lambda rest: repr(struct.unpack(">f", rest)[0]),
    0x82: lambda rest: repr(struct.unpack(">d", rest)[0]),
    0x83: lambda rest: time_of(int.from_bytes(rest, "big", signed=True)),
    0x98: lambda rest: str(uuid.UUID(bytes=rest)),
    0x73: lambda rest: chr(int.from_bytes(rest, "big")).encode().decode(),
    0xA0: lambda rest: rest[1:].hex(),
    0xB0: lambda rest: rest[4:].hex(),
    0xA1: lambda rest: rest[1:].decode(),
    0xA3: lambda rest: rest[1:].decode(),
    0xB1: lambda rest: rest[4:].decode(),
    0xB3: lambda rest: rest[4:].decode(),
}


def text_of(encoded: bytes) -> str | None:
    """Return the text of one encoded value; of what has none its encoding."""
    try:
        return FORMS[encoded[0]](encoded[1:])
    except (KeyError, IndexError, ValueError, OverflowError):
        return encoded.hex()


def time_of(time_ms: int) -> str:
    try:
        at = EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    whole = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{whole}Z"


def fields_of(data: bytes, value: int, end: int) -> list[bytes]:
    if data[value] in (0x40, 0x45):
        return []
    count, at, stop = compound(data, value, end, (0xC0, 0xD0))
    if count > 13:
        raise Malformed
    fields = []
    for _ in range(count):
        following = value_end(data, at, stop)
        fields.append(data[at:following])
        at = following
    return fields


def pairs_of(data: bytes, value: int, end: int) -> list[tuple[str, str | None]]:
    if data[value] == 0x40:
        return []
    _, at, stop = compound(data, value, end, (0xC1, 0xD1))
    pairs = []
    while at < stop:
        middle = value_end(data, at, stop)
        following = value_end(data, middle, stop)
        key = text_of(data[at:middle])
        pairs.append(("40" if key is None else key, text_of(data[middle:following])))
        at = following
    return pairs


def binary_of(data: bytes, value: int, end: int) -> bytes:
    if data[value] == 0x40:
        return b""
    if data[value] not in (0xA0, 0xB0):
        raise Malformed
    return data[value + (2 if data[value] == 0xA0 else 5) : end]


def body_of(data: bytes, bodies: list[tuple[int, int, int, int]]) -> bytes | None:
    if not bodies:
        return None
    code, start, value, end = bodies[0]
    if code == DATA:
        return b"".join(binary_of(data, each[2], each[3]) for each in bodies)
    if code == VALUE and data[value] == 0x40:
        return None
    if code == VALUE and data[value] in (0xA0, 0xA1):
        return data[value + 2 : end]
    if code == VALUE and data[value] in (0xB0, 0xB1):
        return data[value + 5 : end]
    return data[start : bodies[-1][3]]


def row_of(data: bytes) -> dict[str, object]:
    """Return what the columns of a record's own are."""
    try:
        found = list(sections_of(data))
        fields: list[bytes] = []
        pairs: list[tuple[str, str | None]] = []
        for code, _, value, end in found:
            if code == 0x73:
                fields = fields_of(data, value, end)
            elif code == 0x74:
                pairs = pairs_of(data, value, end)
        body = body_of(data, [each for each in found if DATA <= each[0] <= VALUE])
    except Malformed:
        return {**dict.fromkeys(FIELDS), "properties": None, "body": data}
    row: dict[str, object] = {
        name: text_of(fields[at]) if at < len(fields) else None for name, at in FIELDS.items()
    }
    return {**row, "properties": pairs, "body": body}
