"""Why something is refused, or ends, as a reply code and RabbitMQ's words for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.types import Symbol
from cogwork.amqp091.errors import ProtocolError, ReplyCode

if TYPE_CHECKING:
    from cogwork.config.settings import Right
    from cogwork.plugin.node import Refused

__all__ = ("ACCESS", "error_of", "fault_of", "refusal_of", "shown_vhost")

_CODES: Final = {
    Condition.CONNECTION_FORCED: ReplyCode.CONNECTION_FORCED,
    Condition.CONNECTION_FRAMING_ERROR: ReplyCode.FRAME_ERROR,
    Condition.INTERNAL_ERROR: ReplyCode.INTERNAL_ERROR,
    Condition.INVALID_FIELD: ReplyCode.PRECONDITION_FAILED,
    Condition.NOT_ALLOWED: ReplyCode.NOT_ALLOWED,
    Condition.NOT_FOUND: ReplyCode.NOT_FOUND,
    Condition.NOT_IMPLEMENTED: ReplyCode.NOT_IMPLEMENTED,
    Condition.PRECONDITION_FAILED: ReplyCode.PRECONDITION_FAILED,
    Condition.RESOURCE_DELETED: ReplyCode.NOT_FOUND,
    Condition.RESOURCE_LIMIT_EXCEEDED: ReplyCode.NOT_ALLOWED,
    Condition.RESOURCE_LOCKED: ReplyCode.RESOURCE_LOCKED,
    Condition.UNAUTHORIZED_ACCESS: ReplyCode.ACCESS_REFUSED,
}

ACCESS: Final[dict[Right, str]] = {"manage": "configure", "send": "write", "receive": "read"}
"""What RabbitMQ calls each right."""


def fault_of(error: AmqpError | None) -> ProtocolError:
    """Return why the container closes a connection, as that is told by AMQP 0-9-1."""
    if error is None:
        return ProtocolError(ReplyCode.CONNECTION_FORCED, "the broker closes the connection")
    code = _CODES.get(error.condition, ReplyCode.CONNECTION_FORCED)
    return ProtocolError(code, error.description or str(error.condition))


def refusal_of(refused: Refused) -> ProtocolError:
    """Return why a node refuses something, as that is told by AMQP 0-9-1."""
    code = _CODES.get(refused.condition, ReplyCode.PRECONDITION_FAILED)
    if refused.condition == Condition.RESOURCE_LIMIT_EXCEEDED:
        code = ReplyCode.PRECONDITION_FAILED  # of this one thing: the connection may go on
    return ProtocolError(code, refused.description)


def error_of(fault: ProtocolError) -> AmqpError:
    """Return what a peer did wrong as the rest of the container knows errors."""
    return AmqpError(condition=Symbol(f"amqp-0-9-1:{fault.code.name}"), description=str(fault))


def shown_vhost(name: str) -> str:
    """Return what clients of AMQP 0-9-1 call a virtual host: the default one is `/`."""
    return name or "/"
