"""Messages for people and for programs: a line of text, or a JSON object.

JSON knows fewer types than AMQP. What it lacks becomes a string that a person can read: times in
ISO 8601, UUIDs and decimals as they are written, bytes as text where they are UTF-8 and as base64
where they are not (`{"base64": ...}`, so that the two are never confused). What is no message, or
has a section that nobody can read, is shown as its octets, beside what is wrong with it.
"""

from __future__ import annotations

import base64
import json
import math
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.message import Body, Data, Sections, Sequence, Value, decode_sections
from cogwork.amqp.types import Array, Described, Timestamp, datetime_from_ms
from cogwork.client import Message

if TYPE_CHECKING:
    from cogwork.amqp.composite import Composite

__all__ = (
    "as_json",
    "as_text",
    "encoded_as_json",
    "encoded_as_text",
    "jsonable",
    "message_as_json",
    "message_as_text",
)

_SECTIONS = (
    "header",
    "delivery_annotations",
    "message_annotations",
    "properties",
    "application_properties",
)


def as_text(message: Message) -> str:
    """Write the body of a message that was received, for a person."""
    with suppress(ProtocolError):  # its encoded form is shown then
        if type(message.body) is str:
            return message.body
    return encoded_as_text(message.encode())


def as_json(message: Message) -> str:
    """Write a message that was received as one line."""
    return encoded_as_json(message.encode())


def encoded_as_text(encoded: bytes) -> str:
    """Write the body of what may be a message, for a person."""
    try:
        return message_as_text(decode_sections(encoded))
    except ProtocolError as error:
        found = _unreadable(encoded, error)
        shown = found["message"] if found["body"] is None else found["body"]
        return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def encoded_as_json(encoded: bytes) -> str:
    """Write what may be a message as one line."""
    try:
        return message_as_json(decode_sections(encoded))
    except ProtocolError as error:
        return json.dumps(_unreadable(encoded, error), ensure_ascii=False)


def _unreadable(encoded: bytes, error: ProtocolError) -> dict[str, object]:
    """Return what is wrong, and what there is nevertheless: perhaps the body, and all octets."""
    body = None
    with suppress(ProtocolError):
        body = jsonable(Message.decode(encoded).body)
    octets = base64.b64encode(encoded).decode()
    return {"body": body, "message": {"base64": octets, "problem": str(error)}}


def message_as_text(message: Sections) -> str:
    """Write a message's body for a person: text as it is, anything else as JSON."""
    body = _body(message.body)
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def message_as_json(message: Sections) -> str:
    """Write a whole message as one line; absent sections and fields are left out."""
    sections = {name: _section(getattr(message, name)) for name in _SECTIONS}
    present = {name: section for name, section in sections.items() if section}
    return json.dumps({**present, "body": _body(message.body)}, ensure_ascii=False)


def jsonable(value: object) -> object:
    """Turn a value of any AMQP type into one that JSON knows."""
    match value:
        case Timestamp():
            return _time(value)
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float():
            return value
        case bytes():
            return _bytes(value)
        case datetime():
            return value.isoformat()
        case _:
            return _compound(value)


def _compound(value: object) -> object:
    match value:
        case dict():
            return {_key(key): jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [jsonable(item) for item in value]
        case Array():
            return [jsonable(item) for item in value.items]
        case Described():
            return {"descriptor": jsonable(value.descriptor), "value": jsonable(value.value)}
        case _:
            return str(value)


def _key(key: object) -> str:
    written = jsonable(key)
    return written if isinstance(written, str) else json.dumps(written)


def _time(value: Timestamp) -> object:
    """Beyond the years that Python's calendar has, milliseconds stay a number."""
    time = datetime_from_ms(value)
    return time.isoformat() if isinstance(time, datetime) else int(value)


def _bytes(value: bytes) -> object:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _section(section: Composite | dict[object, object] | None) -> object:
    if section is None or isinstance(section, dict):
        return jsonable(section)
    fields = {name: getattr(section, name) for name in section.__dataclass_fields__}
    return {name: jsonable(value) for name, value in fields.items() if value is not None}


def _body(body: Body | None) -> object:
    match body:
        case Data(parts=parts):
            return _bytes(b"".join(parts))
        case Sequence(parts=parts):
            return jsonable([item for part in parts for item in part])
        case Value(value=value):
            return jsonable(value)
        case _:
            return None
