"""Messages in the typed notation: what the sections of an encoded message mean (AMQP 1.0 §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commands import Json

HEADER_FIELDS = ("durable", "priority", "ttl", "first_acquirer", "delivery_count")
PROPERTIES_FIELDS = (
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)

COMPOSITES = {"112": ("header", HEADER_FIELDS), "115": ("properties", PROPERTIES_FIELDS)}
MAPS = {
    "113": "delivery_annotations",
    "114": "message_annotations",
    "116": "application_properties",
    "120": "footer",
}
DATA, SEQUENCE, VALUE = "117", "118", "119"


def from_sections(sections: list[Json]) -> Json:
    """Return a message from its sections, each `["described", ["ulong", code], value]`.

    Fields that are null are left out, and so are composites without any field left.
    """
    message: dict[str, Json] = {}
    for _, (_, code), value in sections:
        if code in COMPOSITES:
            name, fields = COMPOSITES[code]
            named = {
                field: item
                for field, item in zip(fields, value[1], strict=False)
                if item[0] != "null"
            }
            message.update({name: named} if named else {})
        elif code in MAPS:
            message[MAPS[code]] = value[1]
        elif code == VALUE:
            message["body"] = {"value": value}
        else:
            kind = "data" if code == DATA else "sequence"
            message.setdefault("body", {kind: []})[kind].append(value[1])
    return message
