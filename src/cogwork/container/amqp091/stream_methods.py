"""What methods on queues do to streams; what they cannot do is refused as RabbitMQ refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.container.amqp091.consumer_arguments import priority_in
from cogwork.container.amqp091.declared_queue import Counts
from cogwork.container.amqp091.exchange_methods import exchange_errors
from cogwork.container.amqp091.queue_arguments import QUEUE_TYPE, check_equal
from cogwork.container.amqp091.stream_arguments import (
    STREAM,
    check_equal_stream,
    options_of_stream,
    start_in,
)
from cogwork.container.amqp091.stream_consumer import StreamConsumer

if TYPE_CHECKING:
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declarer import Declarer
    from cogwork.plugin.capabilities import Streaming

__all__ = (
    "consume_stream",
    "count_stream",
    "declare_stream",
    "delete_stream",
    "demand_no_stream",
    "refuse_get",
    "refuse_purge",
)


async def declare_stream(channel: Declarer, method: m.QueueDeclare, name: str) -> None:
    """Make a stream, unless it is there and the same.

    Raises:
        ProtocolError: It cannot be, or something else has its name (406).
    """
    queues = channel.queues
    place = queues.place(name)
    _demand_properties(method, place)
    options = options_of_stream(method.arguments, place)
    _demand_no_queue(channel, name)
    node = queues.streams.find(name)
    if node is None:
        await channel.take_turn()
        node = await queues.streams.declare(name, options, channel.client.makers)
    # Another container may have made it at the same time.
    check_equal_stream(method.arguments, node.options.shown(), place)
    await count_stream(channel, method, name, node)


def _demand_properties(method: m.QueueDeclare, place: str) -> None:
    """Check that a stream is to be durable, and everybody's."""
    for name, is_so in (
        ("auto-delete", method.auto_delete),
        ("exclusive-owner", method.exclusive),
        ("non-durable", not method.durable),
    ):
        if is_so:
            text = f"invalid property '{name}' for {place}"
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)


def _demand_no_queue(channel: Declarer, name: str) -> None:
    """Check that a queue which is no stream has not the name of one.

    Raises:
        ProtocolError: It has (406), or another connection has it for itself (405).
    """
    if channel.queues.find(name) is not None:
        queue = channel.queues.demand(name, channel.connection)
        current = {QUEUE_TYPE: queue.traits.arguments.get(QUEUE_TYPE)}
        check_equal({QUEUE_TYPE: STREAM}, current, channel.queues.place(name), (QUEUE_TYPE,))
    channel.queues.demand_free(name)


def demand_no_stream(channel: Declarer, method: m.QueueDeclare, name: str) -> None:
    """Check that a queue which is to be none has not the name of a stream.

    Raises:
        ProtocolError: It has (406).
    """
    node = channel.queues.streams.find(name)
    if node is not None:
        place = channel.queues.place(name)
        check_equal_stream(method.arguments, node.options.shown(), place)


async def count_stream(
    channel: Declarer, method: m.QueueDeclare, name: str, node: Streaming
) -> None:
    """Tell a client of a stream that it has declared, or looked for."""
    messages, consumers = await channel.queues.streams.count(node)
    channel.queue = name
    if not method.nowait:
        ok = m.QueueDeclareOk(queue=name, message_count=messages, consumer_count=consumers)
        channel.reply(ok)


async def delete_stream(
    channel: Declarer, method: m.QueueDelete, name: str, node: Streaming
) -> None:
    """Give a stream up with its records, at all containers.

    Raises:
        ProtocolError: It is not as the client wants it to be (406), or cannot be deleted.
    """
    streams = channel.queues.streams
    counts = Counts(*await streams.count(node))
    channel.queues.demand_disused(
        name, counts, if_unused=method.if_unused, if_empty=method.if_empty
    )
    with exchange_errors():
        await streams.delete(name)
    if not method.nowait:
        channel.reply(m.QueueDeleteOk(message_count=counts.messages))


async def consume_stream(
    channel: Channel, method: m.BasicConsume, tag: str, name: str, node: Streaming
) -> None:
    """Start a consumer of a stream, where its arguments say.

    Raises:
        ProtocolError: It has no prefetch (406), would not acknowledge, or is on a channel whose
            prefetch is for all of its consumers (540).
    """
    place = channel.queues.place(name)
    if not channel.prefetch:
        text = f"consumer prefetch count is not set for stream {place}"
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
    if method.no_ack:
        text = f"automatic acknowledgement not supported by stream {place}"
        raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, text)
    if channel.end.prefetch:
        raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, f"{place} does not support global qos")
    priority_in(method.arguments, place)
    end = channel.end.consumer(octets_of(tag), prefetch=channel.prefetch)
    consumer = StreamConsumer(channel, tag, node, end, start_in(method.arguments, place))
    consumer.join(is_told=not method.nowait)
    await consumer.answered


def refuse_get(channel: Declarer, name: str) -> NoReturn:
    """Refuse to deliver one message of a stream: it would be the first one each time.

    Raises:
        ProtocolError: Always (540).
    """
    text = f"basic.get not supported by stream queues {channel.queues.place(name)}"
    raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, text)


def refuse_purge(channel: Declarer, name: str) -> NoReturn:
    """Refuse to drop what others may read of a stream.

    Raises:
        ProtocolError: Always (540).
    """
    text = f"queue.purge not supported by stream queues {channel.queues.place(name)}"
    raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, text)
