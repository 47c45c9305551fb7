"""Addresses of exchanges: `exchange/NAME` and `exchange/NAME/KEY`, and what RabbitMQ 4 writes.

A `/` in an exchange's name is written `%2F` there, and a `%` is `%25`; the key is as it is. Clients
of RabbitMQ 4 write `/exchanges/NAME/KEY` and `/queues/NAME`, each part percent-encoded. The leading
`/` tells these from plain names: `queues/a` is no queue.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Destination

__all__ = (
    "RABBITMQ_QUEUES",
    "destination_in",
    "exchange_address",
    "name_in",
    "rabbitmq_address",
    "without_key",
)

PREFIX: Final = "exchange"
DEFAULT_NAME: Final = "amq.default"
"""What the default exchange is called where a name is needed, as in RabbitMQ."""

RABBITMQ_EXCHANGES: Final = "/exchanges/"
RABBITMQ_QUEUES: Final = "/queues/"


def exchange_address(name: str, prefix: str = PREFIX) -> str:
    """Return the address of an exchange."""
    quoted = (name or DEFAULT_NAME).replace("%", "%25").replace("/", "%2F")
    return f"{prefix}/{quoted}"


def name_in(quoted: str) -> str:
    """Return the exchange that the part of an address names; empty for the default exchange."""
    name = unquote(quoted, errors="surrogateescape")
    return "" if name == DEFAULT_NAME else name


def destination_in(address: str) -> Destination | None:
    """Return what a binding to an address leads to; None if nothing can be bound there."""
    kind, _, name = address.removeprefix("/").partition("/")
    if kind == QUEUE and name:
        return Destination(QUEUE, name)
    if kind == PREFIX and name_in(name):
        return Destination(EXCHANGE, name_in(name))
    return None


def rabbitmq_address(address: str) -> str:
    """Return what an address of RabbitMQ 4 means here, and any other one as it is.

    Raises:
        ValueError: What is percent-encoded in it is not UTF-8.
    """
    if address.startswith(RABBITMQ_QUEUES):
        return f"queue/{_decoded(address, address[len(RABBITMQ_QUEUES) :])}"
    if not address.startswith(RABBITMQ_EXCHANGES):
        return address
    name, slash, key = address[len(RABBITMQ_EXCHANGES) :].partition("/")
    if not name:
        return address
    return f"{exchange_address(_decoded(address, name))}{slash}{_decoded(address, key)}"


def _decoded(address: str, part: str) -> str:
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise ValueError(f"the address {address!r:.200} does not decode to UTF-8") from error


def without_key(address: str) -> str:
    """Return what permissions are about: an exchange whatever the key, else the address itself."""
    prefix, slash, rest = address.removeprefix("/").partition("/")
    if prefix != PREFIX or not slash:
        return address
    return f"{prefix}/{rest.partition('/')[0]}"
