"""Connections of pika, for tests of what AMQP 0-9-1 does to queues and messages."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .served import Served

__all__ = ("Taken", "basic_channel", "basic_connection", "port_of", "taken")

Taken = tuple[pika.spec.Basic.Deliver, pika.BasicProperties, bytes]


def port_of(container: Served) -> int:
    return int(container.url.rpartition(":")[2])


@contextlib.contextmanager
def basic_connection(container: Served, **given: Any) -> Iterator[BlockingConnection]:
    """Connect for the length of a `with` block."""
    given = {"blocked_connection_timeout": 20, **given}
    connection = BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port_of(container), **given)
    )
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


@contextlib.contextmanager
def basic_channel(container: Served, **given: Any) -> Iterator[BlockingChannel]:
    """Connect and open a channel."""
    with basic_connection(container, **given) as connection:
        yield connection.channel()


def taken(channel: BlockingChannel, queue: str, count: int, **given: Any) -> list[Taken]:
    """Consume so many messages, or fewer where no more come in time."""
    found: list[Taken] = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=2, **given):
        if method is None:
            break
        found.append((method, properties, body))
        if len(found) == count:
            break
    return found
