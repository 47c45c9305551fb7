"""Messages between the typed notation and Cogwork: its `Message`, and the sections beneath."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork_notation import from_cogwork, to_cogwork
from commands import Json, binary_content

from cogwork import Message
from cogwork.amqp.message import Data, Header, Properties, Sections, Sequence, Value
from cogwork.amqp.types import Timestamp

if TYPE_CHECKING:
    from cogwork.amqp.message import Body

MAPS = ("delivery_annotations", "message_annotations", "application_properties", "footer")


def to_sections(notation: Json) -> Sections:
    """Return the sections of a message in the typed notation."""
    sections = Sections(body=_body(notation["body"]))
    if "header" in notation:
        sections.header = Header(**_fields(notation["header"]))
    if "properties" in notation:
        sections.properties = Properties(**_fields(notation["properties"]))
    for name in MAPS:
        if name in notation:
            setattr(sections, name, to_cogwork(["map", notation[name]]))
    return sections


def _fields(notation: Json) -> dict[str, Any]:
    return {name: to_cogwork(typed) for name, typed in notation.items()}


def _body(notation: Json) -> Body:
    if "value" in notation:
        return Value(to_cogwork(notation["value"]))
    if "data" in notation:
        return Data([binary_content(part) for part in notation["data"]])
    return Sequence([[to_cogwork(item) for item in part] for part in notation["sequence"]])


HEADER_TYPES = {
    "durable": "boolean",
    "priority": "ubyte",
    "ttl": "uint",
    "first_acquirer": "boolean",
    "delivery_count": "uint",
}


def from_sections(sections: Sections) -> Json:
    """Return a message in the typed notation."""
    message: dict[str, Json] = {"body": _from_body(sections.body)}
    if sections.header is not None:
        message["header"] = {
            name: [kind, getattr(sections.header, name)]
            for name, kind in HEADER_TYPES.items()
            if getattr(sections.header, name) is not None
        }
    if sections.properties is not None:
        message["properties"] = _from_properties(sections.properties)
    for name in MAPS:
        section = getattr(sections, name)
        if section is not None:
            message[name] = from_cogwork(section)[1]
    return message


def _from_properties(properties: Properties) -> Json:
    fields = {}
    for row in Properties.TABLE:
        value = getattr(properties, row.attribute)
        if value is not None:
            fields[row.attribute] = _property(row.attribute, value)
    return fields


def _property(name: str, value: object) -> Json:
    """Name the type of a field; Cogwork hands out plain numbers, as no other type is allowed."""
    if name == "group_sequence":
        return ["uint", value]
    if isinstance(value, int) and not isinstance(value, Timestamp):
        return ["ulong", str(int(value))]
    return from_cogwork(value)


def _from_body(body: Body | None) -> Json:
    if isinstance(body, Data):
        return {"data": [from_cogwork(part)[1] for part in body.parts]}
    if isinstance(body, Sequence):
        return {"sequence": [[from_cogwork(item) for item in part] for part in body.parts]}
    return {"value": from_cogwork(None if body is None else body.value)}


ATTRIBUTES = {
    "delivery_annotations": "delivery_annotations",
    "message_annotations": "annotations",
    "application_properties": "properties",
    "footer": "footer",
}
"""What `Message` calls these sections."""


def to_message(notation: Json) -> Message:
    """Return the message that an application would make."""
    fields = {**_fields(notation.get("header", {})), **_fields(notation.get("properties", {}))}
    if "ttl" in fields:
        fields["ttl_s"] = fields.pop("ttl") / 1000
    for section, attribute in ATTRIBUTES.items():
        if section in notation:
            fields[attribute] = to_cogwork(["map", notation[section]])
    body = _body(notation["body"])
    if isinstance(body, Value):
        return Message.value(body.value, **fields)
    make = Message.data if isinstance(body, Data) else Message.sequence
    return make(*body.parts, **fields)


def from_message(message: Message) -> Json:
    """Return the notation of what an application sees of a message."""
    fields = {row.attribute: getattr(message, row.attribute) for row in Properties.TABLE}
    header: dict[str, Json] = {
        name: [kind, getattr(message, name)] for name, kind in HEADER_TYPES.items() if name != "ttl"
    }
    if message.ttl_s is not None:
        header["ttl"] = ["uint", round(message.ttl_s * 1000)]
    notation: dict[str, Json] = {"body": _message_body(message), "header": header}
    notation["properties"] = {
        name: _property(name, value) for name, value in fields.items() if value is not None
    }
    for section, attribute in ATTRIBUTES.items():
        notation[section] = from_cogwork(getattr(message, attribute))[1]
    return notation


def _message_body(message: Message) -> Json:
    parts: list[Any] = message.body_sections
    if message.body_type == "data":
        return {"data": [from_cogwork(part)[1] for part in parts]}
    if message.body_type == "sequence":
        return {"sequence": [[from_cogwork(item) for item in part] for part in parts]}
    return {"value": from_cogwork(message.body)}
