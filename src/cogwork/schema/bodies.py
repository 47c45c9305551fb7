"""The octets that a schema looks at: where they are in a message of AMQP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.schema.errors import InvalidBody
from cogwork.schema.events import ADDRESS_LENGTH_MAX, VERSION_MAX

if TYPE_CHECKING:
    from cogwork.dataplane.message.messages import Message

__all__ = ("ADDRESS_ANNOTATION", "VERSION_ANNOTATION", "content_of", "name_of", "version_of")

VERSION_ANNOTATION = "x-opt-schema-version"
"""The message annotation that names the version of its schema that a message was made by."""

ADDRESS_ANNOTATION = "x-opt-schema-address"
"""The one that names the address, or the pattern, under which that version is registered."""


def content_of(message: Message) -> tuple[str | None, bytes]:
    """Return a message's content-type, None where it says none, and its octets.

    These are its data sections, or a value that is binary or a string, as which many clients send
    octets and text.

    Raises:
        InvalidBody: It has none, or they are packed.
    """
    try:
        encoding, content_type = message.content_encoding, message.content_type
        body = message.body
    except CogworkError as error:
        raise InvalidBody(f"it is no message: {error}") from error
    if encoding is not None and str(encoding).lower() != "identity":
        raise InvalidBody(f"its content-encoding is {str(encoding)!r:.40}, and it is not unpacked")
    kind = None if content_type is None else str(content_type)
    if isinstance(body, bytes):
        return kind, body
    if isinstance(body, str):
        return kind, body.encode()
    raise InvalidBody(f"octets are expected as its body, not AMQP's {type(body).__name__}")


def version_of(message: Message) -> int | None:
    """Return the version that a message says it was made by; None where it says none.

    Raises:
        InvalidBody: It is no message.
    """
    found = _annotation(message, VERSION_ANNOTATION)
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return int(found) if 0 < found <= VERSION_MAX else None


def name_of(message: Message) -> str | None:
    """Return the address or pattern whose schema a message says it was made by; None: none.

    Raises:
        InvalidBody: It is no message.
    """
    found = _annotation(message, ADDRESS_ANNOTATION)
    if not isinstance(found, str) or not 0 < len(found) <= ADDRESS_LENGTH_MAX:
        return None
    return str(found)


def _annotation(message: Message, name: str) -> object:
    try:
        return message.annotations.get(name)
    except CogworkError as error:
        raise InvalidBody(f"it is no message: {error}") from error
