"""Messages of AMQP, as frames and back: what stands where is in docs/zeromq.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.dataplane.encoding.extent import exceeds
from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.codec import codec_for
from cogwork.gateways.zeromq.errors import Code, Fault, TooLarge
from cogwork.gateways.zeromq.values import plain

if TYPE_CHECKING:
    from cogwork.gateways.zeromq.codec import Codec
    from cogwork.gateways.zeromq.frames import Frames

__all__ = (
    "CANCEL",
    "CREDIT",
    "END",
    "HEARTBEAT",
    "MORE",
    "PART",
    "STREAM_S",
    "UINT_MAX",
    "body_for",
    "error_header",
    "error_reply",
    "header_of",
    "message_of",
    "too_large_reply",
)

OCTETS = "application/octet-stream"
"""What a body of bytes is that says nothing of itself."""

CONDITION, DESCRIPTION = "cogwork:condition", "cogwork:description"
TYPE, TRACEBACK = "cogwork:type", "cogwork:traceback"
"""Application-properties of a reply that reports an error: as RPC of AMQP clients has them."""

ERROR, HEARTBEAT, CANCEL = "error", "heartbeat", "$cancel"
"""Subjects of such a reply, of one that only says that work goes on, and of a caller's change of
mind."""

PART, END, MORE = "part", "end", "$more"
"""Subjects of replies in parts, and of a caller that has room for more of them."""

STREAM_S, CREDIT = "cogwork:stream-s", "cogwork:credit"
"""Application-properties of a request whose reply is to come in parts."""

UINT_MAX = 0xFFFFFFFF
"""After which parts are counted anew."""

REMOTE_ERROR = "cogwork:remote-error"
"""The condition of an exception that a method has raised."""


def message_of(frames: Frames, size_bytes_max: int, content_type: str | None = None) -> Message:
    """Make the message that a client sends.

    Args:
        frames: From the client.
        size_bytes_max: How large it may be; 0 for any size.
        content_type: What a reply is to be written in, as its request was; None for AMQP's types.

    Raises:
        Fault: Its body is not what the header says, or out of bounds.
        TooLarge: Its body alone is larger.
    """
    subject = frames.text("subject")
    properties = frames.properties()
    raw = frames.text("raw")
    if raw is not None:
        if frames.body is None:
            raise Fault(Code.BAD_MESSAGE, "raw: frame 4, the body, is missing")
        if size_bytes_max and len(frames.body) > size_bytes_max:
            raise TooLarge(size_bytes_max)
        kind = None if raw == OCTETS else raw
        return Message.data(frames.body, subject=subject, properties=properties, content_type=kind)
    body = frames.codec.decode(frames.body) if frames.body else None
    if size_bytes_max and exceeds(body, size_bytes_max):
        raise TooLarge(size_bytes_max)
    theirs = codec_for(content_type)
    if theirs is not None:
        encoded = theirs.encode(body)
        kind = theirs.content_type
        return Message.data(encoded, subject=subject, properties=properties, content_type=kind)
    return Message.value(body, subject=subject, properties=properties)


def body_for(message: Message, codec: Codec) -> tuple[str | None, bytes]:
    """Write a message's body for a client.

    Args:
        message: From the mesh.
        codec: The client's.

    Returns:
        The header's `raw`, where the body is bytes as they are; and the body.

    Raises:
        Fault: It says that it is JSON or MessagePack, and is not.
    """
    kind = message.body_type
    if kind == "data":
        body = message.body
        data = body if isinstance(body, bytes) else b"".join(body)  # type: ignore[arg-type]  # of data
        theirs = codec_for(message.content_type)
        if theirs is None:
            return str(message.content_type or OCTETS), data
        return None, data if theirs is codec else codec.encode(theirs.decode(data))
    return None, codec.encode(message.body)


def header_of(message: Message, to: str) -> dict[str, object]:
    """Make the header of a delivery.

    Args:
        message: From the mesh.
        to: What the client calls the address.
    """
    header: dict[str, object] = {"to": to}
    if message.to is not None:
        header["address"] = message.to
    if message.subject is not None:
        header["subject"] = message.subject
    if message.ttl_s is not None:
        header["ttl_s"] = message.ttl_s
    if message.delivery_count:
        header["delivery_count"] = message.delivery_count
    if message.properties:
        header["properties"] = {
            str(key): _simple(value) for key, value in message.properties.items()
        }
    return header


def error_header(message: Message) -> dict[str, object] | None:
    """Read a reply that reports an error; None where it is a result."""
    properties = message.properties
    condition = properties.get(CONDITION)
    if condition is None:
        return None
    header: dict[str, object] = {
        "code": Code.FAILED.value,
        "condition": str(condition),
        "text": str(properties.get(DESCRIPTION, "")),
    }
    for key, name in (("type", TYPE), ("traceback", TRACEBACK)):
        if name in properties:
            header[key] = str(properties[name])
    return header


def error_reply(frames: Frames) -> Message:
    """Make the reply that reports what a client says went wrong.

    Raises:
        Fault: It says that in a way that cannot be understood.
    """
    kind = frames.text("type")
    condition = frames.text("code") or "error"
    properties: dict[str, object] = {
        CONDITION: REMOTE_ERROR if kind is not None and condition == "error" else condition,
        DESCRIPTION: frames.text("text") or condition,
    }
    if kind is not None:
        properties[TYPE] = kind
    return Message.value(None, subject=ERROR, properties=properties)


def too_large_reply(fault: TooLarge) -> Message:
    """Make the reply that says that the result is too large to be carried."""
    properties: dict[str, object] = {
        CONDITION: str(Condition.LINK_MESSAGE_SIZE_EXCEEDED),
        DESCRIPTION: f"the result: {fault.text}",
    }
    return Message.value(None, subject=ERROR, properties=properties)


def _simple(value: object) -> object:
    """Make a property what both codecs write alike: a text, where it is nothing simpler."""
    found = plain(value)
    return found if isinstance(found, (str, int, float, bool, type(None))) else str(found)
