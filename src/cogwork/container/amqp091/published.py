"""What has to be so of a message's properties (AMQP 0-9-1 §1.8.3.1, as RabbitMQ reads it)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.queue_arguments import type_name

if TYPE_CHECKING:
    from cogwork.amqp091.content import BasicProperties, Content

__all__ = ("check_properties",)

EXPIRATION, USER_ID = 1 << 8, 1 << 4
"""Property flags, in the order of the list."""

COPIES: Final = ("CC", "BCC")
"""Headers that name further routing keys."""


def check_properties(content: Content, user: str | None) -> None:
    """Check a message's properties; hardly any have one that has to be looked at.

    Args:
        content: The message.
        user: Who sends it; None for the anonymous user, which is called `guest`.

    Raises:
        ProtocolError: One is wrong (406).
    """
    octets = content.property_octets
    flags = int.from_bytes(octets[:2])
    if not flags & (EXPIRATION | USER_ID) and b"CC" not in octets:
        return
    properties = content.properties
    _check_expiration(properties.expiration)
    sent_by = properties.user_id
    if sent_by is not None and sent_by != (user or "guest"):
        raise _refusal(
            f"user_id property set to '{sent_by}' but authenticated user was '{user or 'guest'}'"
        )
    _check_copies(properties)


def _check_expiration(expiration: str | None) -> None:
    if expiration is not None and not (expiration.isascii() and expiration.isdigit()):
        raise _refusal(f"invalid expiration '{expiration}': no_integer")


def _check_copies(properties: BasicProperties) -> None:
    for name in COPIES:
        keys = (properties.headers or {}).get(name, [])
        if not isinstance(keys, list):
            what = f'{{unacceptable_type_in_header,"{name}",{type_name(keys)}}}'
            raise _refusal(f"invalid message: {what}")
        for key in keys:
            if not isinstance(key, str):
                what = f'{{unacceptable_type_in_header,"{name}",{type_name(key)}}}'
                raise _refusal(f"invalid message: {what}")


def _refusal(text: str) -> ProtocolError:
    return ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
