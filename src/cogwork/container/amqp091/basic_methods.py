"""Methods on messages: publish, consume, get, acknowledge (AMQP 0-9-1 §1.8)."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.container.amqp091.checked import guarded_address, publish_checked
from cogwork.container.amqp091.consumer import Consumer, subscription_of
from cogwork.container.amqp091.consumer_arguments import priority_in
from cogwork.container.amqp091.declared_queue import Counts
from cogwork.container.amqp091.exchange_methods import exchange_errors
from cogwork.container.amqp091.immediate_publishing import publish_immediately
from cogwork.container.amqp091.mandatory_publishing import catching_up
from cogwork.container.amqp091.published import check_properties
from cogwork.container.amqp091.publishing import ACCEPTED, REJECTED, unknown_tag
from cogwork.container.amqp091.queue_methods import name_of, queue_named
from cogwork.container.amqp091.reply_to import (
    REPLY_TO,
    ReplyConsumer,
    consumer_of_replies,
    entry_of_reply,
    with_reply_address,
)
from cogwork.container.amqp091.stream_methods import consume_stream, refuse_get
from cogwork.container.federation.questions import OwnerAway
from cogwork.container.vhost.reply_addresses import reply_address_in
from cogwork.plugin.capabilities import Shareable
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declared_queue import DeclaredQueue
    from cogwork.container.amqp091.declarer import Work
    from cogwork.container.amqp091.publishing import Settlement

__all__ = ("HANDLERS", "apply_settlement")

GENERATED = "amq.ctag-"
TAG_OCTETS = 16

TICKET_BITS = 63
"""Of a number by which a consumer has a place reserved, which no other one has."""


def publish(channel: Channel, method: m.BasicPublish, content: Content | None) -> Work | None:
    """Publish a message."""
    assert content is not None, "the assembler sees to it"
    _demand_publish(channel, method)
    check_properties(content, channel.connection.identity)
    content = with_reply_address(channel, content)
    entry = None if method.exchange else entry_of_reply(channel.vhost, method.routing_key)
    if entry is None:
        address = guarded_address(channel, method)
        if address is not None:
            send = partial(_publish_by_exchange, channel, method, content)
            return publish_checked(channel, method, content, address, send)
        if method.immediate:
            return publish_immediately(channel, method, content)
        with exchange_errors():
            entry = channel.vhost.exchanges.entry(method.exchange)
    channel.connection.note_publish()
    if method.mandatory:
        go_on = partial(channel.publishing.publish, entry, method, content)
        later = catching_up(channel, method, content, go_on)
        if later is not None:
            return later
    channel.publishing.publish(entry, method, content)
    # The next one like this need not come here: by the default exchange, one with the same key.
    key = None if method.exchange else octets_of(method.routing_key)
    channel.end.allow(entry, octets_of(method.exchange), key)
    return None


def _publish_by_exchange(channel: Channel, method: m.BasicPublish, content: Content) -> Work | None:
    """Publish one message, and have the owner asked about the next one, too."""
    if method.immediate:
        return publish_immediately(channel, method, content)
    with exchange_errors():
        entry = channel.vhost.exchanges.entry(method.exchange)
    channel.connection.note_publish()
    channel.publishing.publish(entry, method, content)
    return None


def _demand_publish(channel: Channel, method: m.BasicPublish) -> None:
    """Check that a client may publish: by the default exchange, whoever may send to the queue."""
    client, key = channel.client, method.routing_key
    if client.is_free:
        return
    # Whoever knows a reply address was given it.
    if not method.exchange:
        address = channel.queues.streams.address(key)
        if reply_address_in(key) or client.may("send", address):
            return
    channel.demand("send", channel.vhost.exchanges.address(method.exchange))


def qos(channel: Channel, method: m.BasicQos, _content: Content | None) -> None:
    """Limit what may be unacknowledged: of the channel, or of each consumer that comes."""
    if method.prefetch_size:
        text = f"prefetch_size!=0 ({method.prefetch_size})"
        raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, text)
    if method.global_:
        channel.end.prefetch = method.prefetch_count
    else:
        channel.prefetch = method.prefetch_count
    channel.reply(m.BasicQosOk())


def consume(channel: Channel, method: m.BasicConsume, _content: Content | None) -> Work | None:
    """Start a consumer."""
    consumer: Consumer | ReplyConsumer
    tag = method.consumer_tag or GENERATED + secrets.token_urlsafe(TAG_OCTETS)
    if tag in channel.consumers:
        text = f"attempt to reuse consumer tag '{tag}'"
        raise ProtocolError(ReplyCode.NOT_ALLOWED, text)
    if method.queue == REPLY_TO:
        channel.client.demand_any("receive")
        consumer = consumer_of_replies(channel, tag, no_ack=method.no_ack)
    else:
        name = name_of(channel, method.queue)
        channel.demand("receive", channel.queues.streams.address(name))
        stream = channel.queues.streams.find(name)
        if stream is not None:
            return consume_stream(channel, method, tag, name, stream)
        queue = channel.queues.demand(name, channel.connection)
        channel.queues.demand_home(queue)
        if queue.is_elsewhere:
            return _consume_elsewhere(channel, method, tag, queue)
        expected = queue.consumer_count + queue.reserved_count
        _demand_shared(channel, queue, method, Counts(0, expected, queue.is_taken))
        consumer = _consumer_of(channel, method, tag, queue)
    _begin(channel, method, tag, consumer)
    return None


async def _consume_elsewhere(
    channel: Channel, method: m.BasicConsume, tag: str, queue: DeclaredQueue
) -> None:
    """Start a consumer of a queue that another container owns, if it says that there is room."""
    ticket = secrets.randbits(TICKET_BITS)
    counts = await channel.queues.counts(queue, ticket, is_exclusive=method.exclusive)
    _demand_shared(channel, queue, method, counts)
    _begin(channel, method, tag, _consumer_of(channel, method, tag, queue, ticket))


def _begin(
    channel: Channel, method: m.BasicConsume, tag: str, consumer: Consumer | ReplyConsumer
) -> None:
    channel.connection.count_consumer()
    if not method.nowait:  # before anything is delivered
        channel.reply(m.BasicConsumeOk(consumer_tag=tag))
    try:
        consumer.join()
    except Refused:
        channel.connection.count_no_consumer()
        raise


def _consumer_of(
    channel: Channel, method: m.BasicConsume, tag: str, queue: DeclaredQueue, ticket: int = 0
) -> Consumer:
    priority = priority_in(method.arguments, channel.queues.place(queue.name))
    end = channel.end.consumer(
        octets_of(tag),
        no_ack=method.no_ack,
        prefetch=channel.prefetch,
        no_local=method.no_local,
    )
    end.priority = priority
    return Consumer(channel, tag, queue, end, is_exclusive=method.exclusive, ticket=ticket)


def _demand_shared(
    channel: Channel, queue: DeclaredQueue, method: m.BasicConsume, counts: Counts
) -> None:
    """Check that a queue has room for one more consumer.

    Raises:
        ProtocolError: Somebody has it alone, or it is wanted alone and is not (403).
    """
    if counts.is_taken or not counts.is_done or (method.exclusive and counts.consumers):
        text = f"{channel.queues.place(queue.name)} in exclusive use"
        raise ProtocolError(ReplyCode.ACCESS_REFUSED, text)


def cancel(channel: Channel, method: m.BasicCancel, _content: Content | None) -> None:
    """End a consumer; one that is not there is fine."""
    consumer = channel.consumers.get(method.consumer_tag)
    if consumer is not None:
        consumer.leave()
    if not method.nowait:
        channel.reply(m.BasicCancelOk(consumer_tag=method.consumer_tag))


def cancelled(_channel: Channel, _method: m.BasicCancelOk, _content: Content | None) -> None:
    """Take the answer to a cancel that needs none."""


def get(channel: Channel, method: m.BasicGet, _content: Content | None) -> Work | None:
    """Deliver one message, or say that there is none."""
    name = name_of(channel, method.queue)
    channel.demand("receive", channel.queues.streams.address(name))
    if channel.queues.streams.find(name) is not None:
        refuse_get(channel, name)
    queue = queue_named(channel, method.queue)
    queue.use()
    if queue.is_taken:
        text = f"{channel.queues.place(queue.name)} in exclusive use"
        raise ProtocolError(ReplyCode.ACCESS_REFUSED, text)
    if queue.is_elsewhere:
        return _get_elsewhere(channel, queue, no_ack=method.no_ack)
    if _take_one(channel, queue, no_ack=method.no_ack):
        return None
    return _get_later(channel, name, no_ack=method.no_ack)


async def _get_later(channel: Channel, name: str, *, no_ack: bool) -> None:
    """Deliver one message, or say that there is none, once what came before has had its effects.

    What dies is sent on at the end of a batch; clients look for it right behind their reject.
    """
    if not _take_one(channel, queue_named(channel, name), no_ack=no_ack):
        channel.reply(m.BasicGetEmpty())


async def _get_elsewhere(channel: Channel, queue: DeclaredQueue, *, no_ack: bool) -> None:
    """Deliver one message of a queue that another container owns, or say that there is none."""
    counts = await channel.queues.counts(queue)
    if counts.is_taken:
        text = f"{channel.queues.place(queue.name)} in exclusive use"
        raise ProtocolError(ReplyCode.ACCESS_REFUSED, text)
    if not counts.messages or not await _fetch(channel, queue, counts.messages, no_ack=no_ack):
        channel.reply(m.BasicGetEmpty())


async def _fetch(channel: Channel, queue: DeclaredQueue, count: int, *, no_ack: bool) -> bool:
    """Have the owner of a queue deliver its first message; tell whether there was any."""
    reach = channel.vhost.reach
    if reach is None or not isinstance(queue.node, Shareable):
        return False
    end = channel.end.get(no_ack=no_ack)
    end.owner = queue  # from where its delivery is
    end.message_count = count - 1
    subscription = subscription_of(end, queue.address)
    queue.node.subscribe(subscription)
    try:
        return await reach.queue_federation.fetch(queue.node, subscription)
    except OwnerAway as away:
        raise channel.queues.away(queue, away.owner) from None
    finally:
        queue.node.unsubscribe(subscription)
        end.detach()
        reach.queue_federation.leave_consumer(subscription)


def _take_one(channel: Channel, queue: DeclaredQueue, *, no_ack: bool) -> bool:
    """Deliver the first message of a queue; tell whether there was any."""
    count = queue.message_count
    if not count:
        return False
    end = channel.end.get(no_ack=no_ack)
    end.owner = queue  # from where its delivery is
    end.message_count = count - 1
    subscription = subscription_of(end, queue.address)
    queue.node.subscribe(subscription)
    has_any = bool(end.deliveries)
    queue.node.unsubscribe(subscription)
    end.detach()
    return has_any


def ack(channel: Channel, method: m.BasicAck, _content: Content | None) -> None:
    """Take what is acknowledged for done."""
    _settle(channel, (method.delivery_tag, method.multiple, ACCEPTED))


def reject(channel: Channel, method: m.BasicReject, _content: Content | None) -> None:
    """Put a message back, or take it for dead."""
    _settle(channel, (method.delivery_tag, False, None if method.requeue else REJECTED))


def nack(channel: Channel, method: m.BasicNack, _content: Content | None) -> None:
    """Put messages back, or take them for dead (RabbitMQ)."""
    outcome = None if method.requeue else REJECTED
    _settle(channel, (method.delivery_tag, method.multiple, outcome))


def _settle(channel: Channel, settlement: Settlement) -> None:
    if channel.publishing.is_transactional:
        channel.publishing.settle_later(settlement)
    else:
        apply_settlement(channel, settlement)


def apply_settlement(channel: Channel, settlement: Settlement) -> None:
    """Acknowledge, refuse or requeue.

    Raises:
        ProtocolError: The channel has no such delivery (406).
    """
    tag, is_multiple, outcome = settlement
    if outcome is None:
        count = channel.end.requeue(tag, is_multiple)
    else:
        # What a commit has acknowledged is durable when it is answered.
        is_awaited = channel.publishing.is_committing
        count = channel.end.acknowledge(tag, is_multiple, outcome, is_awaited=is_awaited)
    if not count and not (is_multiple and tag == 0):
        raise unknown_tag(tag)


def recover(
    channel: Channel, method: m.BasicRecover | m.BasicRecoverAsync, _content: Content | None
) -> None:
    """Put all back that is unacknowledged; what a transaction acknowledges waits for its end."""
    if not method.requeue:
        raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, "requeue=false")
    if channel.publishing.is_transactional:
        for tag in channel.publishing.unacknowledged():
            channel.end.requeue(tag, False)
    else:
        channel.end.recover()
    if isinstance(method, m.BasicRecover):
        channel.reply(m.BasicRecoverOk())


HANDLERS: dict[type[Method], Callable[..., Work | None]] = {
    m.BasicPublish: publish,
    m.BasicQos: qos,
    m.BasicConsume: consume,
    m.BasicCancel: cancel,
    m.BasicCancelOk: cancelled,
    m.BasicGet: get,
    m.BasicAck: ack,
    m.BasicReject: reject,
    m.BasicNack: nack,
    m.BasicRecover: recover,
    m.BasicRecoverAsync: recover,
}
