"""Requests and responses at `/management`: HTTP over AMQP, on a pair of links, as RabbitMQ has it.

| HTTP | a request's message | a response's message |
|---|---|---|
| method | subject | |
| path and query | to | |
| status code | | subject |
| body | amqp-value | amqp-value |
| | message-id | correlation-id, the same |
| | reply-to is `$me`: the paired link | application property `http:response` is `1.1` |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from cogwork.amqp.errors import DecodeError
from cogwork.amqp.message import Properties, Sections, encode_sections
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.dataplane.encoding.codec import decode, encode

if TYPE_CHECKING:
    from cogwork.amqp.message import MessageId

__all__ = ("ME", "Request", "RequestError", "Response", "read_message")

ME = "$me"
"""The reply-to of a request: whoever has sent it, by the paired link (Link Pairing §2.1)."""

_VALUE_SECTION = ULong(0x77)

_PROPERTIES = (0x73, Symbol("amqp:properties:list"))
_VALUES = (0x77, Symbol("amqp:amqp-value:*"))


class RequestError(Exception):
    """A request cannot be carried out.

    Attributes:
        status: The status code.
        text: Why, as the response's body says it.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status = status
        self.text = text


@dataclass(frozen=True, slots=True)
class Response:
    """What a request is answered with.

    Attributes:
        status: The status code.
        body: The one value of the body.
    """

    status: int
    body: object = None

    def encoded(self, message_id: MessageId | None) -> bytes:
        """Encode the message that answers the request of an id."""
        head = Sections(
            properties=Properties(subject=str(self.status), correlation_id=message_id),
            application_properties={"http:response": "1.1"},
        )
        return encode_sections(head) + encode(Described(_VALUE_SECTION, self.body))


def read_message(octets: bytes) -> tuple[Properties, object]:
    """Return the properties of a message, and the one value of its body; None where it has none.

    The sections come in any order: some clients begin with the body if that is null.

    Raises:
        DecodeError: The octets are no message.
        ProtocolError: A property is wrong; it is named.
    """
    properties, body, at = Properties(), None, 0
    while at < len(octets):
        section, at = decode(octets, at)
        if not isinstance(section, Described):
            raise DecodeError("a section is not described", at)
        if section.descriptor in _PROPERTIES and isinstance(section.value, list):
            properties = Properties.from_fields(section.value)
        elif section.descriptor in _VALUES:
            body = section.value
    return properties, body


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        method: What is to be done.
        path: The parts of its path, still percent-encoded.
        query: What it asks for.
        body: The one value of the body; None if there is none.
    """

    method: str
    path: tuple[str, ...]
    query: dict[str, str] = field(default_factory=dict)
    body: object = None

    @classmethod
    def of(cls, message: Properties, body: object) -> Request:
        """Read a message.

        Args:
            message: Its properties.
            body: The one value of its body.

        Raises:
            RequestError: It is no request (400).
        """
        if message.reply_to != ME:
            text = f"reply-to is {message.reply_to!r:.80}: expected {ME!r}, the paired link"
            raise RequestError(400, text)
        if not message.subject:
            raise RequestError(400, "the subject is missing: expected a method, such as GET")
        target = message.to or ""
        if not target.startswith("/"):
            text = f"failed to normalize URI '{target:.200}': expected a path, such as /queues/NAME"
            raise RequestError(400, text)
        parts = urlsplit(f"amqp://{target}")
        try:
            query = dict(parse_qsl(parts.query, keep_blank_values=True, errors="strict"))
        except UnicodeDecodeError:
            text = f"failed to dissect query '{parts.query:.200}': it does not decode to UTF-8"
            raise RequestError(400, text) from None
        return cls(message.subject, tuple(parts.path.split("/")[1:]), query, body)

    def name(self, at: int = 1) -> str:
        """Return a part of the path, decoded.

        Raises:
            RequestError: It is not UTF-8 (400).
        """
        try:
            return unquote(self.path[at], errors="strict")
        except UnicodeDecodeError:
            text = f"failed to normalize URI part '{self.path[at]:.200}': it is not UTF-8"
            raise RequestError(400, text) from None
