"""What the calls that send take as keywords: the fields of a message."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
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


def message_of(
    body: object,
    sending: Callable[..., object] | None = None,
    /,
    **fields: Unpack[MessageFields],
) -> Message:
    """Return the message to send.

    Args:
        body: A `Message`, or the body of one.
        sending: What was called to send it, and has further keywords.
        **fields: The message's; only where `body` is none yet.

    Raises:
        TypeError: There are fields for a message that is one already, or that no message has.
    """
    if not isinstance(body, Message):
        try:
            return Message(body, **fields)
        except TypeError:
            _check_names(fields, sending)
            raise
    if fields:
        _check_names(fields, sending)
        names = ", ".join(fields)
        raise TypeError(f"set {names} on the Message: keywords are for a body that is none yet")
    return body


def _check_names(fields: Iterable[str], sending: Callable[..., object] | None) -> None:
    """See that keywords are names of fields.

    Raises:
        TypeError: One is not, and is no option of what was called either.
    """
    known = MessageFields.__annotations__
    unknown = [name for name in fields if name not in known]
    if not unknown:
        return
    names, called = list(known), ""
    if sending is not None:
        options = signature(sending).parameters.values()
        names += [each.name for each in options if each.kind is each.KEYWORD_ONLY]
        called = f"{sending.__name__}() "
    text = f"{called}got an unexpected keyword argument {unknown[0]!r}"
    near = get_close_matches(unknown[0], names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
    raise TypeError(f"{text}: {hint}") from None


def batch_of(bodies: _Bodies) -> _Bodies:
    """Return the bodies of a batch as they are.

    Raises:
        TypeError: They are a single body: its characters, octets or keys are no messages.
    """
    if isinstance(bodies, _ONE_BODY):
        name = type(bodies).__name__
        raise TypeError(f"a list of bodies is expected, not a single {name}: write [body]")
    return bodies
