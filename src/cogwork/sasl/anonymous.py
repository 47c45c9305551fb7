"""ANONYMOUS: nobody in particular (RFC 4505)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.sasl import ANONYMOUS
from cogwork.sasl.sides import Mechanism, Success
from cogwork.sasl.silent import Silent

if TYPE_CHECKING:
    from cogwork.sasl.sides import ClientContext, ServerContext, Step

__all__ = ("MECHANISMS",)


class _Server:
    """Lets everybody in."""

    def __init__(self, context: ServerContext) -> None:
        pass

    def respond(self, _response: bytes | None) -> Step:
        """Take any trace, and let its sender in."""
        return Success(None)


def _client(context: ClientContext) -> Silent | None:
    is_able = context.user is None and context.token is None
    return Silent(context.trace) if is_able or context.chosen is not None else None


MECHANISMS = (
    Mechanism(ANONYMOUS, _Server, _client, lambda _: None, has_user=False, has_password=False),
)
