"""What the identifiers of a selector stand for.

An application-property goes by its name. The fields of header and properties go by `amqp.` and
their name in AMQP 1.0 §3.2, with `_` for `-`, and some by the names that JMS gives them. A field
that the header lacks has the default of the specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("AMQP_PREFIX", "FIELD_NAMES", "section_lookup")

AMQP_PREFIX = "amqp."


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a section, and what stands for it where it is absent."""

    section: str
    name: str
    default: object = None


def _itself(value: object) -> object:
    return value


def _delivery_mode(durable: object) -> object:
    return "PERSISTENT" if durable else "NON_PERSISTENT"


def _is_above_zero(count: object) -> object:
    return isinstance(count, int) and count > 0


def _next(count: object) -> object:
    return count + 1 if isinstance(count, int) else None


_FIELDS = (
    _Field("header", "durable", default=False),
    _Field("header", "priority", default=4),
    _Field("header", "ttl"),
    _Field("header", "first_acquirer", default=False),
    _Field("header", "delivery_count", default=0),
    _Field("properties", "message_id"),
    _Field("properties", "user_id"),
    _Field("properties", "to"),
    _Field("properties", "subject"),
    _Field("properties", "reply_to"),
    _Field("properties", "correlation_id"),
    _Field("properties", "content_type"),
    _Field("properties", "content_encoding"),
    _Field("properties", "absolute_expiry_time"),
    _Field("properties", "creation_time"),
    _Field("properties", "group_id"),
    _Field("properties", "group_sequence"),
    _Field("properties", "reply_to_group_id"),
)
_JMS: dict[str, tuple[str, Callable[[object], object]]] = {
    "JMSCorrelationID": ("correlation_id", _itself),
    "JMSDeliveryMode": ("durable", _delivery_mode),
    "JMSDestination": ("to", _itself),
    "JMSExpiration": ("absolute_expiry_time", _itself),
    "JMSMessageID": ("message_id", _itself),
    "JMSPriority": ("priority", _itself),
    "JMSRedelivered": ("delivery_count", _is_above_zero),
    "JMSReplyTo": ("reply_to", _itself),
    "JMSTimestamp": ("creation_time", _itself),
    "JMSType": ("subject", _itself),
    "JMSXDeliveryCount": ("delivery_count", _next),
    "JMSXGroupID": ("group_id", _itself),
    "JMSXGroupSeq": ("group_sequence", _itself),
    "JMSXUserID": ("user_id", _itself),
}
_BY_NAME = {field.name: field for field in _FIELDS}
_READERS = {AMQP_PREFIX + field.name: (field, _itself) for field in _FIELDS} | {
    name: (_BY_NAME[field], change) for name, (field, change) in _JMS.items()
}

FIELD_NAMES = frozenset(_READERS)
"""Every identifier that stands for a field, not for an application-property."""


def section_lookup(
    header: object, properties: object, application_properties: Mapping[str, object] | None
) -> Callable[[str], object]:
    """Make the lookup for a message that comes in sections.

    Args:
        header: Has the header's fields as attributes; None where there is none.
        properties: The same for the properties.
        application_properties: By name; None where there are none.
    """
    sections = {"header": header, "properties": properties}
    return _lookup(sections, application_properties or {})


def _lookup(
    sections: Mapping[str, object], application_properties: Mapping[str, object]
) -> Callable[[str], object]:
    def lookup(identifier: str) -> object:
        reader = _READERS.get(identifier)
        if reader is None:
            return application_properties.get(identifier)
        field, change = reader
        value = getattr(sections[field.section], field.name, None)
        return change(field.default if value is None else value)

    return lookup
