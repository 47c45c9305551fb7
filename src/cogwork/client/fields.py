"""What the calls that send take as keywords: the fields of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from cogwork.dataplane.messages import Message

if TYPE_CHECKING:
    from datetime import datetime

    from cogwork.amqp.message import MessageId

__all__ = ("MessageFields", "batch_of", "message_of")

_Bodies = TypeVar("_Bodies")

_ONE_BODY = (str, bytes, bytearray, memoryview, Mapping, Message)
"""What could be iterated over, but is one message to whoever sends it."""


class MessageFields(TypedDict, total=False):
    """The keywords of `Message`; `ttl_s` in seconds."""

    subject: str | None
    to: str | None
    reply_to: str | None
    message_id: MessageId | None
    correlation_id: MessageId | None
    content_type: str | None
    content_encoding: str | None
    user_id: bytes | None
    group_id: str | None
    group_sequence: int | None
    reply_to_group_id: str | None
    absolute_expiry_time: datetime | None
    creation_time: datetime | None
    properties: dict[str, object] | None
    annotations: dict[str, object] | None
    delivery_annotations: dict[str, object] | None
    footer: dict[str, object] | None
    durable: bool
    priority: int
    ttl_s: float | None
    first_acquirer: bool
    delivery_count: int


def message_of(body: object, **fields: Unpack[MessageFields]) -> Message:
    """Returns the message to send.

    Args:
        body: A `Message`, or the body of one.
        **fields: The message's; only where `body` is none yet.

    Raises:
        TypeError: There are fields for a message that is one already.
    """
    if not isinstance(body, Message):
        return Message(body, **fields)
    if fields:
        names = ", ".join(fields)
        raise TypeError(f"set {names} on the Message: keywords are for a body that is none yet")
    return body


def batch_of(bodies: _Bodies) -> _Bodies:
    """Returns the bodies of a batch as they are.

    Raises:
        TypeError: They are a single body: its characters, octets or keys are no messages.
    """
    if isinstance(bodies, _ONE_BODY):
        name = type(bodies).__name__
        raise TypeError(f"a list of bodies is expected, not a single {name}: write [body]")
    return bodies
