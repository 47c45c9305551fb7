"""The addresses of dynamic links, for replies: they name the container they lead to.

Such an address is a capability: its last part cannot be guessed, whoever was given it may send
there without a permission, and nobody but the connection that made it receives there.
"""

from __future__ import annotations

import secrets

__all__ = (
    "DIRECT_REPLY_TO",
    "REPLY_PREFIX",
    "container_of",
    "is_reply_address",
    "new_address",
    "replies_to",
    "reply_address_in",
)

TOKEN_BYTES = 16
"""128 random bits."""

REPLY_PREFIX = "_reply/"
"""What such an address begins with; the life of the container that made it follows."""

DIRECT_REPLY_TO = "amq.rabbitmq.reply-to"
"""What a client of AMQP 0-9-1 consumes replies from; with an address behind it, it is a key."""


def replies_to(container: str, incarnation: int) -> str:
    """Return what the reply addresses begin with that one life of a container makes."""
    return f"{REPLY_PREFIX}{container}.{incarnation:x}"


def new_address(prefix: str) -> str:
    """Return an address that nobody can guess, below what `replies_to` returned."""
    return f"{prefix}/{secrets.token_urlsafe(TOKEN_BYTES)}"


def is_reply_address(address: str) -> bool:
    """Return whether an address, as a client writes it, is one for replies."""
    return address.removeprefix("/").startswith(REPLY_PREFIX)


def container_of(address: str) -> str | None:
    """Return whose reply address this is; None where it is malformed."""
    home = address[len(REPLY_PREFIX) :].rpartition("/")[0]
    container, _, incarnation = home.rpartition(".")
    return container if container and incarnation else None


def reply_address_in(key: str) -> str | None:
    """Return the reply address that a routing key or a queue's name stands for; None for none."""
    address = key.removeprefix(f"{DIRECT_REPLY_TO}.")
    return address if address != key and address.startswith(REPLY_PREFIX) else None
