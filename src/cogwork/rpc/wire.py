"""What the messages of calls hold besides bodies; `docs/rpc.md` specifies it.

A request names its method as subject, itself by message-id, and its deadline by the header's ttl.
A reply has that id as correlation-id; its subject says what it is: a result where there is none.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Final

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp.types import Symbol
from cogwork.client.errors import CallFailed
from cogwork.client.requests.replies import CONDITION, DESCRIPTION
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.errors import CONDITIONS, REMOTE_ERROR, RemoteError

if TYPE_CHECKING:
    from cogwork.amqp.message import MessageId

__all__ = (
    "CANCEL",
    "CREDIT",
    "CREDIT_MAX",
    "END",
    "ERROR",
    "HEARTBEAT",
    "HEARTBEAT_S",
    "KEY",
    "MORE",
    "PART",
    "STREAM_S",
    "error_of",
    "error_reply",
    "id_of",
    "refusal_reply",
)

ERROR: Final = "error"
HEARTBEAT: Final = "heartbeat"
PART: Final = "part"
END: Final = "end"
"""Subjects of replies."""

CANCEL: Final = "$cancel"
MORE: Final = "$more"
"""Subjects of what a caller says about a call of its own that is under way."""

KEY: Final = "cogwork:key"
HEARTBEAT_S: Final = "cogwork:heartbeat-s"
STREAM_S: Final = "cogwork:stream-s"
CREDIT: Final = "cogwork:credit"
TYPE: Final = "cogwork:type"
TRACEBACK: Final = "cogwork:traceback"
"""Application-properties."""

CREDIT_MAX: Final = 1_000
"""Parts that a server sends ahead at most, whatever the caller says that it has room for."""

TEXT_MAX: Final = 8_000
"""Characters of an error's text and of its traceback's end that are sent."""


def id_of(request: Message) -> MessageId | None:
    """Return what a reply to the request has as its correlation-id."""
    number = request.correlation_id
    return request.message_id if number is None else number


def refusal_reply(condition: str, description: str) -> Message:
    """Return the reply to a call that no method has run for."""
    return Message(
        None,
        subject=ERROR,
        properties={CONDITION: str(condition), DESCRIPTION: _sendable(description)[:TEXT_MAX]},
    )


def error_reply(error: BaseException, *, tells_traceback: bool) -> Message:
    """Return the reply that tells of an exception."""
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    properties: dict[str, object] = {
        CONDITION: _condition_of(error),
        DESCRIPTION: _sendable(_text_of(error))[:TEXT_MAX],
        TYPE: _sendable(name),
    }
    if tells_traceback:
        told = _sendable("".join(traceback.format_exception(error)))
        properties[TRACEBACK] = told[-TEXT_MAX:]
    return Message(None, subject=ERROR, properties=properties)


def _condition_of(error: BaseException) -> str:
    try:
        return _sendable(str(getattr(error, "condition", None) or REMOTE_ERROR))
    except Exception:  # whatever an application's exception does when it is asked
        return REMOTE_ERROR


def _sendable(text: str) -> str:
    """Escape what is no UTF-8: name of files may have it, and texts of errors name files."""
    return text.encode(errors="backslashreplace").decode()


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as problem:  # an exception whose text cannot be had is still an exception
        return f"(its text cannot be had: {problem!r})"


def error_of(address: str, reply: Message) -> CogworkError:
    """Return the exception that an error reply tells of."""
    properties = reply.properties
    condition = Symbol(str(properties.get(CONDITION, Condition.INTERNAL_ERROR)))
    description = str(properties.get(DESCRIPTION, ""))
    kind = properties.get(TYPE)
    if kind is not None:
        told = str(properties.get(TRACEBACK, ""))
        return RemoteError(address, str(kind), description, told, condition)
    return CONDITIONS.get(condition, CallFailed)(address, condition, description)
