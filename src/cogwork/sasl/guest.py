"""The login that clients of RabbitMQ take by default: `guest`, with the password `guest`.

It is the anonymous user, where that one may log in and no user is called so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.sasl import ANONYMOUS, PLAIN, SaslInit, parse_plain

if TYPE_CHECKING:
    from collections.abc import Collection

    from cogwork.amqp.types import Symbol

__all__ = ("GUEST", "login_meant")

GUEST: Final = "guest"


def login_meant(init: SaslInit, offered: Collection[Symbol], *, has_guest: bool) -> SaslInit:
    """Return the login that a client means: that of a guest is anonymous.

    Args:
        init: As the client logs in.
        offered: The mechanisms of the listener.
        has_guest: Whether there is a user called `guest`.
    """
    if init.mechanism != PLAIN or has_guest or ANONYMOUS not in offered:
        return init
    try:
        _, user, password = parse_plain(init.initial_response or b"")
    except ProtocolError:  # as its check will say
        return init
    if (user, password) != (GUEST, GUEST):
        return init
    return SaslInit(mechanism=ANONYMOUS, initial_response=GUEST.encode())
