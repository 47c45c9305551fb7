"""Requests to `$management`, after the AMQP management draft: operation, type, name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.types import Symbol
from cogwork.client.errors import refusal
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("ADDRESS", "manage")

ADDRESS = "$management"

_CONDITIONS = {
    400: Condition.INVALID_FIELD,
    401: Condition.UNAUTHORIZED_ACCESS,
    403: Condition.UNAUTHORIZED_ACCESS,
    404: Condition.NOT_FOUND,
    501: Condition.NOT_IMPLEMENTED,
}
"""What a status code is where the reply names no condition."""


class Requests(Protocol):
    """Sends requests."""

    async def request(self, address: str, body: object) -> Message:
        """Send a request and return its reply."""


async def manage(
    client: Requests, operation: str, properties: Mapping[str, object], body: object = None
) -> Message:
    """Have the container do something.

    Args:
        client: Carries the request.
        operation: Such as `READ`.
        properties: Further application-properties of the request.
        body: What the operation takes.

    Raises:
        LinkRefused: It was not done; address, condition and description say why.
    """
    request = Message(body, properties={"operation": operation, **properties})
    reply = await client.request(ADDRESS, request)
    status = reply.properties.get("statusCode", 500)
    if isinstance(status, int) and status < 300:
        return reply
    condition = reply.properties.get("errorCondition") or _CONDITIONS.get(
        int(status) if isinstance(status, int) else 500, Condition.INTERNAL_ERROR
    )
    description = reply.properties.get("statusDescription") or f"status {status}"
    raise refusal(
        ADDRESS, AmqpError(condition=Symbol(str(condition)), description=str(description))
    )
