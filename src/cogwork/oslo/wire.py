"""The bodies of messages: JSON in an AMQP string, as every amqp driver of oslo.messaging had it.

A request is `{"request", "context"}`, with `call_monitor_timeout` where heartbeats are wanted; a
reply is `{"response"}` or `{"failure"}`; a heartbeat is a reply without a body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oslo_messaging._drivers import common
from oslo_serialization import jsonutils

if TYPE_CHECKING:
    from cogwork.dataplane.message.messages import Message

__all__ = (
    "Request",
    "Unreadable",
    "failure_body",
    "notification_body",
    "read_reply",
    "read_request",
    "reply_body",
    "request_body",
)

ENVELOPE_VERSION = 2.0


class Unreadable(ValueError):
    """A body that is not of this format; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Request:
    """What came.

    Attributes:
        message: For the dispatcher.
        context: Of the caller.
        call_monitor_timeout_s: How often the caller wants to hear that it is being worked on.
    """

    message: Any
    context: dict[str, Any]
    call_monitor_timeout_s: float | None


def request_body(message: object, context: object, call_monitor_timeout_s: float | None) -> str:
    """Return the body of a call or a cast."""
    fields = {"request": message, "context": context}
    if call_monitor_timeout_s is not None:
        fields["call_monitor_timeout"] = call_monitor_timeout_s
    return str(jsonutils.dumps(fields))


def notification_body(message: object, context: object, version: float) -> str:
    """Return the body of a notification, in an envelope from version 2.0 on."""
    if version >= ENVELOPE_VERSION:
        message = common.serialize_msg(message)
    return str(jsonutils.dumps({"request": message, "context": context}))


def reply_body(reply: object, failure: object) -> str:
    """Return the body of a reply.

    Args:
        reply: What the method returned.
        failure: What `sys.exc_info()` told, where it raised; None else.
    """
    if failure:
        return failure_body(failure)
    return str(jsonutils.dumps({"response": reply}))


def failure_body(failure: object) -> str:
    """Return the body of a reply that tells of an exception."""
    return str(jsonutils.dumps({"failure": common.serialize_remote_exception(failure)}))


def read_request(message: Message) -> Request:
    """Read a request or a notification.

    Raises:
        Unreadable: It is none.
    """
    fields = _read(message)
    if "request" not in fields:
        raise Unreadable('there is no "request" in it')
    context = fields.get("context")
    try:
        request = common.deserialize_msg(fields["request"])
    except (ValueError, TypeError, common.UnsupportedRpcEnvelopeVersion) as error:
        raise Unreadable(f"its envelope: {error}") from None
    monitor_s = fields.get("call_monitor_timeout")
    return Request(
        request,
        context if isinstance(context, dict) else {},
        monitor_s if isinstance(monitor_s, int | float) else None,
    )


def read_reply(message: Message, allowed_remote_exmods: list[str]) -> object:
    """Read a reply: return what it has, or raise it.

    Args:
        message: The reply.
        allowed_remote_exmods: Modules whose exceptions may be made of a failure.

    Raises:
        Exception: The server's, or `RemoteError` in its place.
        Unreadable: It is none.
    """
    fields = _read(message)
    failure = fields.get("failure")
    if failure is not None:
        raise common.deserialize_remote_exception(failure, allowed_remote_exmods)
    return fields.get("response")


def _read(message: Message) -> dict[str, Any]:
    body = message.body
    if not isinstance(body, str | bytes):
        raise Unreadable(f"its body is of type {type(body).__name__}, not a text")
    try:
        fields = jsonutils.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"its body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise Unreadable("its body is no JSON object")
    return fields
