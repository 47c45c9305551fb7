"""Publishes messages that are delivered at once, or returned (`immediate`, AMQP 0-9-1 §1.8.3.3).

RabbitMQ refuses them. A queue takes one if nothing waits there and a consumer has room. Whoever has
the messages of a queue that is elsewhere is asked before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.errors import ProtocolError
from cogwork.container.amqp091.exchange_methods import exchange_errors
from cogwork.container.amqp091.mandatory_publishing import route_of

if TYPE_CHECKING:
    from cogwork.amqp091.content import Content
    from cogwork.amqp091.methods import BasicPublish
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declared_queue import DeclaredQueue
    from cogwork.container.amqp091.declarer import Work

__all__ = ("publish_immediately",)


def publish_immediately(channel: Channel, method: BasicPublish, content: Content) -> Work | None:
    """Publish a message, as soon as it is known of all its queues whether they take it now."""
    with exchange_errors():
        channel.vhost.exchanges.entry(method.exchange)
    elsewhere = _queues_elsewhere(channel, method, content)
    if elsewhere:
        return _ask_and_publish(channel, method, content, elsewhere)
    _publish(channel, method, content)
    return None


def _queues_elsewhere(
    channel: Channel, method: BasicPublish, content: Content
) -> list[DeclaredQueue]:
    """List the queues of a message whose messages another container has."""
    found = [channel.queues.find(name) for name in route_of(channel, method, content).queues]
    return [queue for queue in found if queue is not None and queue.is_elsewhere]


async def _ask_and_publish(
    channel: Channel, method: BasicPublish, content: Content, elsewhere: list[DeclaredQueue]
) -> None:
    ready = set()
    for queue in elsewhere:
        try:
            counts = await channel.queues.counts(queue)
        except ProtocolError:  # nobody can be reached there now
            continue
        if counts.consumers and not counts.messages:
            ready.add(queue.name)
    channel.queues.ready_elsewhere = ready
    try:
        _publish(channel, method, content)
    finally:
        channel.queues.ready_elsewhere = set()


def _publish(channel: Channel, method: BasicPublish, content: Content) -> None:
    channel.connection.note_publish()
    with exchange_errors():
        entry = channel.vhost.immediate.entry(method.exchange)
    channel.publishing.publish(entry, method, content)
